package raftlog

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/hashicorp/go-hclog"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	wal "github.com/hashicorp/raft-wal"
	walfs "github.com/hashicorp/raft-wal/fs"
	"github.com/hashicorp/raft-wal/segment"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"
)

// Names in Config.Dir. Frozen.
const (
	stableName = "stable.db"
	boltName   = "log.db"
	walName    = "wal"
)

// defaultSegmentBytes is a segment of raft-wal. The library's 64 MiB are
// preallocated and never faster.
const defaultSegmentBytes = 8 << 20

// boltOptions: the map freelist because the array one gets slow after big
// deletions, and no freelist on disk because each commit would write it all.
func boltOptions() *bbolt.Options {
	return &bbolt.Options{
		Timeout:        lockWait,
		FreelistType:   bbolt.FreelistMapType,
		NoFreelistSync: true,
	}
}

func openBolt(file string) (*raftboltdb.BoltStore, error) {
	if err := checkBoltSize(file); err != nil {
		return nil, err
	}
	s, err := raftboltdb.New(raftboltdb.Options{Path: file, BoltOptions: boltOptions()})
	if err != nil {
		return nil, boltError(file, err)
	}
	return s, syncDir(filepath.Dir(file))
}

func boltError(file string, err error) error {
	switch {
	case errors.Is(err, berrors.ErrTimeout):
		return fmt.Errorf("%s: %w", file, ErrLocked)
	case errors.Is(err, berrors.ErrInvalid), errors.Is(err, berrors.ErrChecksum), errors.Is(err, berrors.ErrVersionMismatch):
		return &CorruptError{Kind: KindBolt, File: file, Err: err}
	default:
		return fmt.Errorf("%s: %w", file, err)
	}
}

// makeDirs creates the directories. Only Open does: one that is gone when a store
// is re-opened was removed, and a new one would look like an empty log.
func (c *Config) makeDirs() error {
	dir := c.Dir
	if c.Kind == KindWAL {
		dir = filepath.Join(c.Dir, walName)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return errors.Join(syncDir(filepath.Dir(c.Dir)), syncDir(c.Dir))
}

func (c *Config) openStable() (stableFile, error) {
	return openBolt(filepath.Join(c.Dir, stableName))
}

func (c *Config) openLog() (logFile, error) {
	if c.Kind == KindBolt {
		return openBolt(filepath.Join(c.Dir, boltName))
	}
	return openWAL(filepath.Join(c.Dir, walName), c.segmentBytes, c.Faults, c.Logger)
}

func openWAL(dir string, size int, faults Faults, log *slog.Logger) (logFile, error) {
	meta := &walMeta{faults: faults, log: log}
	filer := &walFiler{Filer: segment.NewFiler(dir, walfs.New()), dir: dir, meta: meta}
	w, err := wal.Open(dir, wal.WithMetaStore(meta), wal.WithSegmentFiler(filer), wal.WithSegmentSize(size), wal.WithLogger(walLogger(log)))
	if err != nil {
		err = errors.Join(err, meta.Close()) // or its lock stays
		if errors.Is(err, types.ErrCorrupt) || errors.Is(err, fs.ErrNotExist) || errors.Is(err, io.ErrUnexpectedEOF) {
			return nil, &CorruptError{Kind: KindWAL, File: dir, Err: err}
		}
		return nil, err
	}
	// raft-wal syncs the directory after the first append of a segment it
	// created, but not of one that a kill left empty and it opened again.
	if err := syncDir(dir); err != nil {
		return nil, errors.Join(err, w.Close())
	}
	return w, nil
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

// walLogger passes the library's complaints on; it has errors that it only logs.
func walLogger(log *slog.Logger) hclog.Logger {
	return hclog.New(&hclog.LoggerOptions{
		Name: "raft-wal", Level: hclog.Warn, DisableTime: true, Output: lineLogger{log},
	})
}

type lineLogger struct{ log *slog.Logger }

func (l lineLogger) Write(p []byte) (int, error) {
	l.log.Warn("log library", "text", strings.TrimSpace(string(p)))
	return len(p), nil
}
