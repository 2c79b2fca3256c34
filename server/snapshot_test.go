package server

import (
	"bytes"
	"os"
	"testing"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func (s *served) save() []byte {
	s.t.Helper()
	var out bytes.Buffer
	chunks := all(s.t, must(s.cluster.SnapshotSave(s.ctx(), &pb.SnapshotSaveRequest{}))(s.t), nil)
	for i, c := range chunks {
		out.Write(c.GetData())
		if c.GetLast() != (i == len(chunks)-1) || c.GetHeader().GetRevision() == 0 {
			s.t.Errorf("chunk %d of %d: last %v, header %v", i, len(chunks), c.GetLast(), c.GetHeader())
		}
	}
	if n := chunks[0].GetSize(); n != uint64(out.Len()) {
		s.t.Errorf("%d bytes, %d were announced", out.Len(), n)
	}
	return out.Bytes()
}

func (s *served) restore(data []byte, last bool) (*pb.SnapshotRestoreResponse, error) {
	s.t.Helper()
	stream := must(s.cluster.SnapshotRestore(s.ctx()))(s.t)
	for off := 0; off < len(data); off += 100 << 10 {
		end := min(off+100<<10, len(data))
		if err := stream.Send(&pb.SnapshotRestoreRequest{Data: data[off:end], Last: last && end == len(data)}); err != nil {
			break // the answer says why
		}
	}
	return stream.CloseAndRecv()
}

// A snapshot brings back what it holds, on every node, as a new incarnation;
// watches end with RESTORED, and positions of before are compacted.
func TestSnapshot_SaveAndRestore(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newCluster(t, 3, nil)
		leader, followers := leaderOf(t, nodes)
		value := make([]byte, 50<<10)
		for _, k := range []string{"a", "b", "c", "d", "e", "f", "g"} {
			must(leader.kv.Put(leader.ctx(), &pb.PutRequest{Key: k, Value: value}))(t)
		}
		old := must(leader.cluster.Status(leader.ctx(), &pb.StatusRequest{}))(t).GetHeader()
		data := followers[0].save()
		leader.put("after")
		_, err := followers[0].restore(data, true)
		refusedAs(t, err, catalog.ErrNotLeader)
		var watches []watchStream
		for _, n := range nodes {
			w, _ := n.open(&pb.WatchRequest{})
			watches = append(watches, w)
		}
		r := must(leader.restore(data, true))(t)
		if r.GetHeader().GetIncarnation().GetNumber() <= old.GetIncarnation().GetNumber() || r.GetHeader().GetRevision() <= old.GetRevision() {
			t.Errorf("restored as %v, before %v", r.GetHeader(), old)
		}
		for i, n := range nodes {
			for err = nil; err == nil; {
				_, err = watches[i].Recv()
			}
			refusedAs(t, err, catalog.ErrRestored)
			_, err := n.kv.Get(n.ctx(), &pb.GetRequest{Key: "after"})
			refusedAs(t, err, catalog.ErrKeyNotExist)
			must(n.kv.Get(n.ctx(), &pb.GetRequest{Key: "g"}))(t)
			compactedAndSnapshot(t, n, old)
		}
	})
}

// compactedAndSnapshot starts watches from a revision of an incarnation that is
// over.
func compactedAndSnapshot(t *testing.T, n *served, old *pb.ResponseHeader) {
	t.Helper()
	from := old.GetRevision()
	_, err := must(n.watch.Watch(n.ctx(), &pb.WatchRequest{FromRevision: &from, Incarnation: old.GetIncarnation(), Snapshot: true}))(t).Recv()
	refusedAs(t, err, catalog.ErrRestored)
	_, err = must(n.watch.Watch(n.ctx(), &pb.WatchRequest{FromRevision: &from}))(t).Recv()
	c, ok := refusedAs(t, err, catalog.ErrCompacted).(*api.CompactedError)
	if !ok || uint64(c.Oldest) <= from {
		t.Fatalf("compacted: %+v", c)
	}
	oldest := uint64(c.Oldest)
	_, hello := n.open(&pb.WatchRequest{FromRevision: &oldest})
	if hello.GetOldest() != oldest {
		t.Errorf("hello says %d is the oldest start, the error %d", hello.GetOldest(), oldest)
	}
	w, _ := n.open(&pb.WatchRequest{FromRevision: &from, Snapshot: true})
	rows := 0
	for {
		m, err := w.Recv()
		if err != nil {
			t.Fatal(err)
		}
		if m.GetSnapshot() == nil {
			t.Fatalf("got %v before the whole state", m)
		}
		rows += len(m.GetSnapshot().GetRows())
		if !m.GetSnapshot().GetMore() {
			break
		}
	}
	if rows < 8 {
		t.Errorf("the state has %d rows", rows)
	}
}

// A snapshot that is damaged or not complete changes nothing and leaves no file.
func TestSnapshot_RestoreRefusals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		dir := t.TempDir()
		s := newServed(t, func(c *Config) { c.SpoolDir, c.MaxSnapshot = dir, 1<<20 })
		s.put("k")
		data := s.save()
		damaged := bytes.Clone(data)
		damaged[len(damaged)/2] ^= 1
		before := must(s.cluster.Status(s.ctx(), &pb.StatusRequest{}))(t).GetHeader().GetIncarnation()
		for _, tt := range []struct {
			name string
			data []byte
			last bool
			code catalog.Code
		}{
			{"damaged", damaged, true, catalog.ErrCorruptMessage},
			{"cut", data[:len(data)-9], true, catalog.ErrCorruptMessage},
			{"nothing", []byte("x"), true, catalog.ErrCorruptMessage},
			{"no end", data, false, catalog.ErrInvalidArgument},
			{"too large", make([]byte, 1<<20+1), true, catalog.ErrTooLarge},
		} {
			t.Log(tt.name)
			_, err := s.restore(tt.data, tt.last)
			refusedAs(t, err, tt.code)
		}
		after := must(s.cluster.Status(s.ctx(), &pb.StatusRequest{}))(t).GetHeader().GetIncarnation()
		if before.String() != after.String() {
			t.Errorf("incarnation %v, was %v", after, before)
		}
		if left := must(os.ReadDir(dir))(t); len(left) != 0 {
			t.Errorf("files are left: %v", left)
		}
		level := &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_STALE}
		_, err := must(s.cluster.SnapshotSave(s.ctx(), &pb.SnapshotSaveRequest{Consistency: level}))(t).Recv()
		refusedAs(t, err, catalog.ErrInvalidArgument)
	})
}
