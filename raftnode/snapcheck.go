package raftnode

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"hash/crc64"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/internal/failpoint"
	"github.com/stavedb/stave/internal/raftlog"
)

// damagedDir is where damaged snapshots are set aside, below the snapshots.
const damagedDir = "damaged"

// foundSnapshot is a snapshot as its directory is named. Raft orders by what
// metas say; a damaged meta must not say which snapshot is the newest.
type foundSnapshot struct {
	id          string
	term, index uint64
	ms          int64
	err         error // what is wrong with it; nil: whole
}

// choose decides which snapshot the node starts from, before raft looks at any.
// That is the newest. A damaged one is set aside if the one before is whole and
// the log holds everything from there to where the damaged one ended; otherwise
// the node is refused, for it would start with a hole.
func (s *snapshotStore) choose(stores *raftlog.Stores, report func(id, action string, err error)) error {
	found, err := s.reap()
	if err != nil || len(found) == 0 {
		return err
	}
	for i := range found {
		found[i].err = s.check(found[i])
	}
	newest := found[0]
	if newest.err != nil {
		if err := reachesBack(stores, found); err != nil {
			return fmt.Errorf("%w: newest snapshot %s: %w; %w", ErrCorrupt, s.folder(newest.id), newest.err, err)
		}
	}
	for _, f := range found {
		if f.err == nil {
			continue
		}
		to := filepath.Join(s.dir, damagedDir, f.id)
		if err := s.setAside(f.id, to); err != nil {
			return fmt.Errorf("set damaged snapshot aside: %w", err)
		}
		report(f.id, "set aside as "+to, f.err)
	}
	return nil
}

// find lists the snapshots, newest first.
func (s *snapshotStore) find() ([]foundSnapshot, error) {
	entries, err := os.ReadDir(filepath.Join(s.dir, raftSnapshots))
	if err != nil {
		return nil, fmt.Errorf("list snapshots: %w", err)
	}
	var out []foundSnapshot
	for _, e := range entries {
		f := foundSnapshot{id: e.Name()}
		if _, err := fmt.Sscanf(f.id, "%d-%d-%d", &f.term, &f.index, &f.ms); !e.IsDir() || strings.HasSuffix(f.id, unfinished) {
			continue
		} else if err != nil || f.id != fmt.Sprintf("%d-%d-%d", f.term, f.index, f.ms) {
			if _, err := os.Stat(filepath.Join(s.folder(f.id), metaFile)); err == nil {
				return nil, fmt.Errorf("%w: %s is not the name of a snapshot", ErrCorrupt, s.folder(f.id))
			}
			continue // nothing of ours, and raft does not read it either
		}
		out = append(out, f)
	}
	slices.SortFunc(out, func(a, b foundSnapshot) int {
		return cmp.Or(cmp.Compare(b.term, a.term), cmp.Compare(b.index, a.index), cmp.Compare(b.ms, a.ms))
	})
	return out, nil
}

// check reports what is wrong with a snapshot. It reads all of it.
func (s *snapshotStore) check(f foundSnapshot) error {
	dir := s.folder(f.id)
	m, err := readMeta(dir)
	if err != nil {
		return fmt.Errorf("%s: %w", metaFile, err)
	}
	if m.ID != f.id || m.Term != f.term || m.Index != f.index {
		return fmt.Errorf("%s says it is %s, term %d, index %d", metaFile, m.ID, m.Term, m.Index)
	}
	sum, err := os.ReadFile(filepath.Join(dir, metaSum))
	if err != nil {
		return fmt.Errorf("%s: %w", metaSum, err)
	}
	if !bytes.Equal(sum, m.sum()) {
		return fmt.Errorf("checksum of %s is wrong", metaFile)
	}
	file, err := os.Open(filepath.Join(dir, contentFile))
	if err != nil {
		return fmt.Errorf("%s: %w", contentFile, err)
	}
	defer file.Close() //nolint:errcheck // only read
	hash := crc64.New(crc64.MakeTable(crc64.ECMA))
	size, err := io.Copy(hash, file)
	switch {
	case err != nil:
		return fmt.Errorf("%s: %w", contentFile, err)
	case size != m.Size:
		return fmt.Errorf("%s has %d bytes instead of %d", contentFile, size, m.Size)
	case !bytes.Equal(hash.Sum(nil), m.CRC):
		return fmt.Errorf("checksum of %s is wrong", contentFile)
	}
	return nil
}

// reachesBack reports why the log cannot stand in for the newest snapshot: the
// one before must be whole, and the log hold everything between the two.
func reachesBack(stores *raftlog.Stores, found []foundSnapshot) error {
	newest := found[0]
	if len(found) < 2 {
		return errors.New("there is no older one")
	}
	old := found[1]
	if old.err != nil {
		return fmt.Errorf("the older one, %s, is damaged too: %w", old.id, old.err)
	}
	first, err := stores.Log().FirstIndex()
	if err != nil {
		return fmt.Errorf("first index of the log: %w", err)
	}
	last, err := stores.Log().LastIndex()
	if err != nil {
		return fmt.Errorf("last index of the log: %w", err)
	}
	if first == 0 || first > old.index+1 || last < newest.index {
		return fmt.Errorf("the older one ends at index %d, and the log holds only %d to %d", old.index, first, last)
	}
	for _, f := range []foundSnapshot{old, newest} {
		if l, err := stores.Get(f.index); err == nil && l.Term != f.term || err != nil && !errors.Is(err, raft.ErrLogNotFound) {
			return fmt.Errorf("the log has another entry at index %d than snapshot %s: %w", f.index, f.id, errors.Join(err))
		}
	}
	return nil
}

// setAside moves a damaged snapshot to where raft does not look.
func (s *snapshotStore) setAside(id, to string) error {
	if err := os.MkdirAll(filepath.Dir(to), 0o700); err != nil {
		return err
	}
	if err := os.Rename(s.folder(id), to); err != nil {
		return err
	}
	failpoint.Hit(failpoint.SnapshotAside)
	for _, dir := range []string{s.dir, filepath.Dir(to), filepath.Join(s.dir, raftSnapshots)} {
		if err := syncDir(dir); err != nil {
			return err
		}
	}
	return nil
}

// aside returns the paths of the snapshots that were set aside.
func (s *snapshotStore) aside() []string {
	list, err := filepath.Glob(filepath.Join(s.dir, damagedDir, "*"))
	if err != nil {
		return nil // the pattern is good
	}
	return list
}
