package testcluster

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/fsm"
	"github.com/stavedb/stave/internal/raftlog"
	"github.com/stavedb/stave/raftnode"
)

// openArchive joins the member that keeps everything.
func (c *Cluster) openArchive(ctx context.Context) error {
	done := make(chan error, 1)
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	go func() {
		n, err := raftnode.Open(ctx, raftnode.Config{
			ID: ArchiveHost, Dir: c.b.dir(ArchiveHost), RaftAddr: c.b.raftAddr(ArchiveHost), InitialCluster: c.initial(), LogStore: c.cfg.LogStore,
			SnapshotThreshold: 1 << 38, TrailingLogs: 1 << 40, Network: c.b.network(ArchiveHost), Logger: c.cfg.Logger,
		})
		c.archive = n
		done <- err
	}()
	for {
		if err := c.addMember(ctx, ArchiveHost); err == nil {
			break
		} else if ctx.Err() != nil {
			return errors.Join(fmt.Errorf("add archive: %w", err), <-done)
		}
		pause(ctx, 200*time.Millisecond)
	}
	if err := <-done; err != nil {
		return fmt.Errorf("archive: %w", err)
	}
	return nil
}

// Archive is the member that keeps the whole log; nil after Finish.
func (c *Cluster) Archive() *raftnode.Node { return c.archive }

// ReadLog reads every entry from a node's directory, which must not be in use.
func ReadLog(dir string, kind raftnode.LogStore) ([]*raft.Log, error) {
	s, err := raftlog.Open(raftlog.Config{Dir: dir, Kind: raftlog.Kind(kind), Verify: fsm.VerifyEntry})
	if err != nil {
		return nil, fmt.Errorf("log in %s: %w", dir, err)
	}
	first, err := s.Log().FirstIndex()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	last, err := s.Log().LastIndex()
	if err != nil {
		return nil, errors.Join(err, s.Close())
	}
	var out []*raft.Log
	for i := first; i <= last && i > 0; i++ {
		l := new(raft.Log)
		if err := s.Log().GetLog(i, l); err != nil {
			return nil, errors.Join(fmt.Errorf("entry %d in %s: %w", i, dir, err), s.Close())
		}
		out = append(out, l)
	}
	return out, s.Close()
}
