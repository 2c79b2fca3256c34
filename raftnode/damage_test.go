package raftnode

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
	"github.com/stavedb/stave/internal/raftlog"
)

// snapshotDirs returns the folders of a node's snapshots, newest first.
func snapshotDirs(t *testing.T, cfg Config) []string {
	t.Helper()
	s := &snapshotStore{dir: filepath.Join(cfg.Dir, snapshotDir)}
	found, err := s.find()
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, f := range found {
		out = append(out, s.folder(f.id))
	}
	return out
}

// withSnapshots stops a single node that has two snapshots and a log that reaches
// back to the older one, and returns its state.
func withSnapshots(t *testing.T, c *cluster) *catalog.State {
	t.Helper()
	n := c.leader()
	for i := range 150 {
		c.propose(n, catalog.PutKV{Key: fmt.Sprint("k", i), Value: []byte("v")})
		time.Sleep(4 * time.Millisecond)
	}
	time.Sleep(time.Second)
	for !n.startedOnce() {
		time.Sleep(100 * time.Millisecond)
	}
	st := n.fsm.State()
	c.stop("n1")
	if got := len(snapshotDirs(t, c.config("n1"))); got != 2 {
		t.Fatalf("%d snapshots, want 2", got)
	}
	return st
}

func (n *Node) startedOnce() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.id.Started
}

func flip(t *testing.T, path string) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)/2] ^= 4
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
}

var damages = []struct {
	name string
	do   func(t *testing.T, dir string)
}{
	{"content flipped", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, contentFile)) }},
	{"content cut", func(t *testing.T, dir string) { mustDo(t, os.Truncate(filepath.Join(dir, contentFile), 100)) }},
	{"content gone", func(t *testing.T, dir string) { mustDo(t, os.Remove(filepath.Join(dir, contentFile))) }},
	{"meta flipped", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, metaFile)) }},
	{"meta gone", func(t *testing.T, dir string) { mustDo(t, os.Remove(filepath.Join(dir, metaFile))) }},
	{"sum flipped", func(t *testing.T, dir string) { flip(t, filepath.Join(dir, metaSum)) }},
	{"sum gone", func(t *testing.T, dir string) { mustDo(t, os.Remove(filepath.Join(dir, metaSum))) }},
}

func mustDo(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A damaged newest snapshot is set aside when the log reaches back to the older
// one: nothing is missing, and health says so until somebody looked.
func TestOpen_DamagedSnapshotSetAside(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 1, store, compacting)
		want := withSnapshots(t, c)
		whole := c.config("n1").Dir
		for i, d := range damages {
			cfg := c.config("n1")
			cfg.Dir = filepath.Join(c.dir, fmt.Sprint("copy", i))
			copyDir(t, whole, cfg.Dir)
			newest := snapshotDirs(t, cfg)[0]
			d.do(t, newest)
			n, err := Open(c.timeout(time.Minute), cfg)
			if err != nil {
				t.Errorf("%s: %v", d.name, err)
				continue
			}
			st, err := n.Read(c.timeout(time.Minute), Linearizable)
			if err != nil || st.Counts().Keys != want.Counts().Keys {
				t.Errorf("%s: %d keys, want %d: %v", d.name, st.Counts().Keys, want.Counts().Keys, err)
			}
			health := fmt.Sprint(n.Status().Health)
			if !strings.Contains(health, "SNAPSHOT_DAMAGED") || !strings.Contains(health, filepath.Base(newest)) {
				t.Errorf("%s: health %s", d.name, health)
			}
			mustDo(t, os.RemoveAll(filepath.Join(cfg.Dir, snapshotDir, damagedDir)))
			time.Sleep(2 * dirInterval)
			if h := n.Status().Health; len(h) > 0 {
				t.Errorf("%s: health %v after the directory was deleted", d.name, h)
			}
			if !n.Ready() {
				t.Errorf("%s: node is not ready", d.name)
			}
			mustDo(t, n.Close())
		}
	})
}

// A damaged newest snapshot is refused, naming it, when nothing can stand in for
// it: both are damaged, or the log does not reach back.
func TestOpen_DamagedSnapshotRefused(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 1, store, compacting)
		withSnapshots(t, c)
		whole := c.config("n1").Dir
		tests := []struct {
			name, want string
			do         func(t *testing.T, cfg Config, dirs []string)
		}{
			{"both", "is damaged too", func(t *testing.T, _ Config, dirs []string) { damages[0].do(t, dirs[1]) }},
			{"no older", "there is no older one", func(t *testing.T, _ Config, dirs []string) { mustDo(t, os.RemoveAll(dirs[1])) }},
			{"short log", "the log holds only", func(t *testing.T, cfg Config, _ []string) {
				s, err := raftlog.Open(raftlog.Config{Dir: filepath.Join(cfg.Dir, stateDir), Kind: raftlog.Kind(store), Verify: fsm.VerifyEntry})
				mustDo(t, err)
				first, err := s.Log().FirstIndex()
				mustDo(t, err)
				last, err := s.Log().LastIndex()
				mustDo(t, err)
				mustDo(t, s.Log().DeleteRange(first, last-5))
				mustDo(t, s.Close())
			}},
		}
		for i, tt := range tests {
			cfg := c.config("n1")
			cfg.Dir = filepath.Join(c.dir, fmt.Sprint("copy", i))
			copyDir(t, whole, cfg.Dir)
			dirs := snapshotDirs(t, cfg)
			damages[0].do(t, dirs[0])
			tt.do(t, cfg, dirs)
			n, err := Open(c.timeout(time.Minute), cfg)
			if err == nil {
				err = errors.Join(errors.New("opened"), n.Close())
			}
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), filepath.Base(dirs[0])) {
				t.Errorf("%s: %v", tt.name, err)
			}
		}
	})
}

// A node whose log was deleted, whole or the one segment behind the snapshot, or
// whose stable store was, is refused although it has a snapshot.
func TestOpen_LogDeletedBehindSnapshot(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 1, store, compacting)
		withSnapshots(t, c)
		whole := c.config("n1").Dir
		globs := map[LogStore][]string{LogStoreWAL: {"wal/*.wal", "wal"}, LogStoreBolt: {"log.db"}}[store]
		for i, g := range append(globs, "stable.db") {
			cfg := c.config("n1")
			cfg.Dir = filepath.Join(c.dir, fmt.Sprint("copy", i))
			copyDir(t, whole, cfg.Dir)
			files, err := filepath.Glob(filepath.Join(cfg.Dir, stateDir, g))
			if err != nil || len(files) != 1 {
				t.Fatalf("%s: %d files, %v", g, len(files), err)
			}
			mustDo(t, os.RemoveAll(files[0]))
			n, err := Open(c.timeout(time.Minute), cfg)
			if err == nil {
				err = errors.Join(errors.New("opened"), n.Close())
			}
			if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "stave cluster remove n1") {
				t.Errorf("without %s: %v", g, err)
			}
		}
	})
}

// A node whose directory is removed or replaced while it runs ends by itself, and
// the others go on.
func TestNode_DirectoryRemoved(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 3, store, nil)
		n := c.leader()
		c.propose(n, catalog.CreateDatabase{Name: "shop"})
		mustDo(t, os.Rename(n.cfg.Dir, n.cfg.Dir+".moved"))
		select {
		case <-n.Done():
		case <-time.After(5 * time.Second):
			t.Fatal("the node goes on without its directory")
		}
		if err := n.Err(); !errors.Is(err, ErrDirGone) || !strings.Contains(err.Error(), n.cfg.Dir) {
			t.Errorf("Err = %v", err)
		}
		c.propose(c.leaderExcept(n.cfg.ID), catalog.CreateDatabase{Name: "after"})
		mustDo(t, n.Close())
		delete(c.nodes, n.cfg.ID)
		mustDo(t, os.Rename(n.cfg.Dir+".moved", n.cfg.Dir))
		c.start(n.cfg.ID)
		c.caughtUp(c.nodes[n.cfg.ID], c.leaderExcept(n.cfg.ID))
		c.converge()
	})
}

// logText is what nodes logged.
type logText struct {
	mu sync.Mutex
	b  strings.Builder
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// A snapshot that rots while the node runs is reported when a follower needs it,
// and another one takes its place.
func TestNode_SnapshotRots(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		var logged logText
		c := newCluster(t, 3, store, func(cfg *Config) {
			compacting(cfg)
			cfg.Logger = slog.New(slog.NewTextHandler(&logged, nil))
		})
		n := c.leader()
		late := c.followers()[0].cfg.ID
		c.stop(late)
		c.writeKeys(n, "k", 200)
		time.Sleep(2 * time.Second)
		n = c.leader()
		newest := snapshotDirs(t, n.cfg)[0]
		flip(t, filepath.Join(newest, contentFile))
		c.start(late)
		deadline := time.Now().Add(20 * time.Second)
		for !strings.Contains(logged.String(), "snapshot is damaged") || !strings.Contains(logged.String(), filepath.Base(newest)) {
			if time.Now().After(deadline) {
				t.Fatal("the damage is not reported")
			}
			time.Sleep(time.Millisecond)
		}
		c.writeKeys(n, "more", 30) // raft takes no snapshot of what the last one has
		c.caughtUp(c.nodes[late], n)
		c.converge()
		if h := n.Status().Health; len(h) > 0 {
			t.Errorf("health %v", h)
		}
	})
}
