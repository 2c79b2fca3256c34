package raftlog

import "sync"

// slot holds the open store of a disk. Readers borrow it; the worker alone
// takes it out to re-open it, and waits until the last reader has given it
// back: raft-wal panics when it is read while it is being closed.
type slot[T any] struct {
	mu struct {
		sync.Mutex
		cur   *held[T]      // nil while the store is being re-opened
		ready chan struct{} // closed when cur is set
	}
}

type held[T any] struct {
	store T
	// refs counts borrowers plus one for the slot itself.
	refs    int
	drained chan struct{} // closed when refs is 0
}

func (s *slot[T]) put(store T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.mu.cur = &held[T]{store: store, refs: 1, drained: make(chan struct{})}
	if s.mu.ready != nil {
		close(s.mu.ready)
		s.mu.ready = nil
	}
}

// borrow returns the store and what gives it back. While it is being
// re-opened borrow waits; ErrClosed when closing ends that.
func (s *slot[T]) borrow(closing <-chan struct{}) (T, func(), error) {
	for {
		s.mu.Lock()
		if h := s.mu.cur; h != nil {
			h.refs++
			s.mu.Unlock()
			return h.store, func() { s.release(h) }, nil
		}
		if s.mu.ready == nil {
			s.mu.ready = make(chan struct{})
		}
		ready := s.mu.ready
		s.mu.Unlock()
		select {
		case <-ready:
		case <-closing:
			var none T
			return none, nil, ErrClosed
		}
	}
}

func (s *slot[T]) release(h *held[T]) {
	s.mu.Lock()
	defer s.mu.Unlock()
	h.refs--
	if h.refs == 0 {
		close(h.drained)
	}
}

// take empties the slot and waits for the borrowers; false when it was empty.
func (s *slot[T]) take() (T, bool) {
	s.mu.Lock()
	h := s.mu.cur
	s.mu.cur = nil
	s.mu.Unlock()
	if h == nil {
		var none T
		return none, false
	}
	s.release(h)
	<-h.drained
	return h.store, true
}
