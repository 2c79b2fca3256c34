package client

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

var noRef api.Ref

// believe makes a router believe that the partitions it knows have n buckets.
func believe(t *testing.T, f *fake, r *Router, name string, n int32) {
	t.Helper()
	f.mu.Lock()
	st := f.state
	f.mu.Unlock()
	tab, _ := st.Table(orders)
	p, ok := st.Partition(tab.ID, name)
	if !ok {
		t.Fatal("no such partition")
	}
	wrong := *p
	wrong.Buckets = n
	l, err := routing.NewLayout(st.Incarnation(), st.Revision(), tab, []*catalog.Partition{&wrong}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r.learn(l, []string{name})
	f.must(catalog.PutKV{Key: "a later revision"})
}

// S83b: a count that is too large names a bucket that does not exist. The answer
// 21 is compared with what is there, and the request fails as stale.
func TestS83b_StaleCountTooLarge(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		f.must(createDTs("p1"))
		r := openRouter(t, f.client(), RouterOptions{})
		believe(t, f, r, "p1", 4)
		sent := mustRoute(t, r, rowOf(2, "p1"))
		if sent.Bucket != 2 || sent.Count != 4 {
			t.Fatalf("the router was not led astray: %+v", sent)
		}
		_, err := r.Retry(t.Context(), sent, 1, catalog.ErrUnknownTableOrBucket)
		var stale *routing.StaleError
		if !errors.As(err, &stale) || stale.Sent != 4 || stale.Count != 2 {
			t.Fatalf("%v", err)
		}
		if out := mustRoute(t, r, rowOf(2, "p1")); out.Bucket != 0 || out.Count != 2 {
			t.Errorf("after: %+v", out)
		}
	})
}

// S84: STALE_METADATA fails at once, and the next route is another one; 12 is
// tried again within bounds, with the pinned count.
func TestS84_FailFastAndRetry(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		f.must(createDTs("p1"))
		r := openRouter(t, f.client(), RouterOptions{Attempts: 4})
		believe(t, f, r, "p1", 4)
		row := rowOf(3, "p1")
		sent := mustRoute(t, r, row)
		start := time.Now()
		_, err := r.Retry(t.Context(), sent, 1, &api.StaleMetadataError{})
		wantCode(t, "stale", err, catalog.ErrStaleMetadata)
		if time.Since(start) != 0 {
			t.Errorf("failing took %s", time.Since(start))
		}
		out := mustRoute(t, r, row)
		if out.Count != 2 || routing.CheckReroute(sent, out) != nil {
			t.Errorf("after: %+v", out)
		}
		again, err := r.Reroute(t.Context(), sent, row)
		if err != nil || again.BatchKey() != out.BatchKey() {
			t.Errorf("rerouted: %+v, %v", again, err)
		}
		if _, err := r.Reroute(t.Context(), out, row); !errors.Is(err, routing.ErrSameRoute) {
			t.Errorf("the same again: %v", err)
		}
		n := f.traffic()
		for attempt := 1; attempt < 4; attempt++ {
			next, err := r.Retry(t.Context(), out, attempt, catalog.ErrNotLeaderOrFollower)
			if err != nil || next.BatchKey() != out.BatchKey() {
				t.Fatalf("attempt %d: %+v, %v", attempt, next, err)
			}
		}
		if n.layouts.Load() != 3 {
			t.Errorf("%d refreshes, want 3", n.layouts.Load())
		}
		_, err = r.Retry(t.Context(), out, 4, catalog.ErrNotLeaderOrFollower)
		if !errors.Is(err, routing.ErrAttempts) || !errors.Is(err, catalog.ErrNotLeaderOrFollower) {
			t.Errorf("the last: %v", err)
		}
		_, err = r.Retry(t.Context(), out, 1, catalog.ErrInvalidArgument)
		wantCode(t, "final", err, catalog.ErrInvalidArgument)
		if next, err := r.Retry(t.Context(), out, 1, nil); err != nil || next != out {
			t.Errorf("no error: %+v, %v", next, err)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err = r.Retry(ctx, out, 1, catalog.ErrStorage); !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
	})
}

// A thousand requests refused at once for one stale count cause few reads.
func TestRouter_ManyStale(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		f.must(createDTs("p1"))
		r := openRouter(t, f.client(), RouterOptions{})
		believe(t, f, r, "p1", 4)
		sent := mustRoute(t, r, rowOf(3, "p1"))
		n := f.traffic()
		for range 1000 {
			_, err := r.Retry(t.Context(), sent, 1, catalog.ErrStaleMetadata)
			wantCode(t, "stale", err, catalog.ErrStaleMetadata)
			mustRoute(t, r, rowOf(3, "p1"))
		}
		if n.layouts.Load() != 1 {
			t.Errorf("%d reads, want 1", n.layouts.Load())
		}
	})
}

// A partition dropped and created again is another one, by whichever answer the
// router hears of it: 36, or 21 and a refresh, or a refresh for another reason.
func TestRouter_PartitionRecreated(t *testing.T) {
	for _, code := range []catalog.Code{catalog.ErrPartitionNotExists, catalog.ErrUnknownTableOrBucket, catalog.ErrNotLeaderOrFollower} {
		inBubble(t, func(t *testing.T) {
			f := newFake(t, 1).keyed(2)
			f.must(createDTs("p1"))
			r := openRouter(t, f.client(), RouterOptions{})
			old := mustRoute(t, r, rowOf(3, "p1"))
			f.must(dropDTs("p1"), rescaleTo(3), createDTs("p1"))
			_, err := r.Retry(t.Context(), old, 1, code)
			wantCode(t, code.String(), err, catalog.ErrPartitionNotExists)
			if out := mustRoute(t, r, rowOf(3, "p1")); out.Partition == old.Partition || out.Count != 3 {
				t.Errorf("%s: %+v", code, out)
			}
			f.must(dropDTs("p1"))
			_, err = r.Reroute(t.Context(), old, rowOf(3, "p1"))
			wantCode(t, "dropped", err, catalog.ErrPartitionNotExists)
		})
	}
}

// A table dropped and created again is another one; while it is gone its rows
// have no routes.
func TestRouter_TableRecreated(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		f.must(createDTs("p1"))
		r := openRouter(t, f.client(), RouterOptions{Create: true})
		old := mustRoute(t, r, rowOf(3, "p1"))
		f.must(catalog.DropTable{Table: orders})
		_, err := r.Retry(t.Context(), old, 1, catalog.ErrTableNotExist)
		wantCode(t, "dropped", err, catalog.ErrTableNotExist)
		for range 2 {
			_, err = r.Route(t.Context(), rowOf(3, "p1"))
			wantCode(t, "gone", err, catalog.ErrTableNotExist)
		}
		f.must(createOrders(3))
		if out := mustRoute(t, r, rowOf(3, "p1")); out.Table == old.Table || out.Count != 3 {
			t.Errorf("%+v", out)
		}
		f.must(catalog.DropTable{Table: orders}, createOrders(5))
		// A new partition is created in the table that is there now.
		if out := mustRoute(t, r, rowOf(3, "p2")); out.Count != 5 {
			t.Errorf("%+v", out)
		}
	})
}

// After a restore nothing of the old history is routed to once it is heard of.
func TestRouter_Restored(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		f.must(createDTs("p1"))
		r := openRouter(t, f.client(), RouterOptions{})
		old := mustRoute(t, r, rowOf(3, "p1"))
		f.locked(func() { f.restore(2) })
		f.keyed(3).must(createDTs("p1"))
		_, err := r.Retry(t.Context(), old, 1, catalog.ErrUnknownTableOrBucket)
		wantCode(t, "another history", err, catalog.ErrTableNotExist)
		if out := mustRoute(t, r, rowOf(3, "p1")); out.Incarnation.Number != 2 || out.Count != 3 {
			t.Errorf("%+v", out)
		}
	})
}

// Random histories of rescales, drops and re-creations against routers with
// caches of every age: whatever a guard of the newest state accepts is the one
// bucket of the key, per partition id, for ever; and what it refuses is routed
// right within a bounded number of attempts.
func TestRouter_OneBucketForEver(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	inBubble(t, func(t *testing.T) {
		rnd := rand.New(rand.NewPCG(seed, 1))
		f := newFake(t, 1).keyed(2)
		c := f.client()
		routers := make([]*Router, 6)
		for i := range routers {
			routers[i] = openRouter(t, c, RouterOptions{Create: i%2 == 0, Partitions: 2 + 4*i})
		}
		home := map[string]int32{}
		served, refused := 0, 0
		for range 400 {
			name := fmt.Sprint("p", rnd.IntN(4))
			switch rnd.IntN(7) {
			case 0:
				_ = f.do(createDTs(name))
			case 1, 2:
				_ = f.do(dropDTs(name))
			case 3, 4:
				f.must(rescaleTo(int32(1 + rnd.IntN(7))))
			case 5:
				if rnd.IntN(10) == 0 {
					f.must(catalog.DropTable{Table: orders}, createOrders(int32(1+rnd.IntN(7))))
				}
			}
			g := guardOfState(t, f)
			for range 10 {
				r, row := routers[rnd.IntN(len(routers))], rowOf(int32(rnd.IntN(50)), fmt.Sprint("p", rnd.IntN(4)))
				out, attempts, err := serve(t, r, g, row)
				if attempts > 0 {
					refused++
				}
				switch {
				case errors.Is(err, catalog.ErrPartitionNotExists) && !r.o.Create:
					continue
				case errors.Is(err, errNewer):
					g = guardOfState(t, f) // a router created the partition since
					continue
				case err != nil:
					t.Fatal(err)
				}
				served++
				k := fmt.Sprint(out.Table, "/", out.Partition, "/", row[0].GoString())
				if b, ok := home[k]; ok && b != out.Bucket {
					t.Fatalf("%s was in bucket %d and is accepted in %d", k, b, out.Bucket)
				}
				home[k] = out.Bucket
			}
		}
		if served < 500 || refused < 100 {
			t.Errorf("%d rows served, %d refused first: the test did not bite", served, refused)
		}
	})
}

// errNewer is a route that is newer than a guard.
var errNewer = errors.New("the route is newer than the guard")

// serve routes a row until a guard accepts it, as a client does.
func serve(t *testing.T, r *Router, g *routing.Guard, row []routing.Value) (routing.Route, int, error) {
	t.Helper()
	for attempt := range 4 {
		out, err := r.Route(t.Context(), row)
		if err != nil {
			return out, attempt, err
		}
		code := g.Check(out.Request())
		if code == catalog.Done {
			return out, attempt, nil
		}
		next, err := r.Retry(t.Context(), out, 1, code)
		if err == nil {
			if code = g.Check(next.Request()); code == catalog.ErrUnknownTableOrBucket {
				return out, attempt, errNewer
			}
			return out, attempt, fmt.Errorf("%+v may be sent again and is still refused with %v", next, code)
		}
	}
	return routing.Route{}, 4, errors.New("no route was accepted within 4 attempts")
}

// guardOfState is the guard of a server that leads everything at this moment.
func guardOfState(t *testing.T, f *fake) *routing.Guard {
	t.Helper()
	f.mu.Lock()
	st := f.state
	f.mu.Unlock()
	l, err := routing.LayoutOf(st, orders)
	if err != nil {
		t.Fatal(err)
	}
	u := routing.GuardUpdate{
		Incarnation: st.Incarnation(), Revision: st.Revision(), Reset: true, Epochs: map[catalog.TableID]catalog.Epoch{l.Table().ID: l.Table().Epoch},
	}
	for _, p := range l.Known() {
		for b := range p.Count {
			u.Activations = append(u.Activations, routing.Activation{
				Bucket: routing.TableBucket{TableID: l.Table().ID, PartitionID: p.ID, Bucket: b}, Count: p.Count, Leading: true,
			})
		}
	}
	g := routing.NewGuard()
	if err := g.Apply(u); err != nil {
		t.Fatal(err)
	}
	return g
}
