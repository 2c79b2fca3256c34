package testcluster

import (
	"fmt"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/stavedb/stave/internal/raftlog"
)

// DiskMode is how a disk behaves.
type DiskMode string

// The modes of a disk.
const (
	DiskGood  DiskMode = "good"
	DiskFull  DiskMode = "full"  // appends fail with ENOSPC before anything is written
	DiskStall DiskMode = "stall" // appends hang until the mode changes
)

// Disk is the seam through which disks fail. It implements raftnode.Faults.
type Disk struct {
	mu            sync.Mutex
	mode          DiskMode
	changed       chan struct{} // closed by the next Set
	full, stalled atomic.Int64
}

// NewDisk returns a good disk.
func NewDisk() *Disk { return &Disk{mode: DiskGood, changed: make(chan struct{})} }

// Set changes the mode; writes that hang go on.
func (d *Disk) Set(m DiskMode) error {
	if m != DiskGood && m != DiskFull && m != DiskStall {
		return fmt.Errorf("disk mode %q: want %s, %s or %s", m, DiskGood, DiskFull, DiskStall)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.mode = m
	close(d.changed)
	d.changed = make(chan struct{})
	return nil
}

// Before implements raftnode.Faults.
func (d *Disk) Before(op raftlog.Op) error {
	counted := false
	for {
		d.mu.Lock()
		mode, changed := d.mode, d.changed
		d.mu.Unlock()
		switch {
		case mode == DiskFull && op != raftlog.OpDelete:
			d.full.Add(1)
			return syscall.ENOSPC
		case mode == DiskStall:
			if !counted {
				d.stalled.Add(1)
				counted = true
			}
			<-changed
		default:
			return nil
		}
	}
}

// After implements raftnode.Faults.
func (d *Disk) After(raftlog.Op) error { return nil }

// Clock is a clock whose wall time can be made to jump. It implements
// raftnode.Clock.
type Clock struct {
	origin time.Time
	offset atomic.Int64
}

// NewClock returns a clock that tells the right time.
func NewClock() *Clock { return &Clock{origin: time.Now()} }

// Jump moves the wall clock.
func (c *Clock) Jump(by time.Duration) { c.offset.Add(int64(by)) }

// Wall implements raftnode.Clock.
func (c *Clock) Wall() time.Time { return time.Now().Add(time.Duration(c.offset.Load())) }

// Monotonic implements raftnode.Clock.
func (c *Clock) Monotonic() time.Duration { return time.Since(c.origin) }
