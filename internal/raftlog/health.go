package raftlog

import (
	"errors"
	"fmt"
	"sync"
	"syscall"
	"time"
)

// TroubleKind says what the disk does.
type TroubleKind string

// The kinds of trouble.
const (
	// TroubleStalled is a write that takes longer than Config.WriteLimit.
	TroubleStalled TroubleKind = "stalled"
	// TroubleNoSpace is a full disk or an exhausted quota.
	TroubleNoSpace TroubleKind = "noSpace"
	// TroubleReadOnly is a file system that became read-only.
	TroubleReadOnly TroubleKind = "readOnly"
	// TroubleIO is an I/O error, or an error of unknown meaning.
	TroubleIO TroubleKind = "ioError"
)

// Trouble is what keeps a store from writing.
type Trouble struct {
	Kind TroubleKind
	// Op is the operation that hangs or fails.
	Op Op
	// Err is what it returned; nil while it hangs.
	Err error
}

func (t Trouble) String() string {
	if t.Err == nil {
		return fmt.Sprintf("%s %s", t.Op, t.Kind)
	}
	return fmt.Sprintf("%s %s: %v", t.Op, t.Kind, t.Err)
}

// Health is the state of both stores at one moment.
type Health struct {
	// Trouble is the present trouble of the log, else of the stable store,
	// else nil. Since is when the episode began; zero without one.
	Trouble *Trouble
	Since   time.Time
	// Err is set once, by the first corruption or fatal error, and stays: all
	// later writes, or the read that met it, are held until Close.
	Err error
}

// OK reports whether the stores read and write.
func (h Health) OK() bool { return h.Trouble == nil && h.Err == nil }

func kindOf(err error) TroubleKind {
	switch {
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return TroubleNoSpace
	case errors.Is(err, syscall.EROFS):
		return TroubleReadOnly
	default:
		return TroubleIO
	}
}

// health joins what the two disks tell into episodes: one report when the
// first trouble begins, one when the last has ended.
type health struct {
	cfg *Config
	mu  struct {
		sync.Mutex
		trouble   map[string]Trouble // by disk; Invariant: empty outside an episode
		running   map[string]uint64  // the try that runs, by disk; 0 none
		tries     uint64
		since     time.Time
		ioErrors  int
		err       error
		corrupted bool
		fatal     bool
		queue     []func()
	}
	wake chan struct{} // cap 1: queue grew
}

func newHealth(cfg *Config) *health {
	h := &health{cfg: cfg, wake: make(chan struct{}, 1)}
	h.mu.trouble = map[string]Trouble{}
	h.mu.running = map[string]uint64{}
	return h
}

// notify runs the callbacks in order until closing.
func (h *health) notify(closing <-chan struct{}) {
	for {
		h.mu.Lock()
		q := h.mu.queue
		h.mu.queue = nil
		h.mu.Unlock()
		for _, f := range q {
			f()
		}
		if len(q) > 0 {
			continue
		}
		select {
		case <-h.wake:
		case <-closing:
			return
		}
	}
}

// callLocked queues a callback; mu is held.
func (h *health) callLocked(f func()) {
	h.mu.queue = append(h.mu.queue, f)
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// watch is one try under the stall timer.
type watch struct {
	h     *health
	disk  string
	timer *time.Timer
}

// begin notes that a try starts; it is reported as stalled after the limit.
func (h *health) begin(disk string, op Op) *watch {
	h.mu.Lock()
	h.mu.tries++
	id := h.mu.tries
	h.mu.running[disk] = id
	h.mu.Unlock()
	t := time.AfterFunc(h.cfg.WriteLimit, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.mu.running[disk] == id { // else the try ended while the timer fired
			h.badLocked(disk, Trouble{Kind: TroubleStalled, Op: op})
		}
	})
	return &watch{h: h, disk: disk, timer: t}
}

// restart gives the try the whole limit again.
func (w *watch) restart() { w.timer.Reset(w.h.cfg.WriteLimit) }

func (w *watch) end() {
	w.timer.Stop()
	w.h.mu.Lock()
	w.h.mu.running[w.disk] = 0
	w.h.mu.Unlock()
}

func (h *health) bad(disk string, t Trouble) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.badLocked(disk, t)
}

func (h *health) badLocked(disk string, t Trouble) {
	first := len(h.mu.trouble) == 0
	h.mu.trouble[disk] = t
	if !first {
		return
	}
	h.mu.since = time.Now()
	h.cfg.Logger.Warn("disk trouble, holding writes", "trouble", t.String())
	if f := h.cfg.OnTrouble; f != nil {
		h.callLocked(func() { f(t) })
	}
}

// good ends the trouble of one disk.
func (h *health) good(disk string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, ok := h.mu.trouble[disk]; !ok {
		return
	}
	delete(h.mu.trouble, disk)
	if len(h.mu.trouble) > 0 {
		return
	}
	h.cfg.Logger.Info("disk recovered", "took_ms", time.Since(h.mu.since).Milliseconds())
	h.mu.since = time.Time{}
	if f := h.cfg.OnRecovered; f != nil {
		h.callLocked(f)
	}
}

// ioError counts an I/O error and returns how many there have been.
func (h *health) ioError() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.mu.ioErrors++
	return h.mu.ioErrors
}

// corrupt reports damage, once.
func (h *health) corrupt(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.corrupted {
		return
	}
	h.mu.corrupted = true
	if h.mu.err == nil {
		h.mu.err = err
	}
	h.cfg.Logger.Error("log is corrupt, holding raft", "error", err)
	if f := h.cfg.OnCorrupt; f != nil {
		h.callLocked(func() { f(err) })
	}
}

// fatalError reports the end of retrying, once.
func (h *health) fatalError(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.mu.fatal {
		return
	}
	h.mu.fatal = true
	if h.mu.err == nil {
		h.mu.err = err
	}
	h.cfg.Logger.Error("disk is lost, holding raft", "error", err)
	if f := h.cfg.OnFatal; f != nil {
		h.callLocked(func() { f(err) })
	}
}

func (h *health) state() Health {
	h.mu.Lock()
	defer h.mu.Unlock()
	out := Health{Since: h.mu.since, Err: h.mu.err}
	for _, disk := range []string{diskLog, diskStable} {
		if t, ok := h.mu.trouble[disk]; ok {
			out.Trouble = &t
			break
		}
	}
	return out
}
