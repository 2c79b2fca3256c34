package fsm

import (
	"container/heap"
	"context"
	"sync"

	"github.com/stavedb/stave/catalog"
)

// waiters are those who wait for an index, the lowest first, so that publishing
// costs the waiters it wakes and not those it does not.
type waiters struct {
	mu struct {
		sync.Mutex
		list waiterHeap
		// end is why nothing will be published any more, or nil.
		end error
	}
}

type waiter struct {
	index uint64
	done  chan struct{} // closed when the index is there or the machine ended
	pos   int           // in the heap, -1 outside
}

type waiterHeap []*waiter

func (h waiterHeap) Len() int           { return len(h) }
func (h waiterHeap) Less(i, j int) bool { return h[i].index < h[j].index }

func (h waiterHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].pos, h[j].pos = i, j
}

// Push implements heap.Interface.
func (h *waiterHeap) Push(x any) {
	w, _ := x.(*waiter) // only waiters are pushed
	w.pos = len(*h)
	*h = append(*h, w)
}

// Pop implements heap.Interface.
func (h *waiterHeap) Pop() any {
	old := *h
	n := len(old) - 1
	w := old[n]
	old[n] = nil
	*h = old[:n]
	w.pos = -1
	return w
}

// publish wakes everyone who waits for at most index.
func (ws *waiters) publish(index uint64) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	for len(ws.mu.list) > 0 && ws.mu.list[0].index <= index {
		w, _ := heap.Pop(&ws.mu.list).(*waiter)
		close(w.done)
	}
}

// finish wakes everyone; the first reason stays.
func (ws *waiters) finish(why error) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if ws.mu.end == nil {
		ws.mu.end = why
	}
	for _, w := range ws.mu.list {
		w.pos = -1
		close(w.done)
	}
	ws.mu.list = nil
}

func (ws *waiters) remove(w *waiter) {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	if w.pos >= 0 {
		heap.Remove(&ws.mu.list, w.pos)
	}
}

func (ws *waiters) ended() error {
	ws.mu.Lock()
	defer ws.mu.Unlock()
	return ws.mu.end
}

// Wait returns the state as soon as the machine's index is at least index; it
// may be a later one. The error is ctx's cause, a *StopError when the machine
// stopped before the index, or ErrClosed.
func (f *FSM) Wait(ctx context.Context, index uint64) (*catalog.State, error) {
	if f.index.Load() >= index {
		return f.State(), nil
	}
	w := &waiter{index: index, done: make(chan struct{})}
	ws := &f.waiters
	ws.mu.Lock()
	// Publishing stores the index before it takes the lock: either it is seen
	// here or the waiter is seen there.
	there, end := f.index.Load() >= index, ws.mu.end
	if !there && end == nil {
		heap.Push(&ws.mu.list, w)
	}
	ws.mu.Unlock()
	switch {
	case there:
		return f.State(), nil
	case end != nil:
		return nil, end
	}
	select {
	case <-w.done:
	case <-ctx.Done():
		ws.remove(w)
		return nil, context.Cause(ctx)
	}
	if f.index.Load() >= index {
		return f.State(), nil
	}
	return nil, ws.ended()
}
