//go:build !race

package client

import "testing"

// A route of a partition that is known allocates nothing.
func TestRouter_NoAllocation(t *testing.T) {
	f := newFake(t, 1).keyed(4)
	f.must(createDTs("p1"))
	r := openRouter(t, f.client(), RouterOptions{})
	row := rowOf(3, "p1")
	ctx := t.Context()
	mustRoute(t, r, row)
	if n := testing.AllocsPerRun(1000, func() { _, _ = r.Route(ctx, row) }); n != 0 {
		t.Errorf("%v allocations a route", n)
	}
}
