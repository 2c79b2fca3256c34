package raftnode

import (
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
)

func copyDir(t *testing.T, from, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(from)); err != nil {
		t.Fatal(err)
	}
}

// A copy of a single node's directory, as a kill at that moment leaves it, has
// every write that was acknowledged before.
func TestNode_KilledAtAnyMoment(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 1, store, compacting)
		n := c.leader()
		dir := t.TempDir()
		const rounds = 12
		for i := range rounds {
			for k := range 15 {
				c.propose(n, catalog.PutKV{Key: fmt.Sprintf("%d-%d", i, k)})
				time.Sleep(7 * time.Millisecond)
			}
			synctest.Wait()
			copyDir(t, c.config("n1").Dir, filepath.Join(dir, fmt.Sprint(i)))
		}
		c.stop("n1")
		for i := range rounds {
			cfg := c.config("n1")
			cfg.Dir = filepath.Join(dir, fmt.Sprint(i))
			got, err := Open(c.timeout(time.Minute), cfg)
			if err != nil {
				t.Fatalf("copy %d: %v", i, err)
			}
			st, err := got.Read(c.timeout(time.Minute), Linearizable)
			if err != nil {
				t.Errorf("copy %d: %v", i, err)
			} else if keys := st.Counts().Keys; keys < (i+1)*15 {
				t.Errorf("copy %d has %d of %d acknowledged keys", i, keys, (i+1)*15)
			}
			if err := got.Close(); err != nil {
				t.Error(err)
			}
		}
	})
}

// One flipped byte anywhere in a directory never panics a node and never turns
// into another value: the node refuses, stops, or has what was written. Only the
// last batch of raft-wal cannot be told from a write that was cut.
func TestOpen_FlippedByte(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	rnd := rand.New(rand.NewPCG(seed, 0))
	eachStore(t, func(t *testing.T, store LogStore) {
		c := newCluster(t, 1, store, compacting)
		n := c.leader()
		const keys = 60
		for i := range keys {
			c.propose(n, catalog.PutKV{Key: fmt.Sprint(i), Value: fmt.Append(nil, "value ", i)})
			time.Sleep(5 * time.Millisecond)
		}
		c.stop("n1")
		var files []string
		root := c.config("n1").Dir
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if info, _ := d.Info(); err == nil && !d.IsDir() && info.Size() > 0 {
				files = append(files, path)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for i := range 40 {
			path := files[rnd.IntN(len(files))]
			flipped(t, c, path, keys, filepath.Join(c.dir, fmt.Sprint("flip", i)), rnd)
		}
	})
}

func flipped(t *testing.T, c *cluster, path string, keys int, dir string, rnd *rand.Rand) {
	t.Helper()
	cfg := c.config("n1")
	rel, err := filepath.Rel(cfg.Dir, path)
	if err != nil {
		t.Fatal(err)
	}
	copyDir(t, cfg.Dir, dir)
	cfg.Dir = dir
	data, err := os.ReadFile(filepath.Join(dir, rel))
	if err != nil {
		t.Fatal(err)
	}
	at := rnd.IntN(min(len(data), 64<<10)) // large files are mostly empty behind that
	data[at] ^= 1 << rnd.IntN(8)
	if err := os.WriteFile(filepath.Join(dir, rel), data, 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := Open(c.timeout(time.Minute), cfg)
	if err != nil {
		return
	}
	st, err := n.Read(c.timeout(5*time.Second), Linearizable)
	if err == nil {
		if got := st.Counts().Keys; got < keys-1 {
			t.Errorf("%s, byte %d: %d of %d keys", rel, at, got, keys)
		}
		st.KeyValues("", func(kv *catalog.KeyValue) bool {
			if want := "value " + kv.Key; string(kv.Value) != want {
				t.Errorf("%s, byte %d: key %s has value %q", rel, at, kv.Key, kv.Value)
			}
			return true
		})
	}
	_ = n.Close()
}
