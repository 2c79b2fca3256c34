package client

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// Bounds of the stream of reads.
const (
	// maxReads is how many reads wait or are without an answer; more callers wait
	// for their turn.
	maxReads = 8192
	// unaryFor is how long reads are calls of their own after a node without the
	// stream was met: it is being upgraded.
	unaryFor = time.Minute
)

// readCall is one read that waits for its answer. It is used again for another
// read once the answer was taken.
type readCall struct {
	msg  *pb.Read
	size int
	// done gets one signal when the fields below hold the answer.
	done   chan struct{}
	header *pb.ResponseHeader
	out    *pb.ReadOutcome
	err    error
	// over is set by whoever ends the call: the stream with the answer, or the
	// caller without one.
	over atomic.Bool

	// The rest is guarded by readBatcher.mu.
	tr         trace
	unexpected int
}

// finish ends a call with its answer, unless its caller has left.
func (k *readCall) finish(h *pb.ResponseHeader, out *pb.ReadOutcome, err error) {
	if k.over.CompareAndSwap(false, true) {
		k.header, k.out, k.err = h, out, err
		k.done <- struct{}{}
	}
}

// readBatcher sends the linearizable reads of all callers on one stream: those
// issued while others are on their way leave together.
type readBatcher struct {
	c     *Client
	calls sync.Pool
	// slots bounds the calls.
	slots chan struct{}
	// wake tells the sender that something was queued.
	wake chan struct{}
	// plainUntil is until when reads are calls of their own, in Unix nanoseconds.
	plainUntil atomic.Int64

	mu      sync.Mutex
	queue   []*readCall
	sent    int
	running bool
	closed  bool
	rouse   context.CancelFunc // ends the sender's pause
	moved   time.Time          // when a stream last moved to the leader
}

func newReadBatcher(c *Client) *readBatcher {
	b := &readBatcher{c: c, slots: make(chan struct{}, maxReads), wake: make(chan struct{}, 1)}
	b.calls.New = func() any { return &readCall{done: make(chan struct{}, 1)} }
	return b
}

func (b *readBatcher) counts() (queued, sent int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.queue), b.sent
}

// batched returns a read as a message of the stream, or nil if it is to be a
// call of its own: because of its kind, its level, or of what its caller wants
// to be sent with it.
func (b *readBatcher) batched(ctx context.Context, req any, opts []grpc.CallOption) *pb.Read {
	if !b.c.cfg.batching || !linearizable(req) {
		return nil
	}
	for _, o := range opts {
		if _, ok := o.(grpc.StaticMethodCallOption); !ok { // what stubs add to every call
			return nil
		}
	}
	m := readOf(req)
	if m == nil {
		return nil
	}
	if _, more := metadata.FromOutgoingContext(ctx); more {
		return nil
	}
	if until := b.plainUntil.Load(); until != 0 && time.Now().UnixNano() < until {
		return nil
	}
	return m
}

func readOf(req any) *pb.Read {
	switch r := req.(type) {
	case *pb.GetRequest:
		return &pb.Read{Read: &pb.Read_Get{Get: r}}
	case *pb.GetDatabaseRequest:
		return &pb.Read{Read: &pb.Read_Database{Database: r}}
	case *pb.GetTableRequest:
		return &pb.Read{Read: &pb.Read_Table{Table: r}}
	case *pb.GetPartitionRequest:
		return &pb.Read{Read: &pb.Read_Partition{Partition: r}}
	case *pb.GetLayoutRequest:
		return &pb.Read{Read: &pb.Read_Layout{Layout: r}}
	}
	return nil
}

// errWrongAnswer is an outcome that is not of the kind that was asked for.
var errWrongAnswer = &catalog.Error{Code: catalog.ErrUnavailable, Message: "the answer is of another kind than the read"}

// fill makes an outcome the reply of a call.
func fill(reply any, h *pb.ResponseHeader, o *pb.ReadOutcome) error {
	switch from := o.GetOutcome().(type) {
	case *pb.ReadOutcome_Get:
		if to, ok := reply.(*pb.GetResponse); ok {
			to.Header, to.Row = h, from.Get.GetRow()
			return nil
		}
	case *pb.ReadOutcome_Database:
		if to, ok := reply.(*pb.DatabaseResponse); ok {
			to.Header, to.Database = h, from.Database.GetDatabase()
			return nil
		}
	case *pb.ReadOutcome_Table:
		if to, ok := reply.(*pb.TableResponse); ok {
			to.Header, to.Table = h, from.Table.GetTable()
			return nil
		}
	case *pb.ReadOutcome_Partition:
		if to, ok := reply.(*pb.PartitionResponse); ok {
			to.Header, to.Table, to.Partition = h, from.Partition.GetTable(), from.Partition.GetPartition()
			return nil
		}
	case *pb.ReadOutcome_Layout:
		if to, ok := reply.(*pb.GetLayoutResponse); ok {
			to.Header, to.Table, to.Partitions, to.Servers = h, from.Layout.GetTable(), from.Layout.GetPartitions(), from.Layout.GetServers()
			return nil
		}
	}
	return errWrongAnswer
}

// errPlain says that a read has to be a call of its own. It reaches no caller.
var errPlain = errors.New("no stream of reads")

// do makes one read. errPlain says that it was not answered, because the node
// has no stream of reads.
func (b *readBatcher) do(ctx context.Context, method string, msg *pb.Read, reply any) error {
	k := b.calls.Get().(*readCall) //nolint:errcheck,forcetypeassert // the pool holds nothing else
	k.msg, k.size, k.unexpected = msg, proto.Size(msg), 0
	k.tr = trace{method: method, addrs: k.tr.addrs[:0]}
	k.over.Store(false)
	select {
	case b.slots <- struct{}{}:
	default:
		select {
		case b.slots <- struct{}{}:
		case <-ctx.Done():
			k.tr.last = errReadQueue
			return k.tr.fail(b.c.closedCause(ctx))
		case <-b.c.pool.ctx.Done():
			return k.tr.fail(ErrClosed)
		}
	}
	defer func() { <-b.slots }()
	if !b.push(k) {
		return k.tr.fail(ErrClosed)
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		if k.over.CompareAndSwap(false, true) {
			return b.abandon(ctx, k)
		}
		<-k.done
	}
	h, out, err := k.header, k.out, k.err
	k.msg, k.header, k.out, k.err = nil, nil, nil, nil
	b.calls.Put(k)
	if err != nil {
		return err
	}
	return fill(reply, h, out)
}

// errReadQueue is the last thing known of a read that found the queue full.
var errReadQueue = &catalog.Error{Code: catalog.ErrBusy, Limit: maxReads, Message: "the client's queue of reads is full"}

// push queues a read and sees that someone sends it.
func (b *readBatcher) push(k *readCall) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.closed || (!b.running && !b.c.spawn(b.run)) {
		return false
	}
	b.running = true
	b.queue = append(b.queue, k)
	signal(b.wake)
	return true
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// abandon ends a call whose time is over.
func (b *readBatcher) abandon(ctx context.Context, k *readCall) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if i := slices.Index(b.queue, k); i >= 0 {
		b.queue = slices.Delete(b.queue, i, i+1)
	}
	if len(b.queue) == 0 && b.rouse != nil {
		b.rouse() // the next read is not held back by what this one met
	}
	if err := b.c.pool.stuck(); err != nil {
		return k.tr.noNode(ctx, b.c, err)
	}
	return k.tr.fail(b.c.closedCause(ctx))
}

// take removes what fits into one message from the queue.
func (b *readBatcher) take() (ks []*readCall) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		return nil
	}
	ks = make([]*readCall, 0, min(len(b.queue), maxBatchCommands))
	n, size := 0, 0
	for _, k := range b.queue {
		if len(ks) == maxBatchCommands || (len(ks) > 0 && size+k.size > maxBatchBytes) {
			break
		}
		n++
		if !k.over.Load() {
			size += k.size
			ks = append(ks, k)
		}
	}
	left := copy(b.queue, b.queue[n:])
	clear(b.queue[left:])
	b.queue = b.queue[:left]
	b.sent += len(ks)
	return ks
}

// requeue puts calls back to the front. The lock is held.
func (b *readBatcher) requeue(ks []*readCall) {
	keep := make([]*readCall, 0, len(ks)+len(b.queue))
	for _, k := range ks {
		if !k.over.Load() {
			keep = append(keep, k)
		}
	}
	b.queue = append(keep, b.queue...)
}

// endAll ends everything that is queued.
func (b *readBatcher) endAll(closed bool, err func(*readCall) error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, k := range b.queue {
		k.finish(nil, nil, err(k))
	}
	b.queue, b.closed = nil, b.closed || closed
}
