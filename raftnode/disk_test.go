package raftnode

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/raftlog"
)

// sickDisk is a disk whose writes hang or fail while it is told so.
type sickDisk struct {
	mu   sync.Mutex
	hang chan struct{}
	err  error
}

func (d *sickDisk) Before(op raftlog.Op) error {
	d.mu.Lock()
	hang, err := d.hang, d.err
	d.mu.Unlock()
	if op == raftlog.OpOpen {
		return nil
	}
	if hang != nil {
		<-hang
	}
	return err
}

func (d *sickDisk) After(raftlog.Op) error { return nil }

// makeHang lets writes hang until the returned function is called.
func (d *sickDisk) makeHang() (cure func()) {
	ch := make(chan struct{})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.hang = ch
	return sync.OnceFunc(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.hang = nil
		close(ch)
	})
}

// makeFail lets writes fail until the returned function is called.
func (d *sickDisk) makeFail(err error) (cure func()) {
	set := func(err error) {
		d.mu.Lock()
		defer d.mu.Unlock()
		d.err = err
	}
	set(err)
	return func() { set(nil) }
}

func newSickCluster(t *testing.T, store LogStore) (*cluster, map[string]*sickDisk) {
	disks := map[string]*sickDisk{}
	for i := range 3 {
		disks[fmt.Sprintf("n%d", i+1)] = &sickDisk{}
	}
	return newCluster(t, 3, store, func(c *Config) { c.Faults = disks[c.ID] }), disks
}

func hasHealth(n *Node, code string) bool {
	for _, h := range n.Status().Health {
		if h.Code == code {
			return true
		}
	}
	return false
}

// A leader whose disk hangs or is full is replaced within 6 s, does not lead
// again before its disk is well, answers status and stale reads meanwhile, and
// follows with equal state within 15 s after.
func TestNode_SickLeaderDisk(t *testing.T) {
	tests := []struct {
		name    string
		trouble func(*sickDisk) func()
		code    catalog.Code
	}{
		{"hang", (*sickDisk).makeHang, catalog.ErrDiskStalled},
		{"full", func(d *sickDisk) func() { return d.makeFail(syscall.ENOSPC) }, catalog.ErrNoSpace},
		{"read only", func(d *sickDisk) func() { return d.makeFail(syscall.EROFS) }, catalog.ErrNoSpace},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			eachStore(t, func(t *testing.T, store LogStore) {
				c, disks := newSickCluster(t, store)
				old := c.leader()
				id := old.cfg.ID
				c.propose(old, catalog.CreateDatabase{Name: "shop"})
				cure := tt.trouble(disks[id])
				defer cure()
				go func() { _, _ = old.Propose(c.timeout(time.Second), catalog.CreateDatabase{Name: "doomed"}) }()
				start := time.Now()
				next := c.leaderExcept(id)
				if d := time.Since(start); d > 6*time.Second {
					t.Errorf("another node leads after %s", d)
				}
				c.propose(next, catalog.CreateDatabase{Name: "after"})
				term := old.Status().Term
				for range 200 {
					if old.lead.Load() != nil || old.Status().Role == "leader" {
						t.Fatal("the sick node leads")
					}
					time.Sleep(100 * time.Millisecond)
				}
				if got := old.Status().Term; got != term && tt.name == "hang" {
					t.Errorf("the sick node went from term %d to %d", term, got)
				}
				if !hasHealth(old, tt.code.String()) {
					t.Errorf("health %v, want %s", old.Status().Health, tt.code)
				}
				if st, err := old.Read(c.timeout(time.Second), Stale); err != nil || st.Counts().Databases == 0 {
					t.Errorf("stale read at the sick node: %v", err)
				}
				if n := c.leaderExcept(id); n != next {
					t.Error("the sick node disturbed the new leader")
				}
				cure()
				well := time.Now()
				c.caughtUp(old, next)
				if d := time.Since(well); d > 15*time.Second {
					t.Errorf("equal after %s", d)
				}
				c.converge()
				if h := old.Status().Health; len(h) > 0 {
					t.Errorf("health after the cure: %v", h)
				}
				c.propose(old, catalog.CreateDatabase{Name: "again"})
			})
		})
	}
}

// Close returns within 10 s while the disk hangs, with commands on their way,
// at a leader and at a follower; their fate is unknown, not guessed.
func TestNode_CloseWhileDiskHangs(t *testing.T) {
	for _, leads := range []bool{true, false} {
		t.Run(fmt.Sprintf("leader=%t", leads), func(t *testing.T) {
			eachStore(t, func(t *testing.T, store LogStore) {
				c, disks := newSickCluster(t, store)
				n := c.leader()
				if !leads {
					n = c.followers()[0]
				}
				cure := disks[n.cfg.ID].makeHang()
				ended := make(chan error, 20)
				for i := range cap(ended) {
					go func() {
						_, err := n.Submit(c.timeout(time.Minute), catalog.Envelope{}, catalog.CreateDatabase{Name: fmt.Sprint("d", i)})
						ended <- err
					}()
				}
				time.Sleep(time.Second)
				start := time.Now()
				err := n.Close()
				if d := time.Since(start); d > 10*time.Second {
					t.Errorf("Close took %s", d)
				}
				if err == nil {
					t.Error("Close does not say that a write still hangs")
				}
				for range cap(ended) {
					if err := <-ended; leads && !errors.Is(err, ErrOutcomeUnknown) {
						t.Errorf("command at the leader: %v", err)
					}
				}
				delete(c.nodes, n.cfg.ID)
				cure()
				time.Sleep(10 * time.Second) // the write comes back and the files close
				c.start(n.cfg.ID)
				c.propose(c.leader(), catalog.CreateDatabase{Name: "after"})
				c.converge()
			})
		})
	}
}

// A hang that ends before anybody else was elected leaves a leader that serves.
func TestNode_ShortDiskHang(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c, disks := newSickCluster(t, store)
		for round := range 10 {
			l := c.leader()
			cure := disks[l.cfg.ID].makeHang()
			go func() { _, _ = l.Propose(c.timeout(time.Minute), catalog.PutKV{Key: fmt.Sprint("short", round)}) }()
			time.Sleep(1900*time.Millisecond + time.Duration(round)*20*time.Millisecond)
			cure()
			c.propose(c.leader(), catalog.PutKV{Key: fmt.Sprint("k", round)})
		}
		c.converge()
	})
}

// The second I/O error of a node's life ends it.
func TestNode_SecondIOError(t *testing.T) {
	eachStore(t, func(t *testing.T, store LogStore) {
		c, disks := newSickCluster(t, store)
		n := c.leader()
		disks[n.cfg.ID].makeFail(syscall.EIO)
		_, _ = n.Propose(c.timeout(time.Second), catalog.CreateDatabase{Name: "shop"})
		select {
		case <-n.Done():
		case <-time.After(30 * time.Second):
			t.Fatal("the node goes on")
		}
		if err := n.Err(); !errors.Is(err, syscall.EIO) {
			t.Errorf("Err = %v", err)
		}
		c.propose(c.leaderExcept(n.cfg.ID), catalog.CreateDatabase{Name: "after"})
	})
}
