package server

import (
	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// snapshot sends the rows of the state that the watch starts with, if it starts
// with one.
func (w *watcher) snapshot() error {
	st := w.snap
	if st == nil {
		return nil
	}
	w.snap = nil // not kept while the watch lasts
	part := func(rows []*pb.Object, more bool) error {
		return w.send(&pb.WatchResponse{Message: &pb.WatchResponse_Snapshot{
			Snapshot: &pb.WatchSnapshot{Revision: uint64(st.Revision()), Rows: rows, More: more},
		}})
	}
	list := chunks[*pb.Object]{send: func(rows []*pb.Object) error { return part(rows, true) }}
	tables := func(id catalog.TableID) *catalog.Table {
		t, _ := st.TableByID(id)
		return t
	}
	var failed error
	eachRow(st, func(o catalog.Object, path string) bool {
		if !w.filter.row(o, path) {
			return true
		}
		var row *pb.Object
		if row, failed = api.ObjectToProto(o, tables); failed != nil {
			return false
		}
		return list.add(row)
	})
	if failed != nil {
		return failed
	}
	if list.err != nil {
		return list.err
	}
	return part(list.rows, false)
}

// eachRow calls f with every row of a state and the path of the table it
// belongs to, until f says false.
func eachRow(st *catalog.State, f func(o catalog.Object, path string) bool) {
	cluster := st.Cluster()
	more := true
	row := func(o catalog.Object, path string) bool {
		more = more && f(o, path)
		return more
	}
	row(&cluster, "")
	st.Databases(func(d *catalog.Database) bool { return row(d, "") })
	st.TablesByID(func(t *catalog.Table) bool { return row(t, t.Path) })
	st.TablesByID(func(t *catalog.Table) bool {
		if t.Dropped {
			return true // those that are left have an id, and come below
		}
		st.Partitions(t.ID, "", func(p *catalog.Partition) bool { return row(p, t.Path) })
		return more
	})
	if anyDropped(st) {
		st.PartitionsByID(0, func(p *catalog.Partition) bool {
			t, ok := st.TableByID(p.Table)
			return !ok || !t.Dropped || row(p, t.Path)
		})
	}
	st.Servers(func(v *catalog.Server) bool { return row(v, "") })
	st.Members(func(m *catalog.Member) bool { return row(m, "") })
	st.KeyValues("", func(k *catalog.KeyValue) bool { return row(k, "") })
	st.Counters(func(c *catalog.Counter) bool { return row(c, "") })
	st.DroppedTables(func(d *catalog.DroppedObject) bool { return row(d, d.Path) })
	st.DroppedPartitions(0, func(d *catalog.DroppedObject) bool { return row(d, d.Path) })
	st.DroppedBuckets(func(d *catalog.DroppedObject) bool { return row(d, d.Path) })
	if r := st.Rebalance(); r != nil {
		row(r, "")
	}
	st.Imports(func(i *catalog.Import) bool { return row(i, "") })
	st.Clients(func(c *catalog.Client) bool { return row(c, "") })
}

// anyDropped reports whether partitions of a dropped table are left.
func anyDropped(st *catalog.State) bool {
	found := false
	st.TablesByID(func(t *catalog.Table) bool {
		found = t.Dropped
		return !found
	})
	return found
}
