package main

import (
	"flag"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/internal/testcluster"
	"github.com/stavedb/stave/internal/testhistory"
	"github.com/stavedb/stave/internal/testtorture"
)

var (
	tortureTime   = flag.Duration("torture", 0, "how long TestTorture does harm; default: not at all")
	torturedNodes = flag.Int("nodes", 3, "nodes of TestTorture")
	noPowerLoss   = flag.Bool("no-power-loss", false, "leave power losses out of TestTorture even where they can be had")
)

// mustBite are the faults without which a run of five minutes or more proves
// nothing.
var mustBite = strings.Fields("kill pause isolate partition cut drop reset disk-full disk-stall leader-change installed enospc stalled duplicate compacted events refused")

// Random faults, two kinds at a time, break no promise of a cluster of
// processes.
func TestTorture(t *testing.T) {
	if *tortureTime == 0 {
		t.Skip("takes minutes: make torture, or -torture 5m")
	}
	power := testcluster.CanLosePower()
	if power != nil {
		t.Log(power)
	}
	cfg := testcluster.Config{Dir: t.TempDir(), Nodes: *torturedNodes, OwnDisks: power == nil && !*noPowerLoss, Command: nodeProcess}
	c, err := testcluster.NewProc(cfg)
	if err != nil {
		t.Fatal(err)
	}
	torture(t, c, testtorture.Config{
		Duration: *tortureTime, Seed: *seedFlag, Callers: testtorture.Callers(8), Every: 3 * time.Second, PowerLoss: cfg.OwnDisks,
		Pause: 5 * time.Millisecond, Log: t.Logf,
	}, keptIn(t))
}

// The same in virtual time, for a quarter of a minute.
func TestTorture_Sim(t *testing.T) {
	dir, keep := t.TempDir(), keptIn(t)
	synctest.Test(t, func(t *testing.T) {
		torture(t, testcluster.NewSim(testcluster.Config{Dir: dir, SnapshotThreshold: 50}), testtorture.Config{
			Duration: 15 * time.Second, Seed: *seedFlag, Callers: testtorture.Callers(4), Every: 3 * time.Second, Pause: 100 * time.Millisecond,
		}, keep)
	})
}

func torture(t *testing.T, c *testcluster.Cluster, cfg testtorture.Config, keep string) {
	t.Helper()
	t.Logf("seed %d", cfg.Seed)
	defer func() {
		if err := c.Finish(); err != nil {
			t.Errorf("finish: %v", err)
		}
	}()
	if err := c.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	r, h, err := testtorture.Run(t.Context(), c, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	if cfg.Duration >= 5*time.Minute {
		if err := r.Bites(mustBite...); err != nil {
			t.Error(err)
		}
	}
	if len(r.Problems) > 0 {
		file, err := testhistory.Keep(keep, c, h, r)
		t.Errorf("%d problems; history kept in %s %v; again: -run '%s' -torture %s -seed %d", len(r.Problems), file, err, t.Name(), cfg.Duration, cfg.Seed)
	}
}
