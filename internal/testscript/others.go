package testscript

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rsc.io/script"

	"github.com/stavedb/stave/internal/testcluster"
	"github.com/stavedb/stave/internal/testhistory"
	"github.com/stavedb/stave/raftnode"
)

// others are the commands that make a cluster, use it and judge.
func (x *run) others() map[string]script.Cmd {
	return map[string]script.Cmd{
		"cluster": script.Command(script.CmdUsage{
			Summary: "make a cluster and wait for its leader", Args: "NODES [spares=N] [snapshot=ENTRIES] [store=wal|boltdb] [power]",
		}, x.cluster),
		"stave":   x.command("stave", "VERB ARGS...", "run the stave program", func(args []string) (string, []string, error) { return "", args, nil }),
		"via":     x.command("via", "NODE VERB ARGS...", "run the stave program with one node's address", x.viaArgs),
		"code":    x.order("N", "want the last exit code of stave", x.wantCode),
		"writers": script.Command(script.CmdUsage{Summary: "run callers", Args: "N for DURATION [WORKLOAD...]", Async: true}, x.writers),
		"await":   x.order("CONDITION [N] [within DURATION]", "wait for leader, new-leader, ready, equal, installed, calls or stalled", x.await),
		"bit": x.order("FAULT...", "after check: want that faults did something", func(args []string) error {
			if x.report == nil {
				return errors.New("bit comes after check")
			}
			return x.report.Bites(args...)
		}),
		"check": x.order("[WORDS...] [bites FAULT...]", "heal, wait for writes and equal nodes, end the cluster, judge", x.check),
	}
}

func (x *run) cluster(_ *script.State, args ...string) (script.WaitFunc, error) {
	if len(args) == 0 || x.c != nil {
		return nil, script.ErrUsage
	}
	cfg := testcluster.Config{Dir: x.Dir}
	var err error
	if cfg.Nodes, err = strconv.Atoi(args[0]); err != nil || cfg.Nodes < 1 || cfg.Nodes > 7 {
		return nil, fmt.Errorf("nodes %q: want 1 to 7", args[0])
	}
	for _, a := range args[1:] {
		key, value, _ := strings.Cut(a, "=")
		n, nerr := strconv.Atoi(value)
		switch {
		case key == "power":
			cfg.OwnDisks = testcluster.CanLosePower() == nil && x.Kind == "proc"
		case key == "store" && (value == "wal" || value == "boltdb"):
			cfg.LogStore = raftnode.LogStore(value)
		case key == "spares" && nerr == nil:
			cfg.Spares = n
		case key == "snapshot" && nerr == nil:
			cfg.SnapshotThreshold = uint64(n)
		default:
			return nil, fmt.Errorf("option %q: want spares=N, snapshot=N, store=wal|boltdb or power", a)
		}
	}
	if x.c, err = x.Open(cfg); err != nil {
		return nil, err
	}
	x.h = testhistory.New(x.c.Began())
	x.load = testhistory.NewLoad(x.c, x.h, x.Seed)
	x.load.Pause = 20 * time.Millisecond
	if x.Kind == "sim" { // a second costs what its calls cost
		x.load.Pause = 100 * time.Millisecond
	}
	if err := x.c.Open(x.ctx); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(x.ctx)
	x.observe, x.seen = cancel, make(chan struct{})
	go func() {
		defer close(x.seen)
		x.load.Observe(ctx, 100*time.Millisecond)
	}()
	return nil, nil
}

// stave runs one command line and returns what it printed.
func (x *run) stave(endpoint string, args ...string) (string, int) {
	out, errs, code := x.staveBoth(endpoint, args)
	return out + errs, code
}

func (x *run) staveBoth(endpoint string, args []string) (string, string, int) {
	if endpoint == "" {
		endpoint = strings.Join(x.c.Endpoints(), ",")
	}
	var out, errs bytes.Buffer
	code := x.CLI(x.ctx, strings.NewReader(""), &out, &errs, map[string]string{"STAVE_ENDPOINTS": endpoint}, x.c.Dial, args)
	return out.String(), errs.String(), code
}

func (x *run) viaArgs(args []string) (string, []string, error) {
	if len(args) < 2 {
		return "", nil, script.ErrUsage
	}
	ids, err := x.nodes(args[:1])
	if err != nil {
		return "", nil, err
	}
	return x.c.APIAddr(ids[0]), args[1:], nil
}

// command makes a command of the stave program.
func (x *run) command(name, usage, summary string, parse func([]string) (string, []string, error)) script.Cmd {
	return script.Command(script.CmdUsage{Summary: summary, Args: usage}, func(_ *script.State, args ...string) (script.WaitFunc, error) {
		if x.c == nil {
			return nil, errNoCluster
		}
		endpoint, args, err := parse(args)
		if err != nil {
			return nil, err
		}
		out, errs, code := x.staveBoth(endpoint, args)
		x.code = code
		return func(*script.State) (string, string, error) {
			if code != 0 {
				return out, errs, fmt.Errorf("%s: exit code %d: %s", name, code, strings.TrimSpace(errs))
			}
			return out, errs, nil
		}, nil
	})
}

func (x *run) wantCode(args []string) error {
	if len(args) != 1 {
		return script.ErrUsage
	}
	if got := strconv.Itoa(x.code); got != args[0] {
		return fmt.Errorf("exit code %s, want %s", got, args[0])
	}
	return nil
}

func (x *run) writers(_ *script.State, args ...string) (script.WaitFunc, error) {
	if x.c == nil {
		return nil, errNoCluster
	}
	if len(args) < 3 || args[1] != "for" {
		return nil, script.ErrUsage
	}
	n, err := strconv.Atoi(args[0])
	if err != nil || n < 1 || n > 256 {
		return nil, fmt.Errorf("writers %q: want 1 to 256", args[0])
	}
	d, err := duration(args[2])
	if err != nil {
		return nil, err
	}
	kinds := args[3:]
	if len(kinds) == 0 {
		kinds = []string{"kv"}
	}
	before := x.h.Len()
	ctx, cancel := context.WithTimeout(x.ctx, d)
	done := make(chan error, len(kinds))
	for _, kind := range kinds {
		go func() { done <- x.load.Run(ctx, kind, n) }()
	}
	return func(*script.State) (string, string, error) {
		defer cancel()
		var first error
		for range kinds {
			if err := <-done; err != nil && first == nil {
				first = err
			}
		}
		return fmt.Sprintf("%d calls\n", x.h.Len()-before), "", first
	}, nil
}

// await waits for a condition.
func (x *run) await(args []string) error {
	within := 30 * time.Second
	if n := len(args); n >= 2 && args[n-2] == "within" {
		d, err := duration(args[n-1])
		if err != nil {
			return err
		}
		within, args = d, args[:n-2]
	}
	if len(args) == 0 || len(args) > 2 {
		return script.ErrUsage
	}
	want := int64(1)
	if len(args) == 2 {
		n, err := strconv.ParseInt(args[1], 10, 64)
		if err != nil {
			return err
		}
		want = n
	}
	calls := int64(x.h.Len())
	ctx, cancel := context.WithTimeout(x.ctx, within)
	defer cancel()
	var state string
	var met func() bool
	switch args[0] {
	case "leader", "new-leader":
		met = func() bool {
			l := x.c.Leader(ctx)
			state = "leader " + l
			return l != "" && (args[0] == "leader" || l != x.led)
		}
	case "ready":
		met = func() bool { return x.writable(ctx, &state) }
	case "equal":
		met = func() bool { state = x.c.Difference(ctx); return state == "" }
	case "installed":
		met = func() bool {
			m := x.c.Meters()
			state = fmt.Sprintf("%d snapshots installed", m.Installed)
			return m.Installed >= want
		}
	case "stalled":
		met = func() bool { return x.c.Meters().Stalled >= want }
	case "calls":
		met = func() bool {
			n := int64(x.h.Len()) - calls
			state = fmt.Sprintf("%d calls", n)
			return n >= want
		}
	default:
		return fmt.Errorf("condition %q: want leader, new-leader, ready, equal, installed, stalled or calls", args[0])
	}
	for !met() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("%s: not within %s: %s", args[0], within, state)
		case <-time.After(50 * time.Millisecond):
		}
	}
	return nil
}

// writable tries a write through any node.
func (x *run) writable(ctx context.Context, state *string) bool {
	cl, err := x.c.Client(nil)
	if err != nil {
		*state = err.Error()
		return false
	}
	defer func() { _ = cl.Close() }()
	if err := testhistory.Touch(ctx, cl); err != nil {
		*state = err.Error()
		return false
	}
	return true
}

// check heals, demands that everything works again, ends the cluster and judges.
func (x *run) check(args []string) error {
	words, bites := args, []string{}
	if i := slices.Index(args, "bites"); i >= 0 {
		words, bites = args[:i], args[i+1:]
	}
	for _, w := range words {
		if !knownWord(w) {
			return fmt.Errorf("check %q: want words of %v, and then bites with faults", w, known)
		}
	}
	if err := testhistory.Settle(x.ctx, x.c); err != nil {
		return err
	}
	x.endObserving()
	r, err := testhistory.Check(x.c, x.h)
	if err != nil {
		return err
	}
	x.report = r
	if err := r.Bites(bites...); err != nil {
		return err
	}
	if len(r.Problems) > 0 {
		return fmt.Errorf("%d problems, the first: %s", len(r.Problems), r.Problems[0])
	}
	return nil
}
