package raftnode

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stavedb/stave/catalog"
)

// A directory that lost its term and vote, or its log, is refused: its node
// could vote twice in a term, or forget what it acknowledged.
func TestOpen_ForgottenTerm(t *testing.T) {
	for _, lost := range []string{"stable.db", "wal"} {
		t.Run(lost, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 1, LogStoreWAL, nil)
				n := c.leader()
				c.propose(n, catalog.CreateDatabase{Name: "shop"})
				deadline := time.Now().Add(10 * time.Second)
				for started := false; !started && time.Now().Before(deadline); time.Sleep(10 * time.Millisecond) {
					n.mu.Lock()
					started = n.id.Started
					n.mu.Unlock()
				}
				c.stop("n1")
				cfg := c.config("n1")
				if err := os.RemoveAll(filepath.Join(cfg.Dir, stateDir, lost)); err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				again, err := Open(ctx, cfg)
				if err == nil {
					err = errors.Join(errors.New("opened"), again.Close())
				}
				if !errors.Is(err, ErrCorrupt) || !strings.Contains(err.Error(), "stave cluster remove n1") {
					t.Errorf("without %s: %v", lost, err)
				}
			})
		})
	}
}
