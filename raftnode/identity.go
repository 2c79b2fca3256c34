package raftnode

import (
	"bytes"
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

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/failpoint"
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
//
// The file is one JSON object in exactly one spelling: the fields in this order,
// two blanks of indentation, a newline at its end. Sum is over the same bytes
// with an empty sum, so that no byte can change unnoticed.
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
	// Level is the highest feature level that the cluster was seen to use: a build
	// below it does not open the directory.
	Level catalog.FeatureLevel `json:"feature_level,omitempty"`
	// Sum is a CRC-32C in 8 hex digits.
	Sum string `json:"crc32c"`
}

// encode returns the bytes of the identity file.
func (i identity) encode() ([]byte, error) {
	i.Sum = ""
	data, err := json.MarshalIndent(i, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	i.Sum = string(sumOf(append(data, '\n')))
	if data, err = json.MarshalIndent(i, "", "  "); err != nil {
		return nil, fmt.Errorf("identity: %w", err)
	}
	return append(data, '\n'), nil
}

// decodeIdentity accepts exactly what encode makes of some identity.
func decodeIdentity(data []byte) (identity, error) {
	var i identity
	d := json.NewDecoder(bytes.NewReader(data))
	d.DisallowUnknownFields()
	if err := d.Decode(&i); err != nil {
		return identity{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	}
	if i.Format != identityFormat {
		return identity{}, fmt.Errorf("%w: format %d, this build reads %d", ErrCorrupt, i.Format, identityFormat)
	}
	want, err := i.encode()
	switch {
	case err != nil:
		return identity{}, fmt.Errorf("%w: %w", ErrCorrupt, err)
	case !bytes.Equal(data, want):
		return identity{}, fmt.Errorf("%w: its checksum is %q, which is not that of its content; restore the file from a copy, "+
			"or remove the node from the cluster, empty its directory and add it", ErrCorrupt, i.Sum)
	}
	return i, nil
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
	id, err := decodeIdentity(data)
	if err != nil {
		return identity{}, fmt.Errorf("identity file %s: %w", path, err)
	}
	switch {
	case id.Directory == "" || id.Node == "":
		return identity{}, fmt.Errorf("identity file %s: %w: node or directory id is missing", path, ErrCorrupt)
	case id.Node != cfg.ID:
		return identity{}, fmt.Errorf("%w: %s belongs to node %s, not to %s", ErrForeignDir, cfg.Dir, id.Node, cfg.ID)
	case id.Level > cfg.level:
		return identity{}, fmt.Errorf("%w: %s takes part in a cluster of feature level %d, this build has %d; start a build of level %d or above",
			ErrOldBuild, cfg.Dir, id.Level, cfg.level, id.Level)
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
	data, err := i.encode()
	if err != nil {
		return err
	}
	if err := writeDurable(filepath.Join(dir, identityFile), data, failpoint.IdentityWritten); err != nil {
		return fmt.Errorf("write identity: %w", err)
	}
	failpoint.Hit(failpoint.IdentityDone)
	return nil
}

// writeDurable writes beside the file, syncs, renames and syncs the directory.
// step names the failpoint in front of the rename.
func writeDurable(path string, data []byte, step string) (err error) {
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
	failpoint.Hit(step)
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(filepath.Dir(path))
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}
