package raftnode

import (
	"bytes"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
)

// When a majority is gone for good, the state of the node that is left goes into a
// new cluster, with a later incarnation. Nothing of it passes for linearizable.
func TestNode_SnapshotOfSurvivor(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		lost := newCluster(t, 3, store, nil)
		l := lost.leader()
		last := lost.propose(l, catalog.PutKV{Key: "k", Value: []byte("kept")})
		lost.converge()
		left := lost.followers()[0]
		for id := range lost.nodes {
			if id != left.cfg.ID {
				lost.stop(id)
			}
		}
		var file bytes.Buffer
		if _, err := left.Snapshot(lost.timeout(3*time.Second), Linearizable, &file); err == nil || file.Len() > 0 {
			t.Errorf("a linearizable snapshot without a majority: %d bytes, %v", file.Len(), err)
		}
		if _, err := left.Snapshot(lost.timeout(3*time.Second), AtLeast(last.Revision+1000), &file); err == nil || file.Len() > 0 {
			t.Errorf("a snapshot from the future: %d bytes, %v", file.Len(), err)
		}
		st, err := left.Snapshot(lost.timeout(3*time.Second), AtLeast(last.Revision), &file)
		mustDo(t, err)
		if st.Revision() < last.Revision {
			t.Errorf("revision %d in the snapshot, %d was acknowledged", st.Revision(), last.Revision)
		}

		found := newCluster(t, 1, store, func(cfg *Config) { cfg.ClusterToken = "another" })
		n := found.leader()
		inc, err := n.Restore(found.timeout(30*time.Second), &file)
		mustDo(t, err)
		if inc.Compare(st.Incarnation()) <= 0 {
			t.Errorf("incarnation %v after %v", inc, st.Incarnation())
		}
		now, err := n.Read(found.timeout(5*time.Second), Linearizable)
		mustDo(t, err)
		if v, ok := now.KeyValue("k"); !ok || string(v.Value) != "kept" {
			t.Errorf("the key after the restore: %v", v)
		}
	})
}
