package raftnode

import (
	"encoding/binary"
	"errors"
	"hash/crc32"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
)

// A rolling upgrade: the level rises when the last member runs the new build, and
// not before; a build below it neither opens an old directory nor joins, and says
// both levels.
func TestNode_RollingUpgrade(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		level := map[string]catalog.FeatureLevel{"n1": 1, "n2": 1, "n3": 1, "n4": 1}
		c := newCluster(t, 3, LogStoreWAL, func(cfg *Config) { cfg.level = level[cfg.ID] })
		for i, id := range []string{"n1", "n2", "n3"} {
			c.propose(c.leader(), catalog.PutKV{Key: id})
			time.Sleep(5 * time.Second)
			if got := c.leader().Status().Level; got != 1 {
				t.Fatalf("level %d with %d of 3 members upgraded", got, i)
			}
			c.stop(id)
			level[id] = 2
			c.start(id)
		}
		time.Sleep(5 * time.Second)
		if got := c.leader().Status().Level; got != 2 {
			t.Fatalf("level %d after all members were upgraded", got)
		}
		c.converge()
		id := c.followers()[0].cfg.ID
		c.stop(id)
		level[id] = 1
		tooOld := func(what string, err error) {
			t.Helper()
			if !errors.Is(err, ErrOldBuild) || !strings.Contains(err.Error(), "level 2") && !strings.Contains(err.Error(), "below 2") ||
				!strings.Contains(err.Error(), "level 1") && !strings.Contains(err.Error(), "build has 1") {
				t.Errorf("%s: %v", what, err)
			}
		}
		n, err := Open(c.timeout(time.Minute), c.config(id))
		if err == nil {
			err = errors.Join(errors.New("opened"), n.Close())
		}
		tooOld("downgraded", err)
		// As when the node was away while the level rose.
		own, err := loadIdentity(Config{ID: id, Dir: c.config(id).Dir, LogStore: LogStoreWAL, level: 2})
		mustDo(t, err)
		own.Level = 1
		mustDo(t, own.save(c.config(id).Dir))
		n, err = Open(c.timeout(time.Minute), c.config(id))
		mustDo(t, err)
		select {
		case <-n.Done():
			tooOld("downgraded while away", n.Err())
		case <-time.After(20 * time.Second):
			t.Error("a node below the level goes on")
		}
		mustDo(t, n.Close())
		_, err = Open(c.timeout(time.Minute), c.config("n4"))
		tooOld("joining", err)
		level[id] = 2
		c.start(id)
		c.propose(c.leader(), catalog.PutKV{Key: "after"})
		c.converge()
	})
}

// An entry that only a newer build knows stops every node that has to apply it,
// in front of it, and again after a restart.
func TestNode_UnknownEntryStops(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 1, store, nil)
		n := c.leader()
		c.propose(n, catalog.CreateDatabase{Name: "shop"})
		for !n.startedOnce() {
			time.Sleep(100 * time.Millisecond)
		}
		entry := []byte{1, 0xee, 1, 0x97, 0, 0, 0, 0xc0, 0, 0, 0xa0, 0x90}
		entry = binary.BigEndian.AppendUint32(entry, crc32.Checksum(entry, crc32.MakeTable(crc32.Castagnoli)))
		n.engine.Load().raft.Apply(entry, time.Second)
		var at uint64
		for round := range 3 {
			select {
			case <-n.Done():
			case <-time.After(10 * time.Second):
				t.Fatalf("round %d: the node goes on", round)
			}
			var stop *fsm.StopError
			if !errors.As(n.Err(), &stop) || !errors.Is(n.Err(), fsm.ErrUnknownKind) || round > 0 && stop.Index != at {
				t.Fatalf("round %d: %v, stopped at %d before", round, n.Err(), at)
			}
			at = stop.Index
			if st := n.fsm.State(); st.Counts().Databases != 1 || uint64(st.Revision()) >= at {
				t.Errorf("round %d: the state is at %d and has %d databases", round, st.Revision(), st.Counts().Databases)
			}
			c.stop("n1")
			n = c.start("n1")
		}
	})
}
