package raftnode

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
)

const (
	identityFile   = "identity.json"
	lockFile       = "LOCK"
	identityFormat = 1
)

// identity says whose a directory is. Frozen: directory format v1.
//
// It is written twice: first without a cluster, before the node says a word to
// anyone, so that its directory id is the same in every answer it gives; then
// with the cluster, before raft opens. Initial holds the directory ids of the
// nodes that began the cluster together, so that a node that is late to
// bootstrap can be told from one whose directory was emptied.
type identity struct {
	Format    int               `json:"format"`
	Node      string            `json:"node_id"`
	Directory string            `json:"directory_id"`
	Cluster   string            `json:"cluster_id,omitempty"`
	LogStore  LogStore          `json:"log_store,omitempty"`
	Initial   map[string]string `json:"initial_directories,omitempty"`
	// Started says that the directory once held a log: without one it must not
	// be used again.
	Started bool `json:"started,omitempty"`
}

// bound reports whether the directory belongs to a cluster.
func (i identity) bound() bool { return i.Cluster != "" }

// clusterID is the hash of the sorted initial cluster and the token.
func clusterID(initial map[string]string, token string) string {
	parts := make([]string, 0, len(initial))
	for id, addr := range initial {
		parts = append(parts, id+"="+addr)
	}
	slices.Sort(parts)
	sum := sha256.Sum256([]byte(strings.Join(parts, ",") + "\x00" + token))
	return hex.EncodeToString(sum[:8])
}

// lockDir creates the directory and takes its lock until the file is closed.
func lockDir(dir string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("create data directory: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock data directory: %w", err)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		return nil, errors.Join(fmt.Errorf("lock data directory %s: %w", dir, ErrDirInUse), f.Close())
	}
	return f, nil
}

// loadIdentity reads the identity of a directory, or makes a new one that is
// not bound to a cluster yet.
func loadIdentity(cfg Config) (identity, error) {
	path := filepath.Join(cfg.Dir, identityFile)
	data, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return newIdentity(cfg)
	}
	if err != nil {
		return identity{}, fmt.Errorf("read identity: %w", err)
	}
	var id identity
	if err := json.Unmarshal(data, &id); err != nil {
		return identity{}, fmt.Errorf("identity file %s: %w: %w", path, ErrCorrupt, err)
	}
	switch {
	case id.Format != identityFormat:
		return identity{}, fmt.Errorf("identity file %s: %w: format %d, this build reads %d", path, ErrCorrupt, id.Format, identityFormat)
	case id.Directory == "" || id.Node == "":
		return identity{}, fmt.Errorf("identity file %s: %w: node or directory id is missing", path, ErrCorrupt)
	case id.Node != cfg.ID:
		return identity{}, fmt.Errorf("%w: %s belongs to node %s, not to %s", ErrForeignDir, cfg.Dir, id.Node, cfg.ID)
	case id.bound() && id.LogStore != cfg.LogStore:
		return identity{}, fmt.Errorf("%w: %s has log store %q, not %q", ErrForeignDir, cfg.Dir, id.LogStore, cfg.LogStore)
	}
	if id.bound() && cfg.ClusterToken != "" && len(cfg.InitialCluster) > 0 {
		if want := clusterID(cfg.InitialCluster, cfg.ClusterToken); id.Initial != nil && id.Cluster != want {
			return identity{}, fmt.Errorf("%w: %s belongs to cluster %s, initial cluster and token make %s", ErrForeignDir, cfg.Dir, id.Cluster, want)
		}
	}
	return id, nil
}

func newIdentity(cfg Config) (identity, error) {
	for _, name := range []string{stateDir, snapshotDir} {
		if _, err := os.Stat(filepath.Join(cfg.Dir, name)); err == nil {
			return identity{}, fmt.Errorf("%w: %s has %s but no %s", ErrCorrupt, cfg.Dir, name, identityFile)
		}
	}
	id := identity{Format: identityFormat, Node: cfg.ID, Directory: randomHex(8)}
	return id, id.save(cfg.Dir)
}

func randomHex(n int) string {
	b := make([]byte, n)
	rand.Read(b) //nolint:errcheck // crypto/rand never fails
	return hex.EncodeToString(b)
}

// save replaces the identity file and returns when it is durable.
func (i identity) save(dir string) error {
	data, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return fmt.Errorf("identity: %w", err)
	}
	if err := writeDurable(filepath.Join(dir, identityFile), append(data, '\n')); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	return nil
}

// writeDurable writes beside the file, syncs, renames and syncs the directory.
func writeDurable(path string, data []byte) (err error) {
	tmp := path + ".tmp"
	f, err := os.OpenFile(tmp, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(data)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	d, err := os.Open(filepath.Dir(path))
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
