package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// snapshotChunk is how many bytes of a snapshot one message carries.
const snapshotChunk = 256 << 10

// spool makes a temporary file for a snapshot; remove closes and deletes it.
func (s *Server) spool() (f *os.File, remove func(), err error) {
	f, err = os.CreateTemp(s.cfg.SpoolDir, "stave-snapshot-*.tmp")
	if err != nil {
		return nil, nil, spoolError(err)
	}
	return f, func() {
		if err := errors.Join(f.Close(), os.Remove(f.Name())); err != nil {
			s.cfg.Logger.Warn("temporary file stays", "file", f.Name(), "error", err)
		}
	}, nil
}

// spoolError is a fault of the directory for temporary files.
func spoolError(err error) error {
	return refuse(catalog.ErrNoSpace, "spool a snapshot: %s", err)
}

// SnapshotSave implements pb.ClusterServer. The snapshot is in a file before
// the first byte is sent, so that a slow caller holds up nobody.
func (c *clusterService) SnapshotSave(r *pb.SnapshotSaveRequest, out grpc.ServerStreamingServer[pb.SnapshotChunk]) error {
	want, err := api.ConsistencyFromProto(r.GetConsistency())
	if err != nil {
		return err
	}
	if want.Level == api.Stale {
		return refuse(catalog.ErrInvalidArgument, "consistency.level is STALE, want LINEARIZABLE, or AT_LEAST with the oldest revision that will do")
	}
	f, remove, err := c.s.spool()
	if err != nil {
		return err
	}
	defer remove()
	st, err := c.save(out.Context(), want, f)
	if err != nil {
		return err
	}
	return c.sendFile(f, c.s.header(st), out)
}

// save writes a snapshot of the level that was asked for into a file.
func (c *clusterService) save(ctx context.Context, want api.Consistency, f *os.File) (*catalog.State, error) {
	ctx, cancel := c.s.bounded(ctx)
	defer cancel()
	st, err := c.s.node.Snapshot(ctx, level(want), f)
	return st, fileOrOther(err)
}

func (c *clusterService) sendFile(f *os.File, h *pb.ResponseHeader, out grpc.ServerStreamingServer[pb.SnapshotChunk]) error {
	size, err := f.Seek(0, io.SeekEnd)
	if err != nil {
		return spoolError(err)
	}
	buf := make([]byte, snapshotChunk)
	for off := int64(0); off < size; {
		n, err := f.ReadAt(buf[:min(int64(len(buf)), size-off)], off)
		if err != nil {
			return spoolError(err)
		}
		off += int64(n)
		if err := out.Send(&pb.SnapshotChunk{Header: h, Data: buf[:n], Size: uint64(size), Last: off == size}); err != nil {
			return err
		}
	}
	return nil
}

// SnapshotRestore implements pb.ClusterServer. Nothing is handed to the node
// before the last chunk is here, and it verifies all of it before it changes
// anything.
func (c *clusterService) SnapshotRestore(in grpc.ClientStreamingServer[pb.SnapshotRestoreRequest, pb.SnapshotRestoreResponse]) error {
	if c.s.node.Leader() != c.s.id {
		return &raftnode.NotLeaderError{}
	}
	f, remove, err := c.s.spool()
	if err != nil {
		return err
	}
	defer remove()
	if err := c.receive(in, f); err != nil {
		return err
	}
	if _, err := f.Seek(0, io.SeekStart); err != nil {
		return spoolError(err)
	}
	inc, err := c.s.node.Restore(in.Context(), f)
	if err != nil {
		return restoreError(err)
	}
	ctx, cancel := c.s.bounded(in.Context())
	defer cancel()
	st, err := c.s.node.Read(ctx, raftnode.Linearizable.In(inc))
	if err != nil {
		return fmt.Errorf("restored as incarnation %s, which cannot be read: %w: %w", inc, catalog.ErrOutcomeUnknown, err)
	}
	return in.SendAndClose(&pb.SnapshotRestoreResponse{Header: c.s.header(st)})
}

// receive writes the chunks of a caller into a file.
func (c *clusterService) receive(in grpc.ClientStreamingServer[pb.SnapshotRestoreRequest, pb.SnapshotRestoreResponse], f *os.File) error {
	size := int64(0)
	for {
		m, err := in.Recv()
		if errors.Is(err, io.EOF) {
			return refuse(catalog.ErrInvalidArgument, "the snapshot ends after %d bytes without a chunk marked last", size)
		}
		if err != nil {
			return err
		}
		if n := len(m.GetData()); n > snapshotChunk {
			return &catalog.Error{Code: catalog.ErrTooLarge, Limit: snapshotChunk, Size: uint64(n), Message: fmt.Sprintf("data of %d bytes is above %d", n, snapshotChunk)}
		}
		if size += int64(len(m.GetData())); size > c.s.cfg.MaxSnapshot {
			return &catalog.Error{
				Code: catalog.ErrTooLarge, Limit: uint64(c.s.cfg.MaxSnapshot), Size: uint64(size),
				Message: fmt.Sprintf("the snapshot is above %d bytes", c.s.cfg.MaxSnapshot),
			}
		}
		if _, err := f.Write(m.GetData()); err != nil {
			return spoolError(err)
		}
		if m.GetLast() {
			return nil
		}
		if c.s.isClosing() {
			return closingError()
		}
	}
}

// fileOrOther gives a fault of the spool its code.
func fileOrOther(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return spoolError(err)
	}
	return err
}

// restoreError gives a snapshot that does not verify its code: an error of the
// node has one, or is of a file.
func restoreError(err error) error {
	var code catalog.Code
	var pe *fs.PathError
	switch {
	case errors.As(err, &code), errors.Is(err, raftnode.ErrClosed), isForeign(err):
		return err
	case errors.As(err, &pe):
		return spoolError(err)
	}
	return refuse(catalog.ErrCorruptMessage, "%s", err)
}
