package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/snapshots"
)

// snapshotChunk is how many bytes of a file are sent at once.
const snapshotChunk = 256 << 10

func (a *app) snapshotCommand() *cobra.Command {
	return noun("snapshot", "Save, check and restore the whole state",
		a.snapshotSave(),
		a.snapshotCheck("inspect FILE", "Show the header of a snapshot file, without a cluster", snapshots.Inspect),
		a.snapshotCheck("verify FILE", "Check every byte and invariant of a snapshot file, without a cluster", func(r io.Reader) (snapshots.Header, error) {
			return snapshots.Verify(r, catalog.CurrentLevel)
		}),
		a.snapshotRestore())
}

func (a *app) snapshotSave() *cobra.Command {
	return &cobra.Command{
		Use: "save FILE", Short: "Write a snapshot of the whole state to a file", Args: exactArgs(1),
		Long: `Write a snapshot of the whole state to a file, whole or not at all. It holds
everything that was acknowledged before. Where a majority of the voters is gone for
good, --consistency at-least:REV with one --endpoints writes what that node has.`,
		Example: "  stave snapshot save backup.stave",
		RunE: func(c *cobra.Command, args []string) error {
			var header *pb.ResponseHeader
			err := a.stream(c.Context(), func(ctx context.Context, s *session) error {
				return writeFile(args[0], func(w io.Writer) (err error) {
					header, err = s.saveSnapshot(ctx, a.read(), w)
					return err
				})
			})
			if err != nil {
				return err
			}
			return a.showHeader(header)
		},
	}
}

// saveSnapshot receives a whole snapshot.
func (s *session) saveSnapshot(ctx context.Context, read *pb.Consistency, w io.Writer) (*pb.ResponseHeader, error) {
	var header *pb.ResponseHeader
	last := false
	stream, err := s.cluster.SnapshotSave(ctx, &pb.SnapshotSaveRequest{Consistency: read})
	err = receive(stream, err, func(r *pb.SnapshotChunk) error {
		if header == nil {
			header = r.GetHeader()
		}
		last = r.GetLast()
		_, err := w.Write(r.GetData())
		return err
	})
	if err == nil && !last {
		err = &catalog.Error{Code: catalog.ErrUnavailable, Message: "the snapshot's stream ended early"}
	}
	return header, err
}

// snapshotHeader is the JSON of a snapshot file's header.
type snapshotHeader struct {
	File         string              `json:"file"`
	Version      uint8               `json:"version"`
	FeatureLevel uint32              `json:"feature_level"`
	ClusterID    string              `json:"cluster_id"`
	Incarnation  api.IncarnationText `json:"incarnation"`
	Revision     uint64              `json:"revision"`
	WallMS       int64               `json:"wall_ms"`
	Hash         string              `json:"hash"`
	Rows         snapshotRows        `json:"rows"`
}

// snapshotRows is the JSON of the numbers of rows in a snapshot file.
type snapshotRows struct {
	Databases  uint64 `json:"databases"`
	Tables     uint64 `json:"tables"`
	Partitions uint64 `json:"partitions"`
	Servers    uint64 `json:"servers"`
	Members    uint64 `json:"members"`
	Keys       uint64 `json:"keys"`
	Counters   uint64 `json:"counters"`
	Imports    uint64 `json:"imports"`
	Dropped    uint64 `json:"dropped"`
	Rebalances uint64 `json:"rebalances"`
	Clients    uint64 `json:"clients"`
	Results    uint64 `json:"results"`
	Events     uint64 `json:"events"`
}

func (a *app) snapshotCheck(use, short string, check func(io.Reader) (snapshots.Header, error)) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Args: exactArgs(1)}
	c.Example = fmt.Sprintf("  stave snapshot %s backup.stave", c.Name())
	c.RunE = func(_ *cobra.Command, args []string) error {
		h, err := checkSnapshot(args[0], check)
		if err != nil {
			return err
		}
		r := h.Rows
		v := snapshotHeader{
			File: args[0], Version: h.Version, FeatureLevel: uint32(h.Level), ClusterID: h.ClusterID, Incarnation: api.IncarnationText(h.Incarnation),
			Revision: uint64(h.Revision), WallMS: int64(h.Wall), Hash: fmt.Sprintf("%016x", h.Hash), Rows: snapshotRows(r),
		}
		g := newGrid()
		g.add("file", v.File)
		g.add("format version", v.Version)
		g.add("feature level", v.FeatureLevel)
		g.add("cluster", v.ClusterID)
		g.add("incarnation", v.Incarnation)
		g.add("revision", v.Revision)
		g.add("state hash", v.Hash)
		g.add("rows", fmt.Sprintf("%d databases, %d tables, %d partitions, %d keys, %d tablet servers, %d clients, %d events",
			r.Databases, r.Tables, r.Partitions, r.Keys, r.Servers, r.Clients, r.Events))
		return a.show(v, g)
	}
	return c
}

// checkSnapshot gives errors of a file the codes that a restore would give.
func checkSnapshot(path string, check func(io.Reader) (snapshots.Header, error)) (snapshots.Header, error) {
	f, err := os.Open(path)
	if err != nil {
		return snapshots.Header{}, local("open snapshot: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	h, err := check(f)
	switch {
	case err == nil:
		return h, nil
	case errors.Is(err, snapshots.ErrLevel):
		return h, &catalog.Error{Code: catalog.ErrUnsupportedVersion, Message: fmt.Sprintf("%s: %s", path, err)}
	case errors.Is(err, snapshots.ErrCorrupt), errors.Is(err, snapshots.ErrTruncated):
		return h, &catalog.Error{Code: catalog.ErrCorruptMessage, Message: fmt.Sprintf("%s: %s", path, err)}
	default:
		return h, local("read %s: %w", path, err)
	}
}
