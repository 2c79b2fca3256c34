package client

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if code == 0 {
		if err := goleak.Find(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// New names every endpoint and option that is wrong, and connects to nothing.
func TestNew_Problems(t *testing.T) {
	_, err := New([]string{"nohost", "a:0", "http://a:1", ":7401", "ok:7401"},
		WithTimeout(0), WithName(""), WithDialer(nil), WithLogger(nil), WithRegisterer(nil), WithResolver(nil), nil)
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"endpoints[0]", "endpoints[1]", "endpoints[2]", "endpoints[3]", "timeout", "name", "dialer", "logger", "registerer", "resolver", "option is nil"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error does not name %s: %v", want, err)
		}
	}
	if strings.Contains(err.Error(), "endpoints[4]") {
		t.Errorf("error blames a good endpoint: %v", err)
	}
	if _, err := New(nil); err == nil {
		t.Error("no endpoints are accepted")
	}
	c, err := New([]string{"dns:///nowhere.invalid:7401"})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Close(), c.Close()); err != nil {
		t.Error(err)
	}
	if _, _, err := c.KeyValue(t.Context(), "k"); !errors.Is(err, ErrClosed) || !errors.Is(err, catalog.ErrUnavailable) {
		t.Errorf("read after close: %v", err)
	}
	if _, err := c.Do(t.Context(), catalog.AllocateIDs{Counter: "c", Count: 1}); !errors.Is(err, ErrClosed) {
		t.Errorf("write after close: %v", err)
	}
}

func inBubble(t *testing.T, f func(t *testing.T)) {
	t.Helper()
	synctest.Test(t, f)
}

// doer is one of the two ways a command takes.
type doer struct {
	name string
	opts []Option
	do   func(ctx context.Context, c *Client) (uint64, error)
}

func allocate(ctx context.Context, c *Client) (uint64, error) {
	res, err := c.Do(ctx, catalog.AllocateIDs{Counter: "c", Count: 1})
	id, _ := res.FirstID()
	return id, err
}

var doers = []doer{
	{"batched", nil, allocate},
	{"alone", []Option{WithBatching(false)}, allocate},
	{"stub", nil, func(ctx context.Context, c *Client) (uint64, error) {
		res, err := pb.NewKVClient(c).AllocateIDs(ctx, &pb.AllocateIDsRequest{Counter: "c", Count: 1})
		if err != nil {
			return 0, err
		}
		return res.GetResult().GetIds()[0].GetFirst(), nil
	}},
}

// What each code of the table makes of a write: how often it runs, whether it is
// asked again, and what the caller sees. Whatever the code, the command takes
// effect at most once.
func TestWrite_EveryCode(t *testing.T) {
	for _, row := range api.ErrorTable() {
		if row.Code == catalog.Done {
			continue
		}
		for _, d := range doers {
			t.Run(row.Name()+"/"+d.name, func(t *testing.T) {
				inBubble(t, func(t *testing.T) { testCode(t, row, d) })
			})
		}
	}
}

func testCode(t *testing.T, row api.ErrorRow, d doer) {
	f := newFake(t, 2)
	c := f.client(d.opts...)
	tries := 0
	f.hook(func(_ *fakeNode, req any) error {
		if _, ok := req.(*pb.AllocateIDsRequest); !ok {
			return nil
		}
		if tries++; tries == 1 {
			return &catalog.Error{Code: row.Code, Message: "injected"}
		}
		return nil
	}, nil)
	_, err := d.do(t.Context(), c)
	f.mu.Lock()
	got := tries
	f.mu.Unlock()
	wantErr, wantTries := row.Code, 1
	switch {
	case row.Code == catalog.ErrTableImporting: // a result that is kept for the sequence
	case row.Code == catalog.ErrRestored, row.Code == catalog.ErrAlreadyAcknowledged:
		wantErr = catalog.ErrOutcomeUnknown
	case row.Code == catalog.ErrUnknownServerError, row.Code == catalog.ErrSessionExpired:
		wantErr, wantTries = catalog.Done, 2
	case row.Retry == api.RetryBackoff, row.Retry == api.RetryElsewhere, row.Retry == api.RetrySameSequence:
		wantErr, wantTries = catalog.Done, 2
	}
	if code := api.CodeOf(err); code != wantErr || got != wantTries {
		t.Errorf("code %v after %d tries, want %v after %d: %v", code, got, wantErr, wantTries, err)
	}
	if n, ran := f.counter("c"), wantErr == catalog.Done; n != map[bool]uint64{true: 1}[ran] {
		t.Errorf("executed %d times, answer %v", n, err)
	}
	if s := c.State(); wantErr != catalog.ErrOutcomeUnknown && s.Open != 0 {
		t.Errorf("%d sequences stay open: %s", s.Open, s)
	}
}

// A read is asked again after passing failures, on another node, and never after
// a final answer.
func TestRead_EveryCode(t *testing.T) {
	for _, row := range api.ErrorTable() {
		if row.Code == catalog.Done {
			continue
		}
		t.Run(row.Name(), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				f := newFake(t, 2)
				f.apply(api.Ref{}, catalog.PutKV{Key: "k", Value: []byte("v")})
				c := f.client()
				var nodes []string
				f.hook(func(n *fakeNode, _ any) error {
					nodes = append(nodes, n.id)
					if len(nodes) == 1 {
						return &catalog.Error{Code: row.Code, Message: "injected"}
					}
					return nil
				}, nil)
				_, _, err := c.KeyValue(t.Context(), "k")
				f.mu.Lock()
				defer f.mu.Unlock()
				again := row.Code == catalog.ErrUnknownServerError
				switch row.Retry {
				case api.RetryBackoff, api.RetryElsewhere, api.RetrySameSequence:
					again = row.Code != catalog.ErrTableImporting
				}
				if again && (err != nil || len(nodes) != 2) {
					t.Errorf("asked %v: %v", nodes, err)
				}
				if again && row.Retry == api.RetryElsewhere && nodes[0] == nodes[1] {
					t.Errorf("asked %v, want two nodes", nodes)
				}
				if !again && (!errors.Is(err, row.Code) || len(nodes) != 1) {
					t.Errorf("asked %v: %v", nodes, err)
				}
			})
		})
	}
}

// With answers lost at random and nodes refusing at random, every acknowledged
// command took effect exactly once, and ids are never given twice.
func TestWrite_LostAnswers(t *testing.T) {
	for _, d := range doers {
		t.Run(d.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				f := newFake(t, 3)
				c := f.client(append(d.opts, WithTimeout(time.Minute))...)
				i := 0
				f.hook(func(n *fakeNode, _ any) error {
					if i++; i%7 == 3 {
						return &api.NotLeaderError{Leader: "n2", Addr: "n2:7401"}
					} else if i%11 == 4 {
						return &catalog.Error{Code: catalog.ErrOutcomeUnknown, Message: "injected"}
					}
					return nil
				}, func(*fakeNode, any) bool { i++; return i%3 == 0 })
				const callers, each = 8, 20
				var mu sync.Mutex
				ids := map[uint64]int{}
				var wg sync.WaitGroup
				for range callers {
					wg.Go(func() {
						for range each {
							id, err := d.do(t.Context(), c)
							if err != nil {
								t.Errorf("allocate: %v", err)
								return
							}
							mu.Lock()
							ids[id]++
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				if n := f.counter("c"); n != callers*each || len(ids) != callers*each {
					t.Errorf("%d commands ran %d times and gave %d ids", callers*each, n, len(ids))
				}
				if s := c.State(); s.Open != 0 || s.Queued != 0 || s.Sent != 0 || s.Registrations != 1 {
					t.Errorf("something is left: %s", s)
				}
			})
		})
	}
}

// A client that writes nothing for an hour is registered anew without an error.
func TestSession_ExpiresIdle(t *testing.T) {
	for _, d := range doers {
		t.Run(d.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				f := newFake(t, 1)
				c := f.client(d.opts...)
				for i := range 3 {
					if _, err := d.do(t.Context(), c); err != nil {
						t.Fatalf("write %d: %v", i, err)
					}
					f.locked(f.expire)
				}
				if s := c.State(); s.Registrations != 3 || f.counter("c") != 3 {
					t.Errorf("counter %d, %s", f.counter("c"), s)
				}
			})
		})
	}
}

// A write whose answer was lost is never sent again once the record is gone:
// under a new id it would run twice.
func TestSession_LostWhileSent(t *testing.T) {
	for _, restored := range []bool{false, true} {
		for _, d := range doers {
			t.Run(fmt.Sprintf("restored=%v/%s", restored, d.name), func(t *testing.T) {
				inBubble(t, func(t *testing.T) {
					f := newFake(t, 1)
					c := f.client(d.opts...)
					lost := 0
					f.hook(nil, func(*fakeNode, any) bool {
						if lost++; lost > 1 {
							return false
						}
						if restored {
							f.restore(9)
						} else {
							f.expire()
						}
						return true
					})
					_, err := d.do(t.Context(), c)
					var call *CallError
					if !errors.As(err, &call) || !errors.Is(err, catalog.ErrOutcomeUnknown) || errors.Is(err, catalog.ErrSessionExpired) {
						t.Fatalf("got %v", err)
					}
					want := map[bool]uint64{false: 1}[restored] // a restore undoes it
					if n := f.counter("c"); n != want {
						t.Errorf("executed %d times, want %d", n, want)
					}
					if _, err := d.do(t.Context(), c); err != nil {
						t.Errorf("the next write: %v", err)
					}
				})
			})
		}
	}
}

// A write that times out is asked for in the background; its outcome can be had
// later, and only then the watermark passes it.
func TestOutcome_AfterTimeout(t *testing.T) {
	for _, d := range doers {
		t.Run(d.name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				f := newFake(t, 2)
				c := f.client(append(d.opts, WithTimeout(time.Second))...)
				start := time.Now()
				f.hook(nil, func(*fakeNode, any) bool { return time.Since(start) < 3*time.Second })
				_, err := d.do(t.Context(), c)
				var call *CallError
				if !errors.As(err, &call) || call.Code != catalog.ErrOutcomeUnknown || call.Sequence != 1 || call.Attempts < 2 ||
					len(call.Addresses) == 0 || !errors.Is(err, context.DeadlineExceeded) {
					t.Fatalf("got %v", err)
				}
				if _, s := c.Outcome(call.Sequence); s != OutcomePending {
					t.Errorf("outcome is %s", s)
				}
				if s := c.State(); s.Open != 1 || s.Watermark != 0 || s.Pending != 1 {
					t.Errorf("state %s", s)
				}
				time.Sleep(10 * time.Second)
				res, s := c.Outcome(call.Sequence)
				if id, _ := res.FirstID(); s != OutcomeKnown || id != 0 || res.Code != catalog.Done {
					t.Errorf("outcome is %s: %+v", s, res)
				}
				if s := c.State(); s.Open != 0 || s.Watermark != 1 || f.counter("c") != 1 {
					t.Errorf("counter %d, %s", f.counter("c"), s)
				}
				if _, s := c.Outcome(99); s != OutcomeNone {
					t.Errorf("an unknown sequence is %s", s)
				}
			})
		})
	}
}

// Without a session a write is one attempt.
func TestWithoutSession_OneAttempt(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 3)
		c := f.client(WithoutSession())
		if _, err := allocate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		f.hook(nil, func(*fakeNode, any) bool { return true })
		_, err := allocate(t.Context(), c)
		var call *CallError
		if !errors.As(err, &call) || call.Code != catalog.ErrOutcomeUnknown || call.Attempts != 1 || call.Client != 0 {
			t.Errorf("got %v", err)
		}
		if n := f.counter("c"); n != 2 {
			t.Errorf("executed %d times", n)
		}
	})
}

// A list that breaks in the middle is read again as a whole.
func TestKeyValues_BreaksInTheMiddle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 2)
		var want []string
		for i := range 9 {
			want = append(want, fmt.Sprintf("k%d", i))
			f.apply(api.Ref{}, catalog.PutKV{Key: want[i]})
		}
		chunks := 0
		f.hook(func(*fakeNode, any) error {
			if chunks++; chunks == 3 {
				return errLost
			}
			return nil
		}, nil)
		c := f.client()
		rows, meta, err := c.KeyValues(t.Context(), "k")
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, r := range rows {
			got = append(got, r.Key)
		}
		if d := cmp.Diff(want, got); d != "" || meta.Revision != f.state.Revision() {
			t.Errorf("at %+v: %s", meta, d)
		}
	})
}
