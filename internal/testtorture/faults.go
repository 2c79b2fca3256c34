package testtorture

import (
	"context"
	"slices"
	"time"

	"github.com/stavedb/stave/internal/testcluster"
)

// fault is one way to do harm. A fault that finds no node to harm does nothing.
type fault struct {
	name  string
	power bool
	do    func(ctx context.Context, t *torturer) error
}

// faults are all of them.
var faults = []fault{
	{name: "kill leader", do: func(ctx context.Context, t *torturer) error { return t.kill(t.leader(ctx)) }},
	{name: "kill any", do: func(_ context.Context, t *torturer) error { return t.kill(t.any()) }},
	{name: "kill majority", do: func(_ context.Context, t *torturer) error {
		ids := t.c.Nodes()
		return t.kill(ids[:len(ids)/2+1]...)
	}},
	{name: "kill all", do: func(_ context.Context, t *torturer) error { return t.kill(t.c.Nodes()...) }},
	{name: "stop any", do: func(ctx context.Context, t *torturer) error {
		return t.gone(func(id string) error { return t.c.Stop(ctx, id) }, t.any())
	}},
	{name: "restart twice", do: func(ctx context.Context, t *torturer) error {
		id := t.any()
		for range 2 {
			if err := t.kill(id); err != nil {
				return err
			}
			if id == "" {
				return nil
			}
			if err := t.c.Start(id); err != nil {
				return err
			}
			rest(ctx, 500*time.Millisecond)
		}
		return nil
	}},
	{name: "pause leader", do: func(ctx context.Context, t *torturer) error { return t.pause(t.leader(ctx)) }},
	{name: "pause leader briefly", do: func(ctx context.Context, t *torturer) error {
		// Long enough for others to elect and commit while its reads wait.
		id := t.leader(ctx)
		for range 2 {
			if err := t.pause(id); err != nil || id == "" {
				return err
			}
			rest(ctx, 1200*time.Millisecond)
			if !slices.Contains(t.c.Running(), id) {
				return nil
			}
			if err := t.c.Resume(id); err != nil {
				return err
			}
			id = t.leader(ctx)
		}
		return nil
	}},
	{name: "pause any", do: func(_ context.Context, t *torturer) error { return t.pause(t.any()) }},
	{name: "rolling pause", do: func(ctx context.Context, t *torturer) error {
		for _, id := range t.c.Running() {
			if err := t.pause(id); err != nil {
				return err
			}
			rest(ctx, 700*time.Millisecond)
			if err := t.c.Resume(id); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: "isolate leader", do: func(ctx context.Context, t *torturer) error { return t.isolate(t.leader(ctx), false) }},
	{name: "isolate leader from all", do: func(ctx context.Context, t *torturer) error { return t.isolate(t.leader(ctx), true) }},
	{name: "isolate any", do: func(_ context.Context, t *torturer) error { return t.isolate(t.any(), false) }},
	{name: "halves", do: func(_ context.Context, t *torturer) error {
		ids := t.c.Nodes()
		t.r.Shuffle(len(ids), func(i, k int) { ids[i], ids[k] = ids[k], ids[i] })
		t.c.Partition(ids[:len(ids)/2], ids[len(ids)/2:])
		return nil
	}},
	{name: "bridge", do: func(_ context.Context, t *torturer) error {
		ids := t.c.Nodes()
		t.c.Bridge(ids[t.r.IntN(len(ids))])
		return nil
	}},
	{name: "deaf leader", do: func(ctx context.Context, t *torturer) error { return t.oneWay(t.leader(ctx), true) }},
	{name: "mute leader", do: func(ctx context.Context, t *torturer) error { return t.oneWay(t.leader(ctx), false) }},
	{name: "cut answers to clients", do: func(ctx context.Context, t *torturer) error {
		if id := t.leader(ctx); id != "" {
			t.c.Cut(id, testcluster.ClientHost)
		}
		return nil
	}},
	{name: "cut calls of clients", do: func(_ context.Context, t *torturer) error {
		if id := t.any(); id != "" {
			t.c.Cut(testcluster.ClientHost, id)
		}
		return nil
	}},
	{name: "slow leader", do: func(ctx context.Context, t *torturer) error {
		if id := t.leader(ctx); id != "" {
			t.c.Slow(id, 60*time.Millisecond)
		}
		return nil
	}},
	{name: "slow all", do: func(_ context.Context, t *torturer) error {
		for _, id := range t.c.Nodes() {
			t.c.Slow(id, time.Duration(5+t.r.IntN(40))*time.Millisecond)
		}
		return nil
	}},
	{name: "drop", do: func(_ context.Context, t *torturer) error {
		t.c.Drop(0.2, t.r.Uint64())
		return nil
	}},
	{name: "resets", do: func(ctx context.Context, t *torturer) error {
		for range 5 {
			if id := t.any(); id != "" {
				t.c.Reset(id)
			}
			rest(ctx, 200*time.Millisecond)
		}
		return nil
	}},
	{name: "disk full leader", do: func(ctx context.Context, t *torturer) error { return t.disk(testcluster.DiskFull, t.leader(ctx)) }},
	{name: "disk full majority", do: func(_ context.Context, t *torturer) error {
		ids := t.c.Running()
		return t.disk(testcluster.DiskFull, ids[:min(len(ids), len(t.c.Nodes())/2+1)]...)
	}},
	{name: "disk stall leader", do: func(ctx context.Context, t *torturer) error { return t.disk(testcluster.DiskStall, t.leader(ctx)) }},
	{name: "clock jump", do: func(_ context.Context, t *torturer) error {
		id := t.any()
		if id == "" || t.paused(id) {
			return nil
		}
		return t.c.ClockJump(time.Duration(t.r.IntN(121)-60)*time.Minute, id)
	}},
	{name: "power loss leader", power: true, do: func(ctx context.Context, t *torturer) error {
		return t.gone(func(id string) error { return t.c.PowerLoss(id) }, t.leader(ctx))
	}},
	{name: "power loss any", power: true, do: func(_ context.Context, t *torturer) error {
		return t.gone(func(id string) error { return t.c.PowerLoss(id) }, t.any())
	}},
	{name: "power loss all", power: true, do: func(_ context.Context, t *torturer) error {
		return t.gone(func(id string) error { return t.c.PowerLoss(id) }, t.c.Nodes()...)
	}},
}

// gone ends those of the nodes that run.
func (t *torturer) gone(end func(id string) error, ids ...string) error {
	for _, id := range ids {
		if !slices.Contains(t.c.Running(), id) {
			continue
		}
		if t.paused(id) { // signals and orders want a process that goes on
			if err := t.c.Resume(id); err != nil {
				return err
			}
		}
		if err := end(id); err != nil {
			return err
		}
	}
	return nil
}

func (t *torturer) kill(ids ...string) error {
	return t.gone(func(id string) error { return t.c.Kill(id) }, ids...)
}

func (t *torturer) pause(id string) error {
	if id == "" || t.paused(id) || !slices.Contains(t.c.Running(), id) {
		return nil
	}
	return t.c.Pause(id)
}

func (t *torturer) paused(id string) bool { return slices.Contains(t.c.Paused(), id) }

func (t *torturer) isolate(id string, clients bool) error {
	if id != "" {
		t.c.Isolate(id, clients)
	}
	return nil
}

func (t *torturer) oneWay(id string, deaf bool) error {
	if id != "" {
		t.c.OneWay(id, deaf)
	}
	return nil
}

func (t *torturer) disk(mode testcluster.DiskMode, ids ...string) error {
	for _, id := range ids {
		if id == "" || t.paused(id) || !slices.Contains(t.c.Running(), id) {
			continue
		}
		if err := t.c.Disk(mode, id); err != nil {
			return err
		}
	}
	return nil
}
