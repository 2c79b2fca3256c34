package raftnet

import (
	"sync"

	"github.com/hashicorp/raft"
)

// pipeline is raft's pipeline behind the gate, without the back-pressure that
// can stop a replication for ever: the library's decoder hands over one answer
// before it reads the next, and an append waits for the decoder. Raft's own
// reader of answers ends at the first refusal. When two more appends leave
// before raft's sender has noticed, the second waits for the decoder, the
// decoder for the reader, and nobody for the third who could close the
// pipeline: the follower gets nothing more, and raft cannot be shut down. Here
// answers are always taken. They are few: each belongs to an append that the
// sender made without noticing.
type pipeline struct {
	inner raft.AppendPipeline
	t     *Transport
	out   chan raft.AppendFuture
	done  chan struct{}
	once  sync.Once
}

func newPipeline(inner raft.AppendPipeline, t *Transport) *pipeline {
	p := &pipeline{inner: inner, t: t, out: make(chan raft.AppendFuture, 1), done: make(chan struct{})}
	go p.take()
	return p
}

// take hands the answers on in order until Close.
func (p *pipeline) take() {
	var queue []raft.AppendFuture
	for {
		var out chan<- raft.AppendFuture
		var next raft.AppendFuture
		if len(queue) > 0 {
			out, next = p.out, queue[0]
		}
		select {
		case f := <-p.inner.Consumer():
			queue = append(queue, f)
		case out <- next:
			queue = queue[1:]
		case <-p.done:
			return
		}
	}
}

// AppendEntries sends one append, see Transport.prepare. It waits only
// for the network, within the transport's timeout.
func (p *pipeline) AppendEntries(args *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	var f raft.AppendFuture
	err := p.t.gate(func() (err error) {
		p.t.prepare(args)
		f, err = p.inner.AppendEntries(args, resp)
		return err
	})
	return f, err
}

// Consumer returns the answers in the order of the appends.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.out }

// Close closes the connection and ends everything that waits.
func (p *pipeline) Close() error {
	p.once.Do(func() { close(p.done) })
	return p.inner.Close()
}
