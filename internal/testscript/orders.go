package testscript

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"rsc.io/script"

	"github.com/stavedb/stave/internal/testcluster"
)

const nodesUsage = "NODE|leader|follower|followers|majority|all|last|down..."

// each makes an order of one that takes nodes and nothing else.
func (x *run) each(summary string, do func(ids ...string) error) script.Cmd {
	return x.order(nodesUsage, summary, func(args []string) error {
		ids, err := x.nodes(args)
		if err != nil {
			return err
		}
		return do(ids...)
	})
}

// orders are the commands that do harm, or undo it.
func (x *run) orders() map[string]script.Cmd {
	disk := func(mode testcluster.DiskMode) func(...string) error {
		return func(ids ...string) error { return x.c.Disk(mode, ids...) }
	}
	return map[string]script.Cmd{
		"start":      x.each("start nodes; does not wait", func(ids ...string) error { return x.c.Start(ids...) }),
		"stop":       x.each("stop nodes politely", func(ids ...string) error { return x.c.Stop(x.ctx, ids...) }),
		"kill":       x.each("kill nodes", func(ids ...string) error { return x.c.Kill(ids...) }),
		"power-loss": x.each("kill nodes and lose what they did not sync", func(ids ...string) error { return x.c.PowerLoss(ids...) }),
		"pause":      x.each("stand nodes still", func(ids ...string) error { return x.c.Pause(ids...) }),
		"resume":     x.each("undo pause", func(ids ...string) error { return x.c.Resume(ids...) }),
		"disk-full":  x.each("make writes fail with ENOSPC", disk(testcluster.DiskFull)),
		"disk-stall": x.each("make writes hang", disk(testcluster.DiskStall)),
		"disk-good":  x.each("undo disk-full and disk-stall", disk(testcluster.DiskGood)),
		"reset": x.each("break all connections of nodes", func(ids ...string) error {
			for _, id := range ids {
				x.c.Reset(id)
			}
			return nil
		}),
		"bridge": x.order("NODE", "cut the others into halves that both reach NODE", func(args []string) error {
			ids, err := x.nodes(args)
			if err == nil {
				x.c.Bridge(ids[0])
			}
			return err
		}),
		"heal":       x.order("", "end all faults; nodes that are down stay so", func([]string) error { return x.c.Heal() }),
		"partition":  x.order("NODES | NODES [| NODES]", "cut groups of nodes from each other", x.partition),
		"cut":        x.order("FROM TO", "stop bytes in one direction; client and archive are hosts, too", x.cut),
		"isolate":    x.order("[-clients] NODES", "cut nodes from all others, and with -clients from those", x.isolate),
		"one-way":    x.order("deaf|mute NODE", "let a node only send, or only receive", x.oneWay),
		"slow":       x.order("NODES DURATION", "delay every byte to and from nodes", x.slow),
		"drop":       x.order("PERCENT%", "make all links lossy", x.drop),
		"clock-jump": x.order("NODES DURATION", "move wall clocks", x.clockJump),
		"add":        x.order("NODE", "add a started spare as non-voter", x.add),
	}
}

func (x *run) partition(args []string) error {
	var groups [][]string
	for group := range strings.SplitSeq(strings.Join(args, " "), "|") {
		ids, err := x.nodes(strings.Fields(group))
		if err != nil {
			return err
		}
		groups = append(groups, ids)
	}
	if len(groups) < 2 {
		return script.ErrUsage
	}
	x.c.Partition(groups...)
	return nil
}

func (x *run) cut(args []string) error {
	if len(args) != 2 {
		return script.ErrUsage
	}
	for i, a := range args {
		if a == testcluster.ClientHost || a == testcluster.ArchiveHost {
			continue
		}
		ids, err := x.nodes([]string{a})
		if err != nil {
			return err
		}
		args[i] = ids[0]
	}
	x.c.Cut(args[0], args[1])
	return nil
}

func (x *run) isolate(args []string) error {
	clients := len(args) > 0 && args[0] == "-clients"
	if clients {
		args = args[1:]
	}
	ids, err := x.nodes(args)
	for _, id := range ids {
		x.c.Isolate(id, clients)
	}
	return err
}

func (x *run) oneWay(args []string) error {
	if len(args) != 2 || args[0] != "deaf" && args[0] != "mute" {
		return script.ErrUsage
	}
	ids, err := x.nodes(args[1:])
	if err == nil {
		x.c.OneWay(ids[0], args[0] == "deaf")
	}
	return err
}

// nodesAndDuration reads NODES DURATION.
func (x *run) nodesAndDuration(args []string) ([]string, time.Duration, error) {
	if len(args) < 2 {
		return nil, 0, script.ErrUsage
	}
	d, err := duration(args[len(args)-1])
	if err != nil {
		return nil, 0, err
	}
	ids, err := x.nodes(args[:len(args)-1])
	return ids, d, err
}

func (x *run) slow(args []string) error {
	ids, d, err := x.nodesAndDuration(args)
	for _, id := range ids {
		x.c.Slow(id, d)
	}
	return err
}

func (x *run) clockJump(args []string) error {
	ids, d, err := x.nodesAndDuration(args)
	if err != nil {
		return err
	}
	return x.c.ClockJump(d, ids...)
}

func (x *run) drop(args []string) error {
	if len(args) != 1 {
		return script.ErrUsage
	}
	n, err := strconv.Atoi(strings.TrimSuffix(args[0], "%"))
	if err != nil || n < 1 || n > 90 {
		return fmt.Errorf("share %q: want 1%% to 90%%", args[0])
	}
	x.c.Drop(float64(n)/100, x.Seed)
	return nil
}

func (x *run) add(args []string) error {
	ids, err := x.nodes(args)
	if err != nil {
		return err
	}
	for _, id := range ids {
		if out, code := x.stave("", "cluster", "add", id+"="+x.c.RaftAddr(id)); code != 0 {
			return fmt.Errorf("add %s: exit code %d: %s", id, code, out)
		}
	}
	return nil
}

// known are the words that check understands. The judges all run in any case:
// the words say what the script is about.
var known = []string{"linearizable", "invariants", "converged", "exactly-once", "watches", "leases", "logs", "hashes"}

func knownWord(w string) bool { return slices.Contains(known, w) }
