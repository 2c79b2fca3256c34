package fsm

import (
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
)

// node is one raft node whose stores outlive it.
type node struct {
	logs  *raft.InmemStore
	snaps raft.SnapshotStore
	addr  raft.ServerAddress
}

func (n *node) start(t *testing.T, f *FSM) *raft.Raft {
	t.Helper()
	conf := raft.DefaultConfig()
	conf.LocalID = raft.ServerID(n.addr)
	conf.Logger = hclog.New(&hclog.LoggerOptions{Output: io.Discard})
	conf.BatchApplyCh = true
	conf.TrailingLogs = 1
	_, trans := raft.NewInmemTransport(n.addr)
	r, err := raft.NewRaft(conf, f, n.logs, n.logs, n.snaps, trans)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func shutdown(t *testing.T, r *raft.Raft) {
	t.Helper()
	if err := r.Shutdown().Error(); err != nil {
		t.Error(err)
	}
}

func awaitLeader(t *testing.T, r *raft.Raft) {
	t.Helper()
	select {
	case <-r.LeaderCh():
	case <-time.After(time.Minute):
		t.Fatal("no leader within a minute")
	}
}

// B11: with the real engine, a snapshot and a compacted log bring the state
// back after a restart; configuration entries move the machine's index.
func TestRaft_SnapshotRestart(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		snaps, err := raft.NewFileSnapshotStore(dir, 2, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		n := &node{logs: raft.NewInmemStore(), snaps: snaps, addr: "n1"}
		f := New(Config{})
		r := n.start(t, f)
		if err := r.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "n1"}}}).Error(); err != nil {
			t.Fatal(err)
		}
		awaitLeader(t, r)
		var futures []raft.ApplyFuture
		for range 5000 {
			futures = append(futures, r.Apply(mustEntry(t, catalog.Envelope{}, catalog.AllocateIDs{Counter: "c", Count: 1}), 0))
		}
		for i, future := range futures {
			if err := future.Error(); err != nil {
				t.Fatal(err)
			}
			res, _ := future.Response().(*catalog.Result)
			if id, ok := res.FirstID(); !ok || id != uint64(i) {
				t.Fatalf("command %d got id %d", i, id)
			}
		}
		config := r.AddNonvoter("x", "x", 0, 0)
		if err := config.Error(); err != nil {
			t.Fatal(err)
		}
		if _, err := f.Wait(t.Context(), config.Index()); err != nil {
			t.Errorf("wait for a configuration entry: %v", err)
		}
		if err := r.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
		last := r.Apply(mustEntry(t, catalog.Envelope{}, catalog.PutKV{Key: "after"}), 0)
		if err := last.Error(); err != nil {
			t.Fatal(err)
		}
		want := f.State()
		shutdown(t, r)

		list, err := snaps.List()
		if err != nil || len(list) != 1 {
			t.Fatalf("%d snapshots: %v", len(list), err)
		}
		again := New(Config{})
		r = n.start(t, again)
		defer shutdown(t, r)
		if _, err := again.Wait(t.Context(), last.Index()); err != nil {
			t.Fatal(err)
		}
		if again.State().Hash() != want.Hash() {
			t.Errorf("hash after restart is %016x, want %016x", again.State().Hash(), want.Hash())
		}
		if first, err := n.logs.FirstIndex(); err != nil || first < 1000 {
			t.Errorf("the log was not compacted: first index %d, %v", first, err)
		}
	})
}

// An entry that cannot be applied holds raft's own goroutine, and shutting down
// still works once the machine is closed; a restart stops there again.
func TestRaft_StopsAgainAfterRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n := &node{logs: raft.NewInmemStore(), snaps: raft.NewInmemSnapshotStore(), addr: "n1"}
		var index uint64
		for run := range 2 {
			f := New(Config{})
			r := n.start(t, f)
			if run == 0 {
				if err := r.BootstrapCluster(raft.Configuration{Servers: []raft.Server{{ID: "n1", Address: "n1"}}}).Error(); err != nil {
					t.Fatal(err)
				}
				awaitLeader(t, r)
				r.Apply(mustEntry(t, catalog.Envelope{}, catalog.PutKV{Key: "before"}), 0)
				r.Apply(seal([]byte{formatV1, 0xee, 1, 0x90, 0x90}), 0)
				r.Apply(mustEntry(t, catalog.Envelope{}, catalog.PutKV{Key: "behind"}), 0)
			}
			_, err := f.Wait(t.Context(), 1_000_000)
			stop, ok := f.Err().(*StopError) //nolint:errorlint // Err promises the type
			if err == nil || !ok {
				t.Fatalf("run %d: %v", run, err)
			}
			if run == 1 && stop.Index != index {
				t.Errorf("stopped at %d, then at %d", index, stop.Index)
			}
			index = stop.Index
			if _, ok := f.State().KeyValue("before"); !ok {
				t.Error("the entry in front was not applied")
			}
			if _, ok := f.State().KeyValue("behind"); ok {
				t.Error("the entry behind was applied")
			}
			f.Close()
			shutdown(t, r)
		}
	})
}
