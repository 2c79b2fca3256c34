package server

import (
	"context"
	"sync"

	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/raftnode"
)

// Bounds of one batch, so that a follower can hand it on in one message, and of
// what a stream holds before it stops reading.
const (
	batchCommands = 1024
	batchBytes    = 512 << 10
	inboxCommands = 4 * batchCommands
	inboxBytes    = 4 << 20
)

// queued is one command of a stream, or why it cannot be one.
type queued struct {
	sequence uint64
	sub      raftnode.Submission
	size     int
	err      error
}

// inbox holds the commands of a stream that wait for the batch under way. One
// goroutine fills it and one empties it.
type inbox struct {
	mu    sync.Mutex
	list  []queued // guarded by mu, as are bytes and end
	bytes int
	end   error // why no more comes; io.EOF when the caller has ended

	filled, emptied chan struct{} // of one signal each
	client          uint64
	started         bool
}

func newInbox() *inbox {
	return &inbox{filled: make(chan struct{}, 1), emptied: make(chan struct{}, 1)}
}

func signal(ch chan struct{}) {
	select {
	case ch <- struct{}{}:
	default:
	}
}

// fill receives until the stream ends.
func (q *inbox) fill(ctx context.Context, in grpc.BidiStreamingServer[pb.CommandsRequest, pb.CommandsResponse]) {
	var converted []queued
	for {
		m, err := in.Recv()
		if err == nil {
			converted, err = q.convert(converted[:0], m)
		}
		if err == nil {
			err = q.put(ctx, converted)
		}
		if err != nil {
			q.mu.Lock()
			q.end = err
			q.mu.Unlock()
			signal(q.filled)
			return
		}
	}
}

// convert makes commands of a message. A command that cannot be one is refused
// by itself; a message that breaks the stream's rule ends it.
func (q *inbox) convert(out []queued, m *pb.CommandsRequest) ([]queued, error) {
	if q.started && m.GetClientId() != q.client {
		return nil, refuse(catalog.ErrInvalidArgument, "client_id is %d, want %d in all messages of the stream", m.GetClientId(), q.client)
	}
	q.started, q.client = true, m.GetClientId()
	for _, c := range m.GetCommands() {
		item := queued{sequence: c.GetSequence(), size: proto.Size(c)}
		var ref api.Ref
		if ref, item.err = api.StreamRef(m, c); item.err == nil {
			item.sub.Envelope = envelope(ref)
			item.sub.Command, item.err = api.CommandFromProto(c.GetCommand())
		}
		out = append(out, item)
	}
	return out, nil
}

// put adds commands, waiting while the inbox is full.
func (q *inbox) put(ctx context.Context, items []queued) error {
	for {
		q.mu.Lock()
		if len(q.list) < inboxCommands && q.bytes < inboxBytes {
			q.list = append(q.list, items...)
			for i := range items {
				q.bytes += items[i].size
			}
			q.mu.Unlock()
			clear(items)
			signal(q.filled)
			return nil
		}
		q.mu.Unlock()
		select {
		case <-q.emptied:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// next moves the next batch into buf. When nothing is left it returns why the
// stream ended.
func (q *inbox) next(ctx context.Context, closing <-chan struct{}, buf []queued) ([]queued, error) {
	for {
		select {
		case <-closing:
			return buf[:0], closingError()
		default:
		}
		q.mu.Lock()
		if n := q.batch(); n > 0 {
			buf = append(buf[:0], q.list[:n]...)
			left := copy(q.list, q.list[n:])
			clear(q.list[left:])
			q.list = q.list[:left]
			q.mu.Unlock()
			signal(q.emptied)
			return buf, nil
		}
		end := q.end
		q.mu.Unlock()
		if end != nil {
			return buf[:0], end
		}
		select {
		case <-q.filled:
		case <-closing:
		case <-ctx.Done():
			return buf[:0], context.Cause(ctx)
		}
	}
}

// batch is how many commands are submitted together now. The lock is held.
func (q *inbox) batch() int {
	size := 0
	n := 0
	for n < len(q.list) && n < batchCommands {
		if size += q.list[n].size; n > 0 && size > batchBytes {
			size -= q.list[n].size
			break
		}
		n++
	}
	q.bytes -= size
	return n
}
