package client

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// A million routes to one partition cause one metadata call.
func TestRouter_OneCall(t *testing.T) {
	f := newFake(t, 1).keyed(4)
	f.must(createDTs("p1"))
	r := openRouter(t, f.client(), RouterOptions{})
	n := f.traffic()
	row := rowOf(3, "p1")
	for range 1_000_000 {
		if out := mustRoute(t, r, row); out.Bucket != 3 || out.Count != 4 {
			t.Fatalf("%+v", out)
		}
	}
	if got := n.layouts.Load(); got != 1 {
		t.Errorf("%d metadata calls, want 1", got)
	}
}

// S66: without creation a row of a partition that does not exist is refused, and
// nothing is created.
func TestS66_DynamicPartitionOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(4)
		r := openRouter(t, f.client(), RouterOptions{})
		n := f.traffic()
		_, err := r.Route(t.Context(), rowOf(1, "notExistPartition"))
		wantCode(t, "route", err, catalog.ErrPartitionNotExists)
		if n.creations.Load() != 0 {
			t.Error("something was created")
		}
	})
}

// S67: five rows make five partitions; beyond the limit the call itself fails,
// and rows of existing partitions go on.
func TestS67_DynamicPartitionOn(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(4)
		f.must(catalog.SetLimits{Limits: catalog.Limits{Partitions: 10}})
		r := openRouter(t, f.client(), RouterOptions{Create: true})
		var rows [][]routing.Value
		for i := range 5 {
			rows = append(rows, rowOf(int32(i), fmt.Sprint(i)))
		}
		routes, errs := r.RouteAll(t.Context(), rows)
		if errs != nil {
			t.Fatal(errs)
		}
		for i, out := range routes {
			if out.Name() != fmt.Sprint(i) || out.Count != 4 {
				t.Errorf("row %d: %+v", i, out)
			}
		}
		// 5 to 9 fit; all at once, ten more do not, and none of them keeps the others out.
		rows = rows[:0]
		for i := range 20 {
			rows = append(rows, rowOf(1, fmt.Sprint(i)))
		}
		routes, errs = r.RouteAll(t.Context(), rows)
		made, full := 0, 0
		for i := range rows {
			switch {
			case errs[i] == nil && routes[i].Count == 4:
				made++
			case errors.Is(errs[i], catalog.ErrPartitionMaxNum):
				full++
			default:
				t.Errorf("row %d: %+v, %v", i, routes[i], errs[i])
			}
		}
		if made != 10 || full != 10 {
			t.Errorf("%d rows have a route and %d are too many", made, full)
		}
		_, err := r.Route(t.Context(), rowOf(1, "eleventh"))
		wantCode(t, "the eleventh", err, catalog.ErrPartitionMaxNum)
		mustRoute(t, r, rowOf(9, "4"))
	})
}

// S68: a partition that is missing is looked up again by the next call.
func TestS68_LookupOfMissing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(4)
		r := openRouter(t, f.client(), RouterOptions{})
		_, err := r.Route(t.Context(), rowOf(1, "p1"))
		wantCode(t, "before", err, catalog.ErrPartitionNotExists)
		f.must(rescaleTo(6), createDTs("p1"))
		if out := mustRoute(t, r, rowOf(3, "p1")); out.Count != 6 || out.Bucket != 1 || out.Epoch != 1 {
			t.Errorf("%+v", out)
		}
	})
}

// A thousand callers of one missing partition create it once and get one route.
func TestRouter_ThousandCallers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 2).keyed(4)
		r := openRouter(t, f.client(), RouterOptions{Create: true})
		n := f.traffic()
		var wg sync.WaitGroup
		var mu sync.Mutex
		seen := map[routing.BatchKey]int{}
		for range 1000 {
			wg.Go(func() {
				out, err := r.Route(t.Context(), rowOf(1, "new"))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				seen[out.BatchKey()]++
			})
		}
		wg.Wait()
		if len(seen) != 1 || n.creations.Load() != 1 || n.layouts.Load() > 3 {
			t.Errorf("%v by %d creations and %d reads", seen, n.creations.Load(), n.layouts.Load())
		}
	})
}

// While no node answers a thousand callers are blocked without a goroutine or a
// call of their own, more partitions are refused at once, a caller that gives up
// leaves nothing behind, and closing ends them all.
func TestRouter_Blocked(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(4)
		r := openRouter(t, f.client(), RouterOptions{Create: true, Pending: 500})
		hold := make(chan struct{})
		f.mu.Lock()
		f.before = func(*fakeNode, any) error { f.mu.Unlock(); <-hold; f.mu.Lock(); return nil }
		f.mu.Unlock()
		defer close(hold)
		synctest.Wait()
		before := runtime.NumGoroutine()
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		var wg sync.WaitGroup
		errs := make(chan error, 1000)
		for i := range 1000 {
			wg.Go(func() {
				_, err := r.Route(ctx, rowOf(1, fmt.Sprint("p", i%500)))
				errs <- err
			})
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 1000+20 {
			t.Errorf("%d goroutines for 1000 callers", n)
		}
		r.find.mu.Lock()
		if r.find.count != 500 || len(r.find.pending) != 500 {
			t.Errorf("%d lookups, %d pending", r.find.count, len(r.find.pending))
		}
		r.find.mu.Unlock()
		_, err := r.Route(ctx, rowOf(1, "more"))
		wantCode(t, "beyond the limit", err, catalog.ErrBusy)
		short, stop := context.WithCancel(ctx)
		stop()
		_, err = r.Route(short, rowOf(1, "p7"))
		if !errors.Is(err, context.Canceled) {
			t.Errorf("canceled: %v", err)
		}
		if err := r.Close(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		for range 1000 {
			if err := <-errs; !errors.Is(err, ErrClosed) {
				t.Fatalf("after close: %v", err)
			}
		}
		_, err = r.Route(ctx, rowOf(1, "p7"))
		if !errors.Is(err, ErrClosed) {
			t.Errorf("a closed router: %v", err)
		}
	})
}

// A lookup that everybody left before it began is not made.
func TestRouter_AllLeft(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(4)
		r := openRouter(t, f.client(), RouterOptions{Create: true})
		hold := make(chan struct{})
		n := f.traffic()
		count := f.before
		f.mu.Lock()
		f.before = func(n *fakeNode, req any) error {
			f.mu.Unlock()
			<-hold
			f.mu.Lock()
			return count(n, req)
		}
		f.mu.Unlock()
		var wg sync.WaitGroup
		wg.Go(func() { _, _ = r.Route(t.Context(), rowOf(1, "first")) })
		synctest.Wait()
		ctx, cancel := context.WithCancel(t.Context())
		for i := range 10 {
			wg.Go(func() { _, _ = r.Route(ctx, rowOf(1, fmt.Sprint("left", i))) })
		}
		synctest.Wait()
		cancel()
		synctest.Wait()
		close(hold)
		wg.Wait()
		synctest.Wait()
		if n.creations.Load() != 1 || r.find.count != 0 {
			t.Errorf("%d creations, %d lookups left", n.creations.Load(), r.find.count)
		}
	})
}

// A route is made with the one layout that has id and count, whatever rescales
// happen between lookup and creation, and is not changed by later ones.
func TestRouter_OneLayout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		r := openRouter(t, f.client(), RouterOptions{Create: true})
		rescaled := false
		f.hook(func(_ *fakeNode, req any) error {
			if _, ok := req.(*pb.CreatePartitionsRequest); ok && !rescaled {
				rescaled = true
				f.apply(noRef, rescaleTo(4)) // the lookup saw 2
			}
			return nil
		}, nil)
		row := rowOf(2, "p1")
		out := mustRoute(t, r, row)
		if out.Count != 4 || out.Bucket != 2 {
			t.Errorf("%+v, want bucket 2 of 4", out)
		}
		f.must(rescaleTo(3))
		if again := mustRoute(t, r, row); again != out {
			t.Errorf("%+v became %+v", out, again)
		}
	})
}

// A router remembers no more partitions than it may, and routes on.
func TestRouter_BoundedPartitions(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		r := openRouter(t, f.client(), RouterOptions{Create: true, Partitions: 8})
		for i := range 100 {
			for _, p := range []int{i, i / 2} {
				if out := mustRoute(t, r, rowOf(1, fmt.Sprint("p", p))); out.Name() != fmt.Sprint("p", p) {
					t.Fatalf("%+v", out)
				}
			}
			if l, _ := r.Layout(t.Context()); l.Len() > 8 {
				t.Fatalf("%d partitions are remembered", l.Len())
			}
		}
	})
}

// A lookup that fails fails all its callers, and the next one begins anew.
func TestRouter_LookupFails(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		f.must(createDTs("p1"))
		r := openRouter(t, f.client(WithTimeout(time.Second)), RouterOptions{})
		f.hook(func(*fakeNode, any) error { return errDown }, nil)
		_, err := r.Route(t.Context(), rowOf(1, "p1"))
		wantCode(t, "down", err, catalog.ErrUnavailable)
		f.hook(nil, nil)
		mustRoute(t, r, rowOf(1, "p1"))
	})
}

// Bad rows are refused for what they are, without a call.
func TestRouter_BadRows(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		r := openRouter(t, f.client(), RouterOptions{Create: true})
		n := f.traffic()
		for _, tc := range []struct {
			row  []routing.Value
			want error
		}{
			{rowOf(1, "p")[:1], routing.ErrArity},
			{[]routing.Value{routing.Int(1), routing.Null()}, routing.ErrNullKey},
			{[]routing.Value{routing.Int(1), routing.Int(1)}, routing.ErrValueKind},
			{rowOf(1, "a b"), routing.ErrPartitionValue},
		} {
			if _, err := r.Route(t.Context(), tc.row); !errors.Is(err, tc.want) {
				t.Errorf("%v: %v, want %v", tc.row, err, tc.want)
			}
			if _, errs := r.RouteAll(t.Context(), [][]routing.Value{tc.row}); errs == nil || !errors.Is(errs[0], tc.want) {
				t.Errorf("%v among many: %v, want %v", tc.row, errs, tc.want)
			}
		}
		if n.layouts.Load()+n.creations.Load() != 0 {
			t.Errorf("%d reads, %d creations", n.layouts.Load(), n.creations.Load())
		}
	})
}

// Options outside their bounds are all named; a table that is not there is no
// router.
func TestOpenRouter_Problems(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).keyed(2)
		c := f.client()
		_, err := c.OpenRouter(t.Context(), orders, RouterOptions{Partitions: -1, Pending: maxRouterPartitions + 1, Attempts: -5, Assign: 9})
		want := "router of shop.orders: partitions is -1, want 1 to 16777216\npending is 16777217, want 1 to 16777216\n" +
			"attempts is -5, want 1 to 1000\nassign is 9, want 0 (sticky) or 1 (round robin)"
		if err == nil || err.Error() != want {
			t.Errorf("options: %v", err)
		}
		_, err = c.OpenRouter(t.Context(), "shop.none", RouterOptions{})
		wantCode(t, "table", err, catalog.ErrTableNotExist)
	})
}
