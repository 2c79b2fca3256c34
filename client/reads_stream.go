package client

import (
	"context"
	"time"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
)

// run sends what is queued, one stream after another, until the client is
// closed.
func (b *readBatcher) run(ctx context.Context) {
	defer b.endAll(true, func(k *readCall) error { return k.tr.fail(ErrClosed) })
	r := route{c: b.c, leader: true}
	for {
		if queued, _ := b.counts(); queued == 0 {
			select {
			case <-b.wake:
			case <-ctx.Done():
				return
			}
			r.failures = 0
			clear(r.avoid)
			continue
		}
		l, err := r.next(ctx)
		if err != nil {
			return // the client is closed
		}
		s := &readStream{b: b, l: l}
		err = s.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if s.answered {
			r.failures = 0
			clear(r.avoid)
		}
		switch step := judge(ctx, err); {
		case err == nil: // it was ended in order
		case step == stepDone: // the node does not have, or does not allow, the stream
			b.plainUntil.Store(time.Now().Add(unaryFor).UnixNano())
			b.endAll(false, func(*readCall) error { return errPlain })
		default:
			b.follow(ctx, &r, l, step)
		}
	}
}

// follow pauses as a step says, but only while a read waits.
func (b *readBatcher) follow(ctx context.Context, r *route, l *link, step step) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	b.mu.Lock()
	b.rouse = cancel
	waits := len(b.queue) > 0
	b.mu.Unlock()
	if waits {
		r.follow(ctx, l, step)
	}
	b.mu.Lock()
	b.rouse = nil
	b.mu.Unlock()
}

// readStream is one stream to one node.
type readStream struct {
	b        *readBatcher
	l        *link
	str      pb.Cluster_ReadsClient
	answered bool // something was answered for good; read after run

	// The rest is guarded by readBatcher.mu.
	open    []*readCall // sent, in order, without an answer
	back    []*readCall // answered with something that makes them go again
	batches []int       // open calls of each message
	ending  bool        // no more is sent
	err     error       // why it is ending, if not in order
	counted bool        // the link knows that a call waits
}

// run sends and receives until the stream ends. nil says that it ended in order
// and the next one may begin at once.
func (s *readStream) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	str, err := pb.NewClusterClient(s.l.conn).Reads(ctx)
	if err != nil {
		return errorOf(err)
	}
	s.str = str
	ended, moved := make(chan struct{}), make(chan struct{}, 1)
	var recvErr error
	if !s.b.c.pool.goFunc(func() {
		defer close(ended)
		recvErr = s.receive(moved)
	}) {
		return ErrClosed
	}
	s.send(ctx, ended, moved)
	_ = str.CloseSend()
	if _, waits := s.state(); !waits {
		cancel() // nothing more can be learned
	}
	<-ended
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if !s.ending {
		s.err = recvErr
	}
	for _, k := range s.open {
		k.tr.answer(recvErr)
		if step := judge(ctx, recvErr); step != stepDone {
			s.b.c.metrics.retried(step)
		}
	}
	s.b.sent -= len(s.open)
	s.b.requeue(append(s.back, s.open...))
	s.open, s.back = nil, nil
	s.count()
	return s.err
}

// send sends messages until the stream should end.
func (s *readStream) send(ctx context.Context, ended, moved <-chan struct{}) {
	for {
		may, waits := s.state()
		if may {
			if ks := s.b.take(); len(ks) > 0 {
				if !s.transmit(ks) {
					return
				}
				continue
			}
		}
		if s.over(waits) {
			return
		}
		select {
		case <-s.b.wake:
		case <-moved:
		case <-ended:
			return
		case <-ctx.Done():
			return
		}
	}
}

// transmit sends one message. When that fails the receiver learns why.
func (s *readStream) transmit(ks []*readCall) bool {
	m := &pb.ReadsRequest{Reads: make([]*pb.Read, len(ks))}
	s.b.mu.Lock()
	for i, k := range ks {
		m.Reads[i] = k.msg
		k.tr.attempt(s.l.addr)
	}
	s.open = append(s.open, ks...)
	s.batches = append(s.batches, len(ks))
	s.count()
	s.b.mu.Unlock()
	s.b.c.metrics.readBatches.Inc()
	s.b.c.metrics.reads.Add(float64(len(ks)))
	s.b.c.metrics.attempts.Add(float64(len(ks)))
	return s.str.Send(m) == nil
}

// count tells the link whether an answer is waited for. The lock is held.
func (s *readStream) count() {
	waits := len(s.open) > 0
	switch {
	case waits && !s.counted:
		s.l.calls.Add(1)
	case !waits && s.counted:
		s.l.calls.Add(-1)
	}
	s.counted = waits
}

// state says whether another message may be sent, and whether an answer is
// waited for.
func (s *readStream) state() (may, waits bool) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return !s.ending && len(s.batches) < maxBatches, len(s.open) > 0
}

// over reports that the stream is ending and waits for nothing.
func (s *readStream) over(waits bool) bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return s.ending && !waits
}

// receive delivers answers until the stream ends, and says why it did.
func (s *readStream) receive(moved chan struct{}) error {
	for {
		m, err := s.str.Recv()
		if err != nil {
			return errorOf(err)
		}
		if !s.deliver(m) {
			return errBatchOrder
		}
		signal(moved)
	}
}

// deliver hands out the outcomes of one message. It reports whether there were
// as many calls.
func (s *readStream) deliver(m *pb.ReadsResponse) bool {
	leader := m.GetHeader().GetLeader()
	s.b.c.pool.learnLeader(leader)
	outs := m.GetOutcomes()
	ks, ok := s.answeredBy(len(outs))
	if !ok {
		return false
	}
	for i, o := range outs {
		if o.GetError() == nil {
			ks[i].finish(m.GetHeader(), o, nil)
			s.answered = true
		} else {
			s.failed(ks[i], api.ErrorFromProto(o.GetError()))
		}
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if n := leader.GetNodeId(); n != "" && n != s.l.id.node && time.Since(s.b.moved) > moveEvery {
		s.b.moved = time.Now()
		s.ending = true
	}
	return true
}

// answeredBy takes the calls that the next n outcomes are of.
func (s *readStream) answeredBy(n int) ([]*readCall, bool) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if n == 0 || n > len(s.open) {
		return nil, false
	}
	ks := s.open[:n:n]
	s.open = s.open[n:]
	s.b.sent -= n
	for n > 0 {
		of := min(n, s.batches[0])
		n -= of
		if s.batches[0] -= of; s.batches[0] == 0 {
			s.batches = s.batches[1:]
		}
	}
	s.count()
	return ks, true
}

// failed deals with the error of one read.
func (s *readStream) failed(k *readCall, err error) {
	step := judge(context.Background(), err)
	if step == stepDone || step == stepLost || step == stepRestored {
		k.finish(nil, nil, err)
		s.answered = true
		return
	}
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	if unclassified(err) {
		if k.unexpected++; k.unexpected == maxUnexpected {
			k.finish(nil, nil, err)
			return
		}
	}
	k.tr.answer(err)
	s.b.c.metrics.retried(step)
	s.back = append(s.back, k)
	s.ending = true
	if s.err == nil {
		s.err = err
	}
}
