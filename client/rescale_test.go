package client

import (
	"context"
	"errors"
	"testing"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// tiered makes the table one whose lake wants to be told.
func (f *fake) tiered(buckets int32) *fake {
	f.t.Helper()
	c := createOrders(buckets)
	c.Properties = []catalog.Property{{Key: catalog.PropLakeFormat, Value: "paimon"}, {Key: catalog.PropLakeEnabled, Value: "true"}}
	f.must(catalog.CreateDatabase{Name: "shop", IfNotExists: true}, c)
	return f
}

func (f *fake) table() *catalog.Table {
	f.mu.Lock()
	defer f.mu.Unlock()
	t, _ := f.state.Table(orders)
	return t
}

// rescale runs something between each propagation and its commit, and returns the
// epochs that were propagated.
func (f *fake) rescale(t *testing.T, n int32, meanwhile func(call int)) (told []catalog.Epoch, err error) {
	t.Helper()
	commits := 0
	f.hook(func(_ *fakeNode, req any) error {
		if _, ok := req.(*pb.RescaleTableRequest); ok {
			if commits++; commits != len(told) {
				t.Errorf("commit %d after %d propagations", commits, len(told))
			}
		}
		return nil
	}, nil)
	c := f.client()
	_, err = c.Rescale(t.Context(), Rescale{Table: orders, Buckets: n, Propagate: func(_ context.Context, tab *catalog.Table) error {
		told = append(told, tab.Epoch)
		if meanwhile != nil {
			meanwhile(len(told))
		}
		return nil
	}})
	return told, err
}

// S76: a conflict is settled from the latest state, with one propagation before
// each commit; conflicts without end are an error after a bounded number, and
// nothing is changed by this caller.
func TestS76_BoundedConflicts(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).tiered(2)
		told, err := f.rescale(t, 6, func(call int) {
			if call == 1 {
				f.must(catalog.RescaleTable{Table: orders, Buckets: 3, Propagated: true})
			}
		})
		if tab := f.table(); err != nil || len(told) != 2 || told[1] != 1 || tab.Buckets != 6 || tab.Epoch != 2 {
			t.Errorf("one conflict: told at epochs %v, %d buckets at epoch %d: %v", told, tab.Buckets, tab.Epoch, err)
		}
		told, err = f.rescale(t, 100, func(call int) {
			f.must(catalog.RescaleTable{Table: orders, Buckets: int32(10 + call), Propagated: true})
		})
		wantCode(t, "conflicts", err, catalog.ErrVersionConflict)
		if tab := f.table(); len(told) != DefaultRescaleAttempts || tab.Buckets != 10+DefaultRescaleAttempts {
			t.Errorf("told at epochs %v, %d buckets", told, tab.Buckets)
		}
	})
}

// S77: a table dropped between read and commit is gone, also if another one has
// its name, which stays as it is.
func TestS77_DroppedMeanwhile(t *testing.T) {
	for _, again := range []bool{false, true} {
		inBubble(t, func(t *testing.T) {
			f := newFake(t, 1).tiered(2)
			told, err := f.rescale(t, 6, func(int) {
				f.must(catalog.DropTable{Table: orders})
				if again {
					f.tiered(2)
				}
			})
			wantCode(t, "rescale", err, catalog.ErrTableNotExist)
			if len(told) != 1 || again && (f.table().Epoch != 0 || f.table().Buckets != 2) {
				t.Errorf("told at epochs %v, table %+v", told, f.table())
			}
		})
	}
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).tiered(2)
		// Conflict first, then another table: the second read tells.
		told, err := f.rescale(t, 6, func(int) {
			f.must(catalog.RescaleTable{Table: orders, Buckets: 3, Propagated: true})
			f.hook(func(_ *fakeNode, req any) error {
				if _, ok := req.(*pb.GetTableRequest); ok {
					f.hookless()
					f.apply(noRef, catalog.DropTable{Table: orders})
					f.apply(noRef, createOrders(2))
				}
				return nil
			}, nil)
		})
		wantCode(t, "rescale", err, catalog.ErrTableNotExist)
		if len(told) != 1 || f.table().Epoch != 0 {
			t.Errorf("told at epochs %v, table %+v", told, f.table())
		}
	})
}

// hookless ends the hook that calls it. The lock is held.
func (f *fake) hookless() { f.before = nil }

// S72 and S78: what can never be committed is not propagated; the lake is told of
// the current count again, because an earlier commit may have been lost; an error
// of the lake, and an epoch that is not the expected one, commit nothing.
func TestRescale_Refusals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		f := newFake(t, 1).tiered(2)
		f.must(catalog.CreateTable{Table: "shop.plain", Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}}, Buckets: catalog.Some[int32](2)})
		ice := createOrders(2)
		ice.Table, ice.Properties = "shop.ice", []catalog.Property{{Key: catalog.PropLakeFormat, Value: "iceberg"}}
		f.must(ice)
		c := f.client()
		down := errors.New("the lake is down")
		calls := 0
		ok := func(context.Context, *catalog.Table) error { calls++; return nil }
		for _, tc := range []struct {
			name  string
			r     Rescale
			want  error
			calls int
		}{
			{"same count", Rescale{Table: orders, Buckets: 2, Propagate: ok}, nil, 1},
			{"no buckets", Rescale{Table: orders, Buckets: 0, Propagate: ok}, catalog.ErrInvalidAlterTable, 0},
			{"not partitioned", Rescale{Table: "shop.plain", Buckets: 4, Propagate: ok}, catalog.ErrTableNotPartitioned, 0},
			{"iceberg", Rescale{Table: "shop.ice", Buckets: 4, Propagate: ok}, catalog.ErrInvalidAlterTable, 0},
			{"missing", Rescale{Table: "shop.none", Buckets: 4, Propagate: ok}, catalog.ErrTableNotExist, 0},
			{"expected epoch", Rescale{Table: orders, Buckets: 4, ExpectedEpoch: catalog.Some[catalog.Epoch](7), Propagate: ok}, catalog.ErrVersionConflict, 0},
			{"nobody tells", Rescale{Table: orders, Buckets: 4}, catalog.ErrInvalidAlterTable, 0},
			{"attempts", Rescale{Table: orders, Buckets: 4, Attempts: 101}, catalog.ErrInvalidArgument, 0},
			{"lake down", Rescale{Table: orders, Buckets: 4, Propagate: func(context.Context, *catalog.Table) error { return down }}, down, 0},
		} {
			calls = 0
			_, err := c.Rescale(t.Context(), tc.r)
			if !errors.Is(err, tc.want) || calls != tc.calls {
				t.Errorf("%s: %v after %d calls, want %v after %d", tc.name, err, calls, tc.want, tc.calls)
			}
			if tab := f.table(); tab.Buckets != 2 || tab.Epoch != 0 {
				t.Errorf("%s: %d buckets at epoch %d", tc.name, tab.Buckets, tab.Epoch)
			}
		}
	})
}

// A Paimon bucket property that a table has all the same is refused.
func TestRescale_PaimonBucketProperty(t *testing.T) {
	for _, key := range paimonBucket {
		tab := &catalog.Table{Path: orders, Buckets: 2, PartitionKeys: []string{"dt"}, CustomProperties: []catalog.Property{{Key: key, Value: "4"}}}
		wantCode(t, key, rescalable(tab, 4), catalog.ErrInvalidConfig)
	}
}
