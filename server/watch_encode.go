package server

import (
	"context"

	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// fragmentBytes is how large a message of an event becomes, about. One change
// is never split.
const fragmentBytes = 128 << 10

// encodeEvent returns the messages of an event as a block of frames; empty if
// a row has no message, which is a fault of this build.
func (s *Server) encodeEvent(ev *catalog.Event, before bool) []byte {
	batch, err := api.EventToProto(ev, before, s.tablesOf(ev))
	if err != nil {
		s.cfg.Logger.Error("event not encoded", "revision", ev.Revision, "error", err)
		return nil
	}
	var block []byte
	changes := batch.GetChanges()
	for {
		n, size := 0, 0
		for n < len(changes) && (n == 0 || size < fragmentBytes) {
			size += proto.Size(changes[n])
			n++
		}
		batch.Changes, changes = changes[:n], changes[n:]
		batch.More = len(changes) > 0
		f, err := proto.Marshal(&pb.WatchResponse{Message: &pb.WatchResponse_Batch{Batch: batch}})
		if err != nil {
			s.cfg.Logger.Error("event not encoded", "revision", ev.Revision, "error", err)
			return nil
		}
		block = appendFrame(block, f)
		if len(changes) == 0 {
			return block
		}
	}
}

// tablesOf finds the table of a partition in the event itself, as when both are
// dropped, or in this node's state. Which state does not matter: an effective
// count never changes.
func (s *Server) tablesOf(ev *catalog.Event) func(catalog.TableID) *catalog.Table {
	var st *catalog.State
	return func(id catalog.TableID) *catalog.Table {
		for _, c := range ev.Changes {
			for _, o := range []catalog.Object{c.After, c.Before} {
				if t, ok := o.(*catalog.Table); ok && t.ID == id {
					return t
				}
			}
		}
		if st == nil {
			var err error
			if st, err = s.node.Read(context.Background(), raftnode.Stale); err != nil { // never waits
				return nil
			}
		}
		t, ok := st.TableByID(id)
		if !ok {
			return nil
		}
		return t
	}
}
