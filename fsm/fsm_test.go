package fsm

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"pgregory.net/rapid"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

// recorder is a publisher that keeps everything.
type recorder struct {
	revs   []catalog.Revision
	events []*catalog.Event
	resets []catalog.Revision
}

func (r *recorder) Publish(rev catalog.Revision, events []*catalog.Event) {
	r.revs = append(r.revs, rev)
	r.events = append(r.events, events...)
}

func (r *recorder) Reset(_ catalog.Incarnation, rev catalog.Revision, events []*catalog.Event) {
	r.resets = append(r.resets, rev)
	r.events = events
}

func (r *recorder) Tail(maxRevisions, _ int) []*catalog.Event {
	return r.events[max(0, len(r.events)-maxRevisions):]
}

// workload is a list of log entries of many kinds, refusals among them.
func workload(t testing.TB, n int, seed uint64) []*raft.Log {
	t.Helper()
	fd := &feed{t: t}
	cmds := []catalog.Command{
		catalog.ActivateIncarnation{ClusterID: "c", Incarnation: catalog.Incarnation{Number: 1, Random: 2}, Level: 1},
		catalog.NewTerm{Term: 1, Leader: "n1"},
		catalog.RegisterClient{Name: "w"},
		catalog.CreateDatabase{Name: "shop", Properties: []catalog.Property{{Key: "b", Value: "1"}, {Key: "a", Value: "2"}}},
		catalog.CreateTable{
			Table: "shop.orders", Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
			PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, Buckets: catalog.Some[int32](2),
		},
	}
	var logs []*raft.Log
	for _, c := range cmds {
		logs = append(logs, fd.log(catalog.Envelope{Wall: 1000}, c))
	}
	rnd := filler{n: seed}
	seq := uint64(0)
	for len(logs) < n {
		x := rnd.next() >> 3
		env := catalog.Envelope{Wall: catalog.Millis(1000 + len(logs)), Lease: catalog.Millis(len(logs)), Actor: "w"}
		if x%3 > 0 {
			seq++
			env.Client, env.Sequence, env.Ack = 1, seq, max(seq, 5)-5
		}
		var cmd catalog.Command
		switch x / 3 % 9 {
		case 0, 1:
			cmd = catalog.CreatePartitions{Table: "shop.orders", Specs: spec(fmt.Sprint("p", x%50)), IfNotExists: x%2 == 0}
		case 2:
			cmd = catalog.RescaleTable{Table: "shop.orders", Buckets: int32(1 + x%7)}
		case 3:
			cmd = catalog.DropPartitions{Table: "shop.orders", Specs: spec(fmt.Sprint("p", x%50)), IfExists: true}
		case 4:
			cmd = catalog.PutKV{Key: fmt.Sprint("k", x%20), Value: []byte{byte(x)}}
		case 5:
			cmd = catalog.AllocateIDs{Counter: fmt.Sprint("c", x%3), Count: 1 + x%5}
		case 6:
			cmd = catalog.Checksum{}
		case 7:
			cmd = catalog.RegisterServer{ID: catalog.ServerID(x % 4), DirectoryID: fmt.Sprint(x % 4), Listeners: []string{"h:1"}, TTL: 1000}
		default:
			fd.index++
			logs = append(logs, &raft.Log{Index: fd.index, Type: raft.LogConfiguration, Data: []byte("not a command")})
			continue
		}
		logs = append(logs, fd.log(env, cmd))
		if x%11 == 0 && env.Client != 0 { // the same entry again: a retry
			fd.index++
			logs = append(logs, &raft.Log{Index: fd.index, Type: raft.LogCommand, Data: logs[len(logs)-1].Data})
		}
	}
	return logs
}

func applyIn(f *FSM, logs []*raft.Log, size func() int) (out []any) {
	for len(logs) > 0 {
		n := min(max(size(), 1), len(logs))
		out = append(out, f.ApplyBatch(logs[:n])...)
		logs = logs[n:]
	}
	return out
}

func persisted(t testing.TB, f *FSM) []byte {
	t.Helper()
	snap, err := f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var sink memSink
	if err := snap.Persist(&sink); err != nil {
		t.Fatal(err)
	}
	snap.Release()
	return sink.Bytes()
}

// However a log is cut into batches, results, events, hashes and snapshot bytes
// are the same, and one node may have started from a snapshot (S42).
func TestFSM_Deterministic(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		logs := workload(t, 300, rapid.Uint64().Draw(rt, "seed"))
		var one, many, third recorder
		a, b, c := New(Config{Publisher: &one}), New(Config{Publisher: &many}), New(Config{Publisher: &third})
		cut := rapid.IntRange(1, len(logs)-1).Draw(rt, "cut")
		sizes := rapid.IntRange(1, 70)
		wantOut := applyIn(a, logs, func() int { return 1 })
		gotOut := applyIn(b, logs[:cut], func() int { return sizes.Draw(rt, "batch") })
		file := persisted(t, b)
		gotOut = append(gotOut, applyIn(b, logs[cut:], func() int { return sizes.Draw(rt, "batch") })...)
		if err := c.Restore(readCloser(file)); err != nil {
			rt.Fatal(err)
		}
		if c.Index() != logs[cut-1].Index {
			rt.Fatalf("index after restore is %d, want %d", c.Index(), logs[cut-1].Index)
		}
		applyIn(c, logs[cut:], func() int { return 64 })
		if diff := cmp.Diff(wantOut, gotOut); diff != "" {
			rt.Fatalf("results differ:\n%s", diff)
		}
		want := persisted(t, a)
		for name, f := range map[string]*FSM{"batches": b, "snapshot and tail": c} {
			if f.State().Hash() != a.State().Hash() || f.Index() != a.Index() {
				rt.Fatalf("%s: hash %016x at %d, want %016x at %d", name, f.State().Hash(), f.Index(), a.State().Hash(), a.Index())
			}
			if err := f.State().Check(); err != nil {
				rt.Fatalf("%s: %v", name, err)
			}
			if !bytes.Equal(persisted(t, f), want) {
				rt.Fatalf("%s: snapshot bytes differ", name)
			}
		}
		for _, l := range logs {
			h, ok := a.HashAt(catalog.Revision(l.Index))
			if g, found := b.HashAt(catalog.Revision(l.Index)); ok != found || g != h {
				rt.Fatalf("hash at %d: %016x %v, want %016x %v", l.Index, g, found, h, ok)
			}
		}
	})
}

// The hash of a marker is the one at its entry, not at the end of its batch,
// and only the last 64 are kept.
func TestFSM_HashAt(t *testing.T) {
	var got []catalog.Revision
	fd := newShop(t, Config{OnChecksum: func(rev catalog.Revision, _ uint64) { got = append(got, rev) }}, 0)
	first := fd.log(catalog.Envelope{}, catalog.Checksum{})
	batch := []*raft.Log{first, fd.log(catalog.Envelope{}, catalog.PutKV{Key: "k"})}
	before := fd.f.State().Hash()
	fd.f.ApplyBatch(batch)
	if h, ok := fd.f.HashAt(catalog.Revision(first.Index)); !ok || h != before || h == fd.f.State().Hash() {
		t.Errorf("hash at the marker is %016x, %v, want %016x", h, ok, before)
	}
	for range keptMarkers {
		fd.do(catalog.Checksum{})
	}
	if _, ok := fd.f.HashAt(catalog.Revision(first.Index)); ok {
		t.Errorf("the first of %d markers is still known", keptMarkers+1)
	}
	if _, ok := fd.f.HashAt(0); ok {
		t.Error("revision 0 has a hash")
	}
	if len(got) != keptMarkers+1 {
		t.Errorf("hook was called %d times", len(got))
	}
}

// One state per batch; configuration entries move index and revision only.
func TestFSM_PublishesOncePerBatch(t *testing.T) {
	var rec recorder
	fd := newShop(t, Config{Publisher: &rec}, 0)
	rec.revs = nil
	config := &raft.Log{Index: fd.index + 3, Type: raft.LogConfiguration}
	batch := []*raft.Log{fd.log(catalog.Envelope{}, catalog.PutKV{Key: "a"}), fd.log(catalog.Envelope{}, catalog.PutKV{Key: "b"}), config}
	fd.index++
	hash := fd.f.State().Hash()
	out := fd.f.ApplyBatch(batch)
	if want := []catalog.Revision{catalog.Revision(config.Index)}; !cmp.Equal(rec.revs, want) {
		t.Errorf("published %v, want %v", rec.revs, want)
	}
	if out[2] != nil || fd.f.Index() != config.Index || uint64(fd.f.State().Revision()) != config.Index {
		t.Errorf("configuration entry: answer %v, index %d, revision %d", out[2], fd.f.Index(), fd.f.State().Revision())
	}
	hash2 := fd.f.State().Hash()
	if fd.f.Apply(&raft.Log{Index: config.Index + 1, Type: raft.LogConfiguration}); fd.f.State().Hash() != hash2 || hash == hash2 {
		t.Error("a configuration entry changed the state")
	}
}

// stopCase is an entry that nothing can apply.
var stopCases = map[string]struct {
	data  func() []byte
	cause error
}{
	"checksum":     {func() []byte { return []byte("garbage that is no entry") }, ErrCorruptEntry},
	"unknown kind": {func() []byte { return seal([]byte{formatV1, 0xee, 1, 0x90, 0x90}) }, ErrUnknownKind},
	"empty":        {func() []byte { return nil }, ErrCorruptEntry},
}

// A bad entry stops the machine in front of it: what came before is there, it
// is never skipped, the owner hears of it once, waits end; again after restart.
func TestFSM_StopsAtBadEntry(t *testing.T) {
	for name, tt := range stopCases {
		t.Run(name, func(t *testing.T) {
			logs := workload(t, 40, 1)
			logs[30] = &raft.Log{Index: logs[30].Index, Type: raft.LogCommand, Data: tt.data()}
			ref := New(Config{})
			ref.ApplyBatch(logs[:30])
			for restart := range 2 {
				synctest.Test(t, func(t *testing.T) {
					var stops []*StopError
					f := New(Config{OnStop: func(e *StopError) { stops = append(stops, e) }})
					var returned atomic.Bool
					go func() {
						f.ApplyBatch(logs[:20])
						f.ApplyBatch(logs[20:])
						returned.Store(true)
					}()
					_, err := f.Wait(t.Context(), logs[30].Index)
					if !errors.Is(err, ErrStopped) || !errors.Is(err, tt.cause) {
						t.Errorf("Wait = %v, want a stop with %v", err, tt.cause)
					}
					synctest.Wait()
					if returned.Load() || len(stops) != 1 || stops[0].Index != logs[30].Index || !errors.Is(f.Err(), tt.cause) {
						t.Errorf("run %d: returned %v, stops %v, Err %v", restart, returned.Load(), stops, f.Err())
					}
					if f.Index() != logs[29].Index || f.State().Hash() != ref.State().Hash() {
						t.Errorf("index %d, hash %016x, want %d, %016x", f.Index(), f.State().Hash(), logs[29].Index, ref.State().Hash())
					}
					if s, err := f.Wait(t.Context(), logs[29].Index); err != nil || s == nil {
						t.Errorf("wait for an index before the stop: %v", err)
					}
					if _, err := f.Snapshot(); !errors.Is(err, ErrStopped) {
						t.Errorf("Snapshot of a stopped machine = %v", err)
					}
					f.Close()
					synctest.Wait()
					if returned.Load() {
						t.Error("ApplyBatch returned after Close")
					}
				})
			}
		})
	}
}

// panicking makes ForgetMember decode as a command that panics once it is
// applied.
func panicking(t *testing.T) (restore func()) {
	t.Helper()
	old := kinds[catalog.KindForgetMember]
	kinds[catalog.KindForgetMember].decode = func(c *msgpack.Codec, scratch *any) catalog.Command {
		old.decode(c, scratch)
		return (*badCommand)(nil)
	}
	return func() { kinds[catalog.KindForgetMember] = old }
}

// A panic stops like a bad entry; the entries before it are applied cleanly.
func TestFSM_StopsAtPanic(t *testing.T) {
	fd := &feed{t: t}
	logs := workload(t, 40, 3)
	fd.index = logs[len(logs)-1].Index
	bad := fd.log(catalog.Envelope{}, catalog.ForgetMember{NodeID: "x"})
	ref := New(Config{})
	ref.ApplyBatch(logs)
	defer panicking(t)()
	synctest.Test(t, func(t *testing.T) {
		f := New(Config{})
		defer f.Close()
		go f.ApplyBatch(append(logs, bad))
		_, err := f.Wait(t.Context(), bad.Index)
		var p *PanicError
		if !errors.As(err, &p) || len(p.Stack) == 0 {
			t.Fatalf("Wait = %v, want a panic", err)
		}
		if f.Index() != bad.Index-1 || f.State().Hash() != ref.State().Hash() {
			t.Errorf("index %d, hash %016x, want %d, %016x", f.Index(), f.State().Hash(), bad.Index-1, ref.State().Hash())
		}
		if err := f.State().Check(); err != nil {
			t.Error(err)
		}
	})
}

// Waiters wake at their index, not before, and leave nothing behind.
func TestFSM_Wait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		logs := workload(t, 50, 2)
		f := New(Config{})
		var wg sync.WaitGroup
		var woken atomic.Int64
		for i := range 1000 {
			index := logs[i%len(logs)].Index
			wg.Go(func() {
				s, err := f.Wait(t.Context(), index)
				if err != nil || uint64(s.Revision()) < index {
					t.Errorf("Wait(%d) = %v", index, err)
				}
				woken.Add(1)
			})
		}
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Second, errTired)
		defer cancel()
		if _, err := f.Wait(ctx, 1_000_000); !errors.Is(err, errTired) {
			t.Errorf("Wait with a context that ends = %v", err)
		}
		if woken.Load() != 0 {
			t.Errorf("%d woke before anything was applied", woken.Load())
		}
		f.ApplyBatch(logs[:25])
		synctest.Wait()
		if woken.Load() != 500 {
			t.Errorf("%d woke after half of the log, want 500", woken.Load())
		}
		f.ApplyBatch(logs[25:])
		wg.Wait()
		if n := len(f.waiters.mu.list); n != 0 {
			t.Errorf("%d waiters left", n)
		}
		wg.Go(func() {
			if _, err := f.Wait(t.Context(), 1_000_000); !errors.Is(err, ErrClosed) {
				t.Errorf("Wait over Close = %v", err)
			}
		})
		synctest.Wait()
		f.Close()
		wg.Wait()
		if _, err := f.Wait(t.Context(), 1_000_000); !errors.Is(err, ErrClosed) {
			t.Errorf("Wait after Close = %v", err)
		}
	})
}

var errTired = errors.New("tired of waiting")

// B13: nothing that applying hands out or was handed is shared with the state:
// scribbling over entries and results changes no hash.
func TestFSM_NoAliasing(t *testing.T) {
	logs := workload(t, 200, 4)
	f := New(Config{})
	out := f.ApplyBatch(logs)
	for _, l := range logs {
		clear(l.Data)
	}
	for _, o := range out {
		if res, ok := o.(*catalog.Result); ok {
			res.IDs = append(res.IDs[:0:0], res.IDs...)
			*res = catalog.Result{}
		}
	}
	if err := f.State().Check(); err != nil {
		t.Error(err)
	}
	ref := New(Config{})
	ref.ApplyBatch(workload(t, 200, 4))
	if f.State().Hash() != ref.State().Hash() {
		t.Error("the state changed with its entries")
	}
}

// A published state never changes while later ones are made.
func TestFSM_StatesAreImmutable(t *testing.T) {
	logs := workload(t, 300, 5)
	f := New(Config{})
	states := map[*catalog.State]uint64{}
	for len(logs) > 0 {
		n := min(7, len(logs))
		f.ApplyBatch(logs[:n])
		logs = logs[n:]
		states[f.State()] = f.State().Hash()
	}
	for s, h := range states {
		if err := s.Check(); err != nil || s.Hash() != h {
			t.Fatalf("state of revision %d changed: %v", s.Revision(), err)
		}
	}
}
