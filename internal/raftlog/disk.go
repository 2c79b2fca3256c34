package raftlog

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"time"

	"github.com/hashicorp/raft-wal/types"
)

// The two disks, as they appear in logs and in the map of troubles.
const (
	diskLog    = "log"
	diskStable = "stable"
)

const (
	retryFirst = 50 * time.Millisecond
	retryMost  = time.Second
)

// disk runs the writes of one store on one goroutine, so that a write which
// hangs holds neither a lock nor a goroutine of raft that cannot be ended.
type disk[T io.Closer] struct {
	name   string
	kind   Kind
	faults Faults
	log    *slog.Logger
	health *health
	open   func() (T, error)
	slot   slot[T]

	// progress tells the stall timer that a long job gets on.
	progress func()

	jobs    chan *job[T]
	closing <-chan struct{}
	dead    chan struct{} // closed when the goroutine has ended and the files are closed
}

// job is one write. try is called until it succeeds or refuses; again tells that
// an earlier try failed and that the store was re-opened since. try itself asks
// Faults.After when its bytes are written.
type job[T any] struct {
	op   Op
	try  func(store T, again bool) error
	then func(error) // called on the goroutine of the disk when it has ended
}

func newDisk[T io.Closer](name string, kind Kind, c *Config, h *health, closing <-chan struct{}, open func() (T, error)) disk[T] {
	return disk[T]{
		name: name, kind: kind, faults: c.Faults, log: c.Logger, health: h, open: open,
		jobs: make(chan *job[T]), closing: closing, dead: make(chan struct{}),
	}
}

// start opens the store and starts the goroutine.
func (d *disk[T]) start() error {
	store, err := d.openStore()
	if err != nil {
		close(d.dead)
		return err
	}
	d.slot.put(store)
	go d.run()
	return nil
}

func (d *disk[T]) openStore() (store T, err error) {
	err = d.faults.Before(OpOpen)
	if err == nil {
		err = d.guard(func() error {
			store, err = d.open()
			return err
		})
	}
	if err != nil {
		return store, fmt.Errorf("open %s: %w", d.name, err)
	}
	return store, nil
}

func (d *disk[T]) run() {
	defer close(d.dead)
	defer d.shut()
	for {
		select {
		case j := <-d.jobs:
			if !d.serve(j) {
				return
			}
		case <-d.closing:
			return
		}
	}
}

func (d *disk[T]) shut() {
	store, ok := d.slot.take()
	if !ok {
		return
	}
	if err := d.guard(store.Close); err != nil {
		d.log.Warn("close of store", "store", d.name, "error", err)
	}
}

// write hands a job to the goroutine and waits for its end. It returns nil, a
// refusal, or ErrClosed: troubles of the disk are waited out.
func (d *disk[T]) write(op Op, try func(store T, again bool) error) error {
	return d.await(&job[T]{op: op, try: try})
}

// await hands a job over and waits for its end.
func (d *disk[T]) await(j *job[T]) error {
	done := make(chan error, 1)
	j.then = func(err error) { done <- err }
	if err := d.hand(j); err != nil {
		return err
	}
	select {
	case err := <-done:
		return err
	case <-d.closing:
		return ErrClosed
	}
}

// hand gives a job to the goroutine, which has ended the one before it.
func (d *disk[T]) hand(j *job[T]) error {
	select {
	case d.jobs <- j:
		return nil
	case <-d.closing:
		return ErrClosed
	}
}

// read runs fn on the open store, concurrently with writes and other reads.
func (d *disk[T]) read(fn func(store T) error) error {
	select {
	case <-d.closing:
		return ErrClosed
	default:
	}
	store, release, err := d.slot.borrow(d.closing)
	if err != nil {
		return err
	}
	defer release()
	return d.guard(func() error { return fn(store) })
}

// serve runs one job to its end; false when the disk was closed meanwhile.
func (d *disk[T]) serve(j *job[T]) bool {
	wait := retryFirst
	sealed := false
	for again := false; ; again = true {
		err := d.attempt(j, again)
		if err == nil || refused(err) {
			d.health.good(d.name)
			j.then(err)
			return true
		}
		if errors.Is(err, types.ErrSealed) && !sealed {
			// A rotation that did not finish, mostly on a full disk. The
			// re-open repairs it, or says what the disk really lacks.
			d.log.Warn("log segment was left sealed, re-opening", "error", err)
			sealed = true
			continue
		}
		if !d.judge(j.op, err) {
			<-d.closing
			return false
		}
		select {
		case <-time.After(wait):
		case <-d.closing:
			return false
		}
		wait = min(2*wait, retryMost)
	}
}

// attempt is one try under the eyes of the stall timer. Every error is
// followed by a re-open: after a failed append or fsync neither library knows
// what its file holds, and raft-wal never appends again.
func (d *disk[T]) attempt(j *job[T], again bool) error {
	watch := d.health.begin(d.name, j.op)
	defer watch.end()
	d.progress = watch.restart
	if again {
		d.shut()
		store, err := d.openStore()
		if err != nil {
			return err
		}
		d.slot.put(store)
	}
	// The worker itself owns the slot, so it may use the store without
	// borrowing: nobody else takes it out.
	store := d.slot.mu.cur.store
	return d.guard(func() error {
		if err := d.faults.Before(j.op); err != nil {
			return err
		}
		return j.try(store, again)
	})
}

// judge reports the trouble; false when there is no point in trying again.
func (d *disk[T]) judge(op Op, err error) bool {
	if errors.Is(err, ErrCorruptLog) {
		d.health.corrupt(err)
		return false
	}
	t := Trouble{Kind: kindOf(err), Op: op, Err: err}
	d.health.bad(d.name, t)
	if t.Kind == TroubleIO && d.health.ioError() > 1 {
		d.health.fatalError(fmt.Errorf("%s %s: %w", d.name, op, err))
		return false
	}
	return true
}

// guard turns a panic of a library on damaged bytes into an error.
func (d *disk[T]) guard(fn func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = &CorruptError{Kind: d.kind, Err: fmt.Errorf("library panic: %v", r)}
		}
	}()
	return fn()
}
