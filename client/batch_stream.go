package client

import (
	"context"
	"errors"
	"io"
	"time"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// moveEvery is how often a stream moves to the leader at most.
const moveEvery = 2 * time.Second

// run sends what is queued, one stream after another, until the client is closed.
func (b *batcher) run(ctx context.Context) {
	defer b.drop()
	r := route{c: b.c, leader: true}
	for {
		if b.idle() {
			select {
			case <-b.wake:
			case <-ctx.Done():
				return
			}
			continue
		}
		reg, err := b.c.session.registration(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return
			}
			b.refuse(err)
			continue
		}
		b.revive()
		l, err := r.next(ctx)
		if err != nil {
			return
		}
		s := &batchStream{b: b, l: l, reg: reg}
		err = s.run(ctx)
		if ctx.Err() != nil {
			return
		}
		if s.answered > 0 {
			r.failures = 0
			clear(r.avoid)
		}
		switch step := judge(ctx, err); {
		case err == nil: // it was ended in order
		case step == stepDone: // the nodes do not have, or do not allow, the stream
			b.fallBack()
		case !r.after(ctx, l, step):
			return
		}
	}
}

// refuse ends what waits for a registration that is refused.
func (b *batcher) refuse(err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.c.metrics.queued.Sub(float64(len(b.queue)))
	for _, k := range b.queue {
		k.tr.last = err
		if k.sent {
			b.finish(k, catalog.Result{}, k.tr.unknown(k.t, err))
		} else {
			b.finish(k, catalog.Result{}, k.tr.fail(err))
		}
	}
	b.queue = nil
}

// revive takes queued commands off registrations that died.
func (b *batcher) revive() {
	b.mu.Lock()
	defer b.mu.Unlock()
	lost := false
	for _, k := range b.queue {
		lost = lost || k.t.lost()
	}
	if !lost {
		return
	}
	old := b.queue
	b.queue = nil
	b.c.metrics.queued.Sub(float64(len(old)))
	b.requeue(old)
}

// fallBack sends everything as calls of their own, from now on.
func (b *batcher) fallBack() {
	b.unary.Store(true)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.c.metrics.queued.Sub(float64(len(b.queue)))
	for _, k := range b.queue {
		if k.place != placeDone {
			b.alone(k)
		}
	}
	b.queue = nil
}

// alone sends one command as a call of its own, under the sequence it has. The
// lock is held.
func (b *batcher) alone(k *command) {
	k.place = placeStream
	t, sent := k.t, k.sent
	if !b.c.spawn(func(ctx context.Context) {
		res, err := b.c.unaryUnder(ctx, k.req, t, sent)
		b.mu.Lock()
		defer b.mu.Unlock()
		b.finish(k, res, err)
	}) {
		b.finish(k, catalog.Result{}, k.tr.fail(ErrClosed))
	}
}

// batchStream is one stream to one node under one registration.
type batchStream struct {
	b   *batcher
	l   *link
	reg *registration
	str pb.Cluster_CommandsClient
	// answered counts commands that need not go again; read after run. A node that
	// only refuses must not look like one that helps: nobody would pause.
	answered int

	// The rest is guarded by batcher.mu.
	open    []*command // sent, in order, without an outcome
	back    []*command // answered with something that makes them go again
	batches []int      // open commands of each message
	ending  bool       // no more is sent
	counted bool       // the link knows that a call waits
	err     error      // why it is ending, if not in order
}

// run sends and receives until the stream ends. nil says that it ended in order
// and the next one may begin at once.
func (s *batchStream) run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	str, err := pb.NewClusterClient(s.l.conn).Commands(ctx)
	if err != nil {
		return errorOf(err)
	}
	s.str = str
	ended := make(chan error, 1)
	moved := make(chan struct{}, 1)
	if !s.b.c.pool.goFunc(func() { ended <- s.receive(moved) }) {
		return ErrClosed
	}
	s.send(ctx, ended, moved)
	_ = str.CloseSend()
	if s.waiting() == 0 {
		cancel() // nothing more can be learned
	}
	recvErr := <-ended
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	for _, k := range s.open {
		k.sent = true
	}
	s.b.sent -= len(s.open)
	s.b.requeue(append(s.back, s.open...))
	s.open, s.back = nil, nil
	s.count()
	if s.err != nil {
		return s.err
	}
	if s.ending {
		return nil
	}
	return recvErr
}

// send sends messages until the stream should end. It puts the receiver's error
// back for run.
func (s *batchStream) send(ctx context.Context, ended chan error, moved <-chan struct{}) {
	for {
		var wait <-chan struct{}
		if s.maySend() {
			ks, w, dead := s.b.take(s.reg)
			wait = w
			if len(ks) > 0 {
				if !s.transmit(ks) {
					return
				}
				continue
			}
			if dead {
				s.end(nil)
			}
		}
		if s.over() {
			return
		}
		select {
		case <-s.b.wake:
		case <-moved:
		case <-wait:
		case err := <-ended:
			ended <- err
			return
		case <-s.reg.gone:
			s.end(nil)
			return
		case <-ctx.Done():
			return
		}
	}
}

// transmit sends one message.
func (s *batchStream) transmit(ks []*command) bool {
	m := &pb.CommandsRequest{ClientId: uint64(s.reg.id), Ack: s.reg.watermark(), Commands: make([]*pb.SequencedCommand, len(ks))}
	for i, k := range ks {
		m.Commands[i] = &pb.SequencedCommand{Sequence: k.t.seq, Command: k.msg}
	}
	s.b.mu.Lock()
	for _, k := range ks {
		k.tr.attempt(s.l.addr)
	}
	s.open = append(s.open, ks...)
	s.batches = append(s.batches, len(ks))
	s.count()
	s.b.mu.Unlock()
	s.b.c.metrics.batches.Inc()
	s.b.c.metrics.commands.Add(float64(len(ks)))
	return s.str.Send(m) == nil // the receiver learns why not
}

// count tells the link whether an answer is waited for. The lock is held.
func (s *batchStream) count() {
	switch waits := len(s.open) > 0; {
	case waits && !s.counted:
		s.l.calls.Add(1)
	case !waits && s.counted:
		s.l.calls.Add(-1)
	}
	s.counted = len(s.open) > 0
}

func (s *batchStream) maySend() bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return !s.ending && len(s.batches) < maxBatches
}

// over reports that the stream is ending and waits for nothing.
func (s *batchStream) over() bool {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return s.ending && len(s.open) == 0
}

func (s *batchStream) waiting() int {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	return len(s.open)
}

func (s *batchStream) end(err error) {
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	s.endLocked(err)
}

func (s *batchStream) endLocked(err error) {
	s.ending = true
	if s.err == nil {
		s.err = err
	}
}

// errBatchOrder is a stream that breaks its promises.
var errBatchOrder = &catalog.Error{Code: catalog.ErrUnavailable, Message: "the node's batch stream is out of order"}

// receive delivers outcomes until the stream ends, and says why it did.
func (s *batchStream) receive(moved chan<- struct{}) error {
	for {
		m, err := s.str.Recv()
		if errors.Is(err, io.EOF) {
			return io.EOF
		} else if err != nil {
			return errorOf(err)
		}
		if !s.deliver(m) {
			return errBatchOrder
		}
		select {
		case moved <- struct{}{}:
		default:
		}
	}
}

// deliver hands out the outcomes of one message. It reports whether they are of
// the commands that come next.
func (s *batchStream) deliver(m *pb.CommandsResponse) bool {
	leader := m.GetHeader().GetLeader()
	s.b.c.pool.learnLeader(leader)
	s.b.mu.Lock()
	defer s.b.mu.Unlock()
	defer s.count()
	for _, o := range m.GetOutcomes() {
		if len(s.open) == 0 || o.GetSequence() != s.open[0].t.seq {
			return false
		}
		k := s.open[0]
		s.open[0] = nil
		s.open = s.open[1:]
		s.b.sent--
		if s.batches[0]--; s.batches[0] == 0 {
			s.batches = s.batches[1:]
		}
		s.settle(k, o)
	}
	if n := leader.GetNodeId(); n != "" && n != s.l.id.node && time.Since(s.b.moved) > moveEvery {
		s.b.moved = time.Now()
		s.endLocked(nil)
	}
	return true
}

// settle deals with one outcome. The lock is held.
func (s *batchStream) settle(k *command, o *pb.CommandOutcome) {
	if o.GetError() == nil {
		res := api.ResultFromProto(o.GetResult())
		s.answered++
		k.t.settle()
		s.b.finish(k, res, res.Err())
		return
	}
	err := api.ErrorFromProto(o.GetError())
	step := judge(context.Background(), err)
	if step != stepDone {
		k.tr.answer(err)
		s.b.c.metrics.retried(step)
	}
	switch step {
	case stepDone:
		s.answered++
		k.t.settle()
		s.b.finish(k, catalog.Result{Code: api.CodeOf(err)}, err)
	case stepLost, stepRestored:
		k.sent = k.sent || step == stepRestored
		s.b.c.session.drop(k.t.reg)
		s.back = append(s.back, k) // its fate is decided when it is queued again
		s.endLocked(nil)
	case stepUnclear, stepBroken:
		k.sent = true
		if unclassified(err) {
			if k.unexpected++; k.unexpected == maxUnexpected {
				s.b.leave(k)
				return
			}
		}
		s.back = append(s.back, k)
		s.endLocked(err)
	default:
		s.back = append(s.back, k)
		s.endLocked(err)
	}
}

// leave ends the call of a command that no answer explains, and goes on asking
// for it apart from the others. The lock is held.
func (b *batcher) leave(k *command) {
	b.forsake(k, nil)
	b.alone(k)
}
