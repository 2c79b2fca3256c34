package raftnode

import (
	"errors"
	"fmt"
	"math"
	"reflect"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
)

// noLimit is for what a leader proposes before it serves.
const noLimit = math.MaxInt64

// errNoAnswer is the fate of a command that raft calls applied while the state
// machine had its index already: whatever it is, it is not this command's.
var errNoAnswer = errors.New("the state machine gave no answer")

// proposal is one command on its way through raft.
type proposal struct {
	future raft.ApplyFuture
	size   int64
	done   chan struct{} // closed when result or err is set
	result *catalog.Result
	err    error
}

// propose hands an entry to raft, unless more than limit bytes would then be on
// their way. The error says that raft did not take it.
func (e *engine) propose(entry []byte, limit int64) (*proposal, error) {
	e.mu.RLock()
	defer e.mu.RUnlock()
	if e.closing {
		return nil, raft.ErrRaftShutdown
	}
	size := int64(len(entry))
	if all := e.bytes.Add(size); all > limit {
		e.bytes.Add(-size)
		return nil, &catalog.Error{
			Code: catalog.ErrBusy, Limit: uint64(limit), Size: uint64(all),
			Message: fmt.Sprintf("%d bytes wait to be replicated, at most %d may", all, limit),
		}
	}
	p := &proposal{future: e.raft.Apply(entry, enqueueTimeout), size: size, done: make(chan struct{})}
	endWith(p.future, e.gone)
	e.inflight.Add(1)
	select {
	case e.proposals <- p:
	case <-e.stopped:
		e.finish(p, raft.ErrRaftShutdown)
	}
	return p, nil
}

// drain waits for the futures in the order they were taken, which is the order
// raft answers them in. A future has one reader: this.
func (e *engine) drain() {
	defer e.drained.Done()
	for p := range e.proposals {
		err := p.future.Error()
		if err == nil {
			if p.result, _ = p.future.Response().(*catalog.Result); p.result == nil {
				err = errNoAnswer
			}
		}
		e.finish(p, err)
	}
}

func (e *engine) finish(p *proposal, err error) {
	p.err = err
	close(p.done)
	e.bytes.Add(-p.size)
	e.inflight.Done()
}

// endWith makes a future of raft end with ErrRaftShutdown when gone is closed.
// Raft never answers what its main goroutine had not taken when it ended, and
// whoever waits for that would wait for ever. It has a field for this purpose
// in every future, which it leaves empty in those it gives out; a future without
// the field, which is one that is answered already, stays as it is. It must be
// called before anybody waits for the future.
func endWith(future any, gone chan struct{}) {
	v := reflect.ValueOf(future)
	if v.Kind() != reflect.Pointer || v.Elem().Kind() != reflect.Struct {
		return
	}
	f := v.Elem().FieldByName("ShutdownCh")
	if f.IsValid() && f.CanSet() && f.Type() == reflect.TypeOf(gone) && f.IsNil() {
		f.Set(reflect.ValueOf(gone))
	}
}
