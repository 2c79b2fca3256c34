package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// Bounds of the batch stream.
const (
	// maxQueued is how many commands wait or are without an outcome; more callers
	// of Do wait for their turn.
	maxQueued = 2 * catalog.ClientWindow
	// maxBatchCommands and maxBatchBytes bound one message, maxBatches how many of
	// them are without an answer. What is issued meanwhile leaves together.
	maxBatchCommands = 1024
	maxBatchBytes    = 1 << 20
	maxBatches       = 2
)

// Do executes a command exactly once and returns its result. Commands of many
// callers travel together: those issued while others are on their way leave as
// one message, in order. A refusal comes as the error, an *catalog.Error, beside
// the result. catalog.ErrOutcomeUnknown says that the command may have been
// executed, any other error that nothing was changed. cmd must not be changed
// before Do returns.
func (c *Client) Do(ctx context.Context, cmd catalog.Command) (catalog.Result, error) {
	req, err := api.RequestFromCommand(cmd, api.Ref{})
	if err != nil {
		return catalog.Result{}, err
	}
	ctx, cancel := c.budget(ctx)
	defer cancel()
	if !c.cfg.batching || !c.cfg.sessions || c.batch.unary.Load() {
		return c.doUnary(ctx, req)
	}
	return c.batch.do(ctx, cmd.Kind().String(), req)
}

// doUnary sends a command as the unary call of its own.
func (c *Client) doUnary(ctx context.Context, req api.Request) (catalog.Result, error) {
	method, reply, err := unaryOf(req)
	if err != nil {
		return catalog.Result{}, err
	}
	err = c.Invoke(ctx, method, req, reply)
	return resultOf(reply, err), err
}

// command is one call of Do.
type command struct {
	req  api.Request
	msg  *pb.Command
	size int
	done chan struct{} // closed when res and err are final

	// The rest is guarded by batcher.mu.
	t  ticket
	tr trace
	// sent says that a copy may have been executed, or may still be.
	sent       bool
	unexpected int
	// abandoned says that the caller left without the outcome.
	abandoned bool
	place     place
	res       catalog.Result
	err       error
}

// place is where a command is.
type place uint8

const (
	placeQueue  place = iota // it waits to be sent, first or again
	placeStream              // it was sent and not answered
	placeDone
)

// batcher sends the commands of all callers on one stream.
type batcher struct {
	c *Client
	// slots bounds the commands that are not done.
	slots chan struct{}
	// wake tells the sender that something was queued.
	wake chan struct{}
	// unary is set when the cluster has no batch stream.
	unary atomic.Bool

	mu      sync.Mutex
	queue   []*command
	sent    int
	running bool
	moved   time.Time // when a stream last moved to the leader
}

func newBatcher(c *Client) *batcher {
	return &batcher{c: c, slots: make(chan struct{}, maxQueued), wake: make(chan struct{}, 1)}
}

func (b *batcher) counts() (queued, sent int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue), b.sent
}

func (b *batcher) do(ctx context.Context, name string, req api.Request) (catalog.Result, error) {
	k := &command{req: req, msg: api.WrapRequest(req), done: make(chan struct{}), tr: trace{method: name}}
	k.size = proto.Size(k.msg)
	if k.size > maxMessageBytes {
		return catalog.Result{}, &catalog.Error{
			Code: catalog.ErrTooLarge, Limit: api.MaxCommandBytes, Size: uint64(k.size), Message: "the command is larger than any message may be",
		}
	}
	select {
	case b.slots <- struct{}{}:
	default:
		select {
		case b.slots <- struct{}{}:
		case <-ctx.Done():
			k.tr.last = errQueue
			return catalog.Result{}, k.tr.fail(b.c.closedCause(ctx))
		case <-b.c.pool.ctx.Done():
			return catalog.Result{}, k.tr.fail(ErrClosed)
		}
	}
	if !b.push(k) {
		<-b.slots
		return catalog.Result{}, k.tr.fail(ErrClosed)
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		b.abandon(ctx, k)
	case <-b.c.pool.ctx.Done():
		b.abandon(ctx, k)
	}
	return k.res, k.err
}

// errQueue is the last thing known of a command that found the queue full.
var errQueue = &catalog.Error{Code: catalog.ErrBusy, Limit: maxQueued, Message: "the client's queue of commands is full"}

// push queues a command and sees that someone sends it.
func (b *batcher) push(k *command) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if !b.running {
		if !b.c.spawn(b.run) {
			return false
		}
		b.running = true
	}
	b.queue = append(b.queue, k)
	b.c.metrics.queued.Inc()
	b.poke()
	return true
}

func (b *batcher) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

// abandon ends a call whose time is over, unless its outcome is there.
func (b *batcher) abandon(ctx context.Context, k *command) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if k.place == placeDone {
		return
	}
	cause := b.c.closedCause(ctx)
	if k.place == placeStream || k.sent {
		b.forsake(k, cause)
		return
	}
	k.t.settle()
	if i := slices.Index(b.queue, k); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
		b.c.metrics.queued.Dec()
	}
	if err := b.c.session.unregistered(); err != nil && k.tr.last == nil {
		k.tr.last = err
	}
	if err := b.c.pool.stuck(); err != nil && k.tr.last == nil {
		k.tr.last = err
	}
	b.finish(k, catalog.Result{}, k.tr.fail(cause))
}

// forsake ends the call of a command whose outcome is still asked for. The lock
// is held.
func (b *batcher) forsake(k *command, cause error) {
	if k.abandoned {
		return
	}
	k.abandoned = true
	b.c.results.open(k.t)
	k.err = k.tr.unknown(k.t, cause)
	close(k.done)
}

// finish ends a command. The lock is held.
func (b *batcher) finish(k *command, res catalog.Result, err error) {
	if k.place == placeDone {
		return
	}
	k.place = placeDone
	if k.abandoned {
		if errors.Is(err, catalog.ErrOutcomeUnknown) {
			b.c.results.lose(k.t)
		} else {
			b.c.results.close(k.t, res)
		}
	} else {
		k.res, k.err = res, err
		close(k.done)
	}
	<-b.slots
}

// requeue puts commands back to the front, in their order. The lock is held.
func (b *batcher) requeue(ks []*command) {
	var keep []*command
	for _, k := range ks {
		if k.place == placeDone {
			continue
		}
		if k.t.lost() {
			if k.sent {
				b.finish(k, catalog.Result{}, k.tr.unknown(k.t, nil))
				continue
			}
			k.t = ticket{} // never executed under the old registration
		}
		k.place = placeQueue
		keep = append(keep, k)
	}
	b.queue = append(keep, b.queue...)
	b.c.metrics.queued.Add(float64(len(keep)))
}

// take removes what fits into one message from the queue, giving sequences. A
// full window ends it; wait is then closed when it is worth asking again. dead
// says that the registration is gone.
func (b *batcher) take(reg *registration) (ks []*command, wait <-chan struct{}, dead bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	n, size := 0, 0
	for _, k := range b.queue {
		if k.place != placeDone {
			if len(ks) == maxBatchCommands || (len(ks) > 0 && size+k.size > maxBatchBytes) {
				break
			}
			if k.t.reg == nil {
				if k.t, wait, dead = reg.take(); wait != nil || dead {
					break
				}
			}
			if k.t.reg != reg { // of a registration that died while it was queued
				dead = true
				break
			}
			k.place = placeStream
			size += k.size
			ks = append(ks, k)
		}
		n++
	}
	clear(b.queue[:n])
	b.queue = b.queue[n:]
	b.sent += len(ks)
	b.c.metrics.queued.Sub(float64(n))
	return ks, wait, dead
}

func (b *batcher) idle() bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue) == 0
}

// drop ends everything, because the client is closed.
func (b *batcher) drop() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.c.metrics.queued.Sub(float64(len(b.queue)))
	for _, k := range b.queue {
		if k.sent {
			b.finish(k, catalog.Result{}, k.tr.unknown(k.t, ErrClosed))
		} else {
			b.finish(k, catalog.Result{}, k.tr.fail(ErrClosed))
		}
	}
	b.queue = nil
}
