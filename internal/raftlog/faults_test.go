package raftlog

import "sync"

// faults counts operations and lets a test change their outcome.
type faults struct {
	mu     sync.Mutex
	counts map[Op]int
	before func(Op) error
	after  func(Op) error
}

func (f *faults) Before(op Op) error {
	f.mu.Lock()
	if f.counts == nil {
		f.counts = map[Op]int{}
	}
	f.counts[op]++
	fn := f.before
	f.mu.Unlock()
	if fn == nil {
		return nil
	}
	return fn(op)
}

func (f *faults) After(op Op) error {
	f.mu.Lock()
	fn := f.after
	f.mu.Unlock()
	if fn == nil {
		return nil
	}
	return fn(op)
}

func (f *faults) count(op Op) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.counts[op]
}

// set changes both hooks.
func (f *faults) set(before, after func(Op) error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.after = before, after
}

// times returns a hook that fails the first n calls for op with err.
func times(n int, op Op, err error) func(Op) error {
	var mu sync.Mutex
	return func(o Op) error {
		mu.Lock()
		defer mu.Unlock()
		if o != op || n == 0 {
			return nil
		}
		n--
		return err
	}
}
