package raftnode

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// dirInterval is how often a node looks whether its directory is still there.
const dirInterval = time.Second

// watchDir ends the node when its directory is removed or replaced under it. The
// open files go on taking writes that nothing can be started from again, so that
// acknowledging them would be a lie.
func (n *Node) watchDir() {
	for n.sleep(dirInterval) {
		// A disk that hangs may hold the look; Close does not wait for that.
		seen := make(chan error, 1)
		go func() { seen <- n.lookAtDir() }()
		select {
		case err := <-seen:
			if err != nil {
				n.fail(err)
				return
			}
		case <-n.stop:
			return
		case <-n.done:
			return
		}
	}
}

// lookAtDir reports what is gone. An error that says something else is left to
// the writes, which meet it too.
func (n *Node) lookAtDir() error {
	own, err := n.lock.Stat()
	if err != nil {
		return nil //nolint:nilerr // closed meanwhile
	}
	for _, name := range []string{lockFile, identityFile, filepath.Join(stateDir, "stable.db"), filepath.Join(snapshotDir, raftSnapshots)} {
		path := filepath.Join(n.cfg.Dir, name)
		found, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) || err == nil && name == lockFile && !os.SameFile(own, found) {
			return fmt.Errorf("%w: %s was removed or replaced while node %s ran, and what the node acknowledges would be lost with it. "+
				"If the directory cannot be put back, run 'stave cluster remove %s' and then 'stave cluster add %s=%s', and start it with an empty one",
				ErrDirGone, path, n.cfg.ID, n.cfg.ID, n.cfg.ID, n.cfg.AdvertiseRaft)
		}
	}
	n.aside.Store(new(n.snaps.aside()))
	return nil
}
