package client

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// S62: the first answers of the only endpoint are of a cluster that cannot serve
// yet. The client waits, a little longer each time, and connects; with answers
// that stay so it ends at its budget and tells what it was told.
func TestS62_Bootstrap(t *testing.T) {
	starting := &catalog.Error{Code: catalog.ErrUnavailable, Message: "no leader yet"}
	for _, bad := range []int{2, 1 << 30} {
		inBubble(t, func(t *testing.T) {
			f := newFake(t, 1).keyed(2)
			answers := 0
			f.hook(func(*fakeNode, any) error {
				if answers++; answers <= bad {
					return starting
				}
				return nil
			}, nil)
			c, start := f.client(WithTimeout(5*time.Second)), time.Now()
			r, err := c.OpenRouter(t.Context(), orders, RouterOptions{})
			took := time.Since(start)
			if bad == 2 {
				if err != nil || answers != 3 || took == 0 || took > 300*time.Millisecond {
					t.Errorf("after two bad answers: %d answers in %s, %v", answers, took, err)
				} else if err := r.Close(); err != nil {
					t.Error(err)
				}
				return
			}
			var call *CallError
			if !errors.As(err, &call) || !strings.Contains(err.Error(), "no leader yet") || took > 5*time.Second {
				t.Errorf("with bad answers only: %v after %s", err, took)
			}
			if answers < 4 || answers > 40 {
				t.Errorf("asked %d times in 5 s: pauses have to grow, up to a bound", answers)
			}
		})
	}
}

// S62: of two endpoints one is dead: the other is used at once if the dead one
// refuses, and beside it if it is silent.
func TestS62_SecondEndpoint(t *testing.T) {
	for _, silent := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			f := withKey(newFake(t, 1))
			dead, limit := "nobody:7401", time.Millisecond
			if silent {
				dead, limit = "n9:7401", 2*stagger
				l, err := f.net.Host("n9").Listen(dead)
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				f.net.CutBoth("client", "n9")
			}
			for range 10 { // which one is tried first is random
				c, err := New([]string{dead, "n1:7401"}, WithDialer(f.net.Host("client").Dial))
				if err != nil {
					t.Fatal(err)
				}
				start := time.Now()
				mustRead(t, c)
				if d := time.Since(start); d > limit {
					t.Errorf("silent %v: took %s, want at most %s", silent, d, limit)
				}
				if err := c.Close(); err != nil {
					t.Fatal(err)
				}
			}
			f.net.HealAll()
		})
	}
}

// S62: a bucket that nobody leads yet. Two leaderless answers cost two pauses; one
// that stays leaderless fails after the bounded attempts, with the cause.
func TestS62_NoLiveServer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		f.must(createDTs("p1"))
		r := openRouter(t, f.client(), RouterOptions{Attempts: 4})
		out := mustRoute(t, r, rowOf(1, "p1"))
		if _, led := out.Leader(); led {
			t.Fatal("somebody leads")
		}
		start := time.Now()
		var err error
		attempt := 1
		for ; err == nil; attempt++ {
			if attempt > 10 {
				t.Fatal("tried again for ever")
			}
			out, err = r.Retry(t.Context(), out, attempt, catalog.ErrLeaderNotAvailable)
		}
		if attempt-1 != 4 || !errors.Is(err, routing.ErrAttempts) || !errors.Is(err, catalog.ErrLeaderNotAvailable) {
			t.Errorf("%v after %d attempts", err, attempt-1)
		}
		if d := time.Since(start); d == 0 || d > time.Second {
			t.Errorf("took %s", d)
		}
	})
}

// S63: every node has another address. The client comes back through the endpoint
// it was given, and no address of before is tried twice meanwhile.
func TestS63_AllAddressesChanged(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := withKey(newFake(t, 3))
		var (
			mu    sync.Mutex
			seed  = "n1:7401" // what the endpoint leads to
			dials = map[string]int{}
		)
		dial := f.net.Host("client").Dial
		c, err := New([]string{"seed:7401"}, WithDialer(func(ctx context.Context, addr string) (net.Conn, error) {
			mu.Lock()
			dials[addr]++
			if addr == "seed:7401" {
				addr = seed
			}
			mu.Unlock()
			return dial(ctx, addr)
		}))
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		for range 5 {
			mustRead(t, c)
			if _, err := allocate(t.Context(), c); err != nil {
				t.Fatal(err)
			}
		}
		f.locked(func() {
			for i, n := range f.nodes {
				n.stop()
				f.nodes[i] = f.start(n.id, fmt.Sprintf("m%d:7401", i+1))
			}
		})
		mu.Lock()
		seed, dials = "m2:7401", map[string]int{}
		mu.Unlock()
		start := time.Now()
		mustRead(t, c)
		if _, err := allocate(t.Context(), c); err != nil {
			t.Fatal(err)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("took %s", d)
		}
		mu.Lock()
		defer mu.Unlock()
		for addr, n := range dials {
			if n > 1 {
				t.Errorf("%s was tried %d times: %v", addr, n, dials)
			}
		}
	})
}

// S63: the servers of buckets have other addresses. One that does not answer is a
// reason to ask, once, and the request goes on at the new address.
func TestS63_ServersMoved(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).served(2, 2)
		r := openRouter(t, f.client(), RouterOptions{})
		sent := mustRoute(t, r, rowOf(3, "p1"))
		for id := range catalog.ServerID(2) {
			f.must(catalog.RegisterServer{ID: id, DirectoryID: fmt.Sprint("dir", id), Listeners: []string{fmt.Sprint("moved", id, ":1")}, TTL: 10_000})
		}
		n := f.traffic()
		next, err := r.Retry(t.Context(), sent, 1, catalog.ErrNetwork)
		if l, ok := next.Leader(); err != nil || !ok || !strings.HasPrefix(l.Listeners[0], "moved") || next.BatchKey() != sent.BatchKey() {
			t.Errorf("%+v, %+v, %v", next, l, err)
		}
		if n.layouts.Load() != 1 {
			t.Errorf("%d reads", n.layouts.Load())
		}
	})
}

// served is a keyed table with one partition, p1, whose buckets are led by
// servers 0 to n-1 and may be led by all of them.
func (f *fake) served(n int, buckets int32) *fake {
	f.t.Helper()
	f.must(catalog.NewTerm{Term: 2, Leader: "n1"}, catalog.CreateDatabase{Name: "shop"})
	for id := range n {
		f.must(catalog.RegisterServer{ID: catalog.ServerID(id), DirectoryID: fmt.Sprint("dir", id), Listeners: []string{fmt.Sprint("s", id, ":1")}, TTL: 10_000})
	}
	c := createOrders(buckets)
	c.Properties = []catalog.Property{{Key: catalog.PropReplication, Value: fmt.Sprint(n)}, {Key: catalog.PropStandby, Value: "false"}}
	f.must(c, createDTs("p1"))
	return f
}

// bucketLog is what the buckets of a table hold, whoever leads them: rows by
// their sequence, each once.
type bucketLog map[routing.TableBucket][]int

// write does what the server of a bucket does with a row of one writer.
func (l bucketLog) write(f *fake, at catalog.ServerID, req routing.Request, sequence int) error {
	if code := f.guardOf(at).Check(req); code != catalog.Done {
		return code
	}
	if !slices.Contains(l[req.Bucket], sequence) { // a copy of what is there is acknowledged
		l[req.Bucket] = append(l[req.Bucket], sequence)
	}
	return nil
}

// guardOf is the guard of one server at this moment.
func (f *fake) guardOf(id catalog.ServerID) *routing.Guard {
	f.t.Helper()
	f.mu.Lock()
	st := f.state
	f.mu.Unlock()
	l, err := routing.LayoutOf(st, orders)
	if err != nil {
		f.t.Fatal(err)
	}
	u := routing.GuardUpdate{Reset: true, Epochs: map[catalog.TableID]catalog.Epoch{l.Table().ID: l.Table().Epoch}}
	for _, p := range l.Known() {
		for b := range p.Count {
			leader, _ := p.Leader(b)
			u.Activations = append(u.Activations, routing.Activation{
				Bucket: routing.TableBucket{TableID: l.Table().ID, PartitionID: p.ID, Bucket: b}, Count: p.Count,
				Leading: leader.Server == id && leader.LeaderEpoch >= 0, LeaderEpoch: leader.LeaderEpoch,
			})
		}
	}
	g := routing.NewGuard()
	if err := g.Apply(u); err != nil {
		f.t.Fatal(err)
	}
	return g
}

// S64: the leader of a bucket changes between two rows, and once an answer is
// lost. What the old leader refuses with 12 goes to the new one, with the same
// bucket and count and without a pause; every row is stored once, in order; and
// one read is enough for all that comes later.
func TestS64_LeaderChange(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).served(3, 2)
		r := openRouter(t, f.client(), RouterOptions{})
		row := rowOf(3, "p1")
		first := mustRoute(t, r, row)
		n, start := f.traffic(), time.Now()
		log, servers := bucketLog{}, map[catalog.ServerID]bool{}
		refused := 0
		for sequence := range 30 {
			out := mustRoute(t, r, row)
			if sequence%10 == 5 {
				l, _ := out.Leader()
				f.must(catalog.ElectLeaders{Reason: catalog.ElectControlledShutdown, Server: catalog.Some(l.Server)})
			}
			for attempt := 1; ; attempt++ {
				l, ok := out.Leader()
				if !ok {
					t.Fatalf("row %d: nobody leads %+v", sequence, out)
				}
				err := log.write(f, l.Server, out.Request(), sequence)
				if err == nil && sequence == 22 && attempt == 1 {
					err = catalog.ErrNetwork // stored, and the answer is lost
				}
				if err == nil {
					servers[l.Server] = true
					break
				}
				if errors.Is(err, catalog.ErrNotLeaderOrFollower) {
					refused++
				}
				next, err := r.Retry(t.Context(), out, attempt, err)
				if err != nil || next.BatchKey() != out.BatchKey() {
					t.Fatalf("row %d: %+v, %v", sequence, next, err)
				}
				out = next
			}
		}
		var want []int
		for i := range 30 {
			want = append(want, i)
		}
		if got := log[first.TableBucket()]; len(log) != 1 || !slices.Equal(got, want) {
			t.Errorf("stored: %v", log)
		}
		if len(servers) < 2 || refused < 2 || int64(refused)+1 != n.layouts.Load() {
			t.Errorf("servers %v, %d refusals, %d reads", servers, refused, n.layouts.Load())
		}
		if d := time.Since(start); d > minRetryPause { // the one after the lost answer
			t.Errorf("took %s: a leader that moved needs no pause", d)
		}
	})
}

// S72: what can never be rescaled is refused, by Rescale and by a raw command
// alike, and changes nothing. The lake is not told of a count below one, nor for
// a table that cannot follow.
func TestS72_Refused(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).tiered(2)
		f.must(catalog.CreateTable{Table: "shop.plain", Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}}, Buckets: catalog.Some[int32](2)})
		for _, format := range []string{"iceberg", "hudi", "lance"} {
			c := createOrders(2)
			c.Table, c.Properties = "shop."+format, []catalog.Property{{Key: catalog.PropLakeFormat, Value: format}}
			f.must(c)
		}
		c := f.client()
		for _, tc := range []struct {
			table   string
			buckets int32
			want    catalog.Code
			told    int
		}{
			{"shop.plain", 4, catalog.ErrTableNotPartitioned, 0},
			{orders, 0, catalog.ErrInvalidAlterTable, 0},
			{orders, -1, catalog.ErrInvalidAlterTable, 0},
			{orders, 4097, catalog.ErrBucketMaxNum, 1}, // only the cluster knows its limit
			{"shop.iceberg", 4, catalog.ErrInvalidAlterTable, 0},
			{"shop.hudi", 4, catalog.ErrInvalidAlterTable, 0},
			{"shop.lance", 4, catalog.ErrInvalidAlterTable, 0},
		} {
			told := 0
			_, err := c.Rescale(t.Context(), Rescale{Table: tc.table, Buckets: tc.buckets, Propagate: func(context.Context, *catalog.Table) error { told++; return nil }})
			wantCode(t, fmt.Sprint("rescale of ", tc.table, " to ", tc.buckets), err, tc.want)
			if told != tc.told {
				t.Errorf("%s to %d: the lake was told %d times, want %d", tc.table, tc.buckets, told, tc.told)
			}
			_, err = c.Do(t.Context(), catalog.RescaleTable{Table: tc.table, Buckets: tc.buckets, Propagated: true})
			wantCode(t, fmt.Sprint("command for ", tc.table, " to ", tc.buckets), err, tc.want)
			f.wantLayout(tc.table, 2, 0)
		}
		for _, key := range paimonBucket {
			own := []catalog.Property{{Key: key, Value: "4"}}
			create := createOrders(2)
			create.Table, create.CustomProperties = "shop.own", own
			_, err := c.Do(t.Context(), create)
			wantCode(t, "created with "+key, err, catalog.ErrInvalidConfig)
			_, err = c.Do(t.Context(), catalog.AlterTable{Table: orders, Set: own})
			wantCode(t, "altered with "+key, err, catalog.ErrInvalidConfig)
		}
		f.wantLayout(orders, 2, 0)
	})
}

// wantLayout checks the default count and layout epoch of a table.
func (f *fake) wantLayout(table string, buckets int32, epoch catalog.Epoch) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	if t, ok := f.state.Table(table); !ok || t.Buckets != buckets || t.Epoch != epoch || len(t.History) != int(epoch)+1 {
		f.t.Errorf("table %s is %+v, want %d buckets at epoch %d", table, t, buckets, epoch)
	}
}

// S78: a rescale to the current count is a success that changes nothing: neither
// epoch nor history, at epoch 0 and above, with and without an expected epoch.
func TestS78_NoOp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		f.must(createDTs("p1"))
		c := f.client()
		for epoch, n := range []int32{2, 3} {
			f.must(rescaleTo(n))
			events := len(f.events)
			for _, r := range []Rescale{
				{Table: orders, Buckets: n},
				{Table: orders, Buckets: n, ExpectedEpoch: catalog.Some(catalog.Epoch(epoch))},
				{Table: orders, Buckets: n, Propagate: func(context.Context, *catalog.Table) error { return nil }},
			} {
				res, err := c.Rescale(t.Context(), r)
				if err != nil || res.Changed || res.Count != n || res.Epoch != uint64(epoch) {
					t.Errorf("to %d: %+v, %v", n, res, err)
				}
				f.wantLayout(orders, n, catalog.Epoch(epoch))
			}
			f.locked(func() {
				for _, e := range f.events[events:] {
					for _, ch := range e.Changes {
						if _, table := ch.After.(*catalog.Table); table {
							t.Errorf("the table changed: %+v", ch)
						}
					}
				}
			})
		}
		_, err := c.Rescale(t.Context(), Rescale{Table: orders, Buckets: 3, ExpectedEpoch: catalog.Some[catalog.Epoch](0)})
		wantCode(t, "another epoch", err, catalog.ErrVersionConflict)
	})
}
