package testhistory

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
)

const serverTTL = 4 * time.Second

// register registers a tablet server until it is, and returns its incarnation.
func (c *caller) register(ctx context.Context, id catalog.ServerID, ttl time.Duration) (catalog.ServerIncarnation, bool) {
	for ctx.Err() == nil {
		op := c.write(ctx, "", catalog.RegisterServer{
			ID: id, DirectoryID: fmt.Sprintf("d%d", id), Listeners: []string{fmt.Sprintf("INTERNAL://server-%d:1", id)}, TTL: catalog.Millis(ttl.Milliseconds()),
		})
		if inc, ok := op.Result.FirstID(); ok && op.Fate == Acked {
			return catalog.ServerIncarnation(inc), true
		}
	}
	return 0, false
}

// servers registers a tablet server, keeps it alive for a while, lets it die and
// registers it again. It is never told that it died while it was renewed in time.
func (c *caller) servers(ctx context.Context) {
	id := catalog.ServerID(100 + c.id)
	stub := pb.NewPlacementClient(c.c)
	for ctx.Err() == nil {
		inc, ok := c.register(ctx, id, serverTTL)
		if !ok {
			return
		}
		renewed := time.Now() // when the last good renewal began
		for range 10 + c.r.IntN(20) {
			if !c.next(ctx) {
				return
			}
			rest(ctx, serverTTL/8)
			began := time.Now()
			callCtx, cancel := context.WithTimeout(context.Background(), serverTTL/2)
			r, err := stub.KeepAlive(callCtx, &pb.KeepAliveRequest{Leases: []*pb.Lease{{ServerId: int32(id), Incarnation: uint64(inc)}}})
			cancel()
			if err != nil {
				continue
			}
			if len(r.GetLost()) == 0 {
				renewed = began
				continue
			}
			if since := time.Since(renewed); since < serverTTL {
				c.l.H.violation(fmt.Sprintf("tablet server %d was lost %s after a renewal, before its %s were over", id, since, serverTTL))
			}
			break
		}
		rest(ctx, 3*serverTTL)
	}
}

// isr changes in-sync replicas with right and wrong epochs.
func (c *caller) isr(ctx context.Context) {
	id := catalog.ServerID(500 + c.id)
	if !c.once(ctx, "isr", catalog.CreateDatabase{Name: "isr", IfNotExists: true}) {
		return
	}
	inc, ok := c.register(ctx, id, 10*time.Minute)
	path := fmt.Sprintf("isr.t%d", c.id)
	if !ok || !c.once(ctx, path, newTable(path, 4), catalog.CreatePartitions{Table: path, Specs: []catalog.PartitionSpec{dt(0)}}) {
		return
	}
	for c.next(ctx) {
		row, _, err := c.c.Partition(ctx, path, "d000")
		if err != nil || row.Partition.Placement == nil {
			rest(ctx, 50*time.Millisecond)
			continue
		}
		cmd := catalog.AdjustISR{Server: id, Incarnation: inc}
		for b, s := range row.Partition.Placement.Buckets {
			cmd.Changes = append(cmd.Changes, catalog.ISRChange{
				Bucket:      catalog.BucketRef{Table: row.Table.ID, Partition: catalog.Some(row.Partition.ID), Bucket: catalog.BucketID(b)},
				LeaderEpoch: s.LeaderEpoch + catalog.LeaderEpoch(c.r.IntN(3)-1), BucketEpoch: s.BucketEpoch + catalog.BucketEpoch(c.r.IntN(3)-1),
				Coordinator: s.CoordinatorEpoch, ISR: []catalog.ServerID{s.Leader},
			})
		}
		c.write(ctx, "", cmd)
	}
}

// echo sends every write several times on purpose, also at the same moment to
// different nodes, under one sequence. Its answers must be equal.
func (c *caller) echo(ctx context.Context) {
	var stubs []pb.KVClient
	for _, id := range c.l.C.Nodes() {
		conn, err := c.l.C.Conn(id)
		if err != nil {
			c.l.H.violation(err.Error())
			return
		}
		defer func(conn *grpc.ClientConn) { _ = conn.Close() }(conn)
		stubs = append(stubs, pb.NewKVClient(conn))
	}
	var me uint64
	for me == 0 {
		if ctx.Err() != nil {
			return
		}
		call, cancel := context.WithTimeout(context.Background(), c.l.Timeout)
		r, err := pb.NewClusterClient(c.c).RegisterClient(call, &pb.RegisterClientRequest{Name: "echo"})
		cancel()
		if err == nil {
			me = r.GetClientId()
		}
	}
	for seq := uint64(1); c.next(ctx); seq++ {
		cmd := catalog.AllocateIDs{Counter: "echo", Count: 1}
		req := &pb.AllocateIDsRequest{Client: &pb.ClientRef{ClientId: me, Sequence: seq, Ack: max(seq, 17) - 17}, Counter: cmd.Counter, Count: cmd.Count}
		op := Op{Caller: c.id, Command: cmd, Client: catalog.ClientID(me), Sequence: seq, Call: c.l.H.now(), Fate: Unknown}
		sent := 0
		for try := 0; try < 20 && (op.Fate != Acked || sent < 3); try++ {
			results := c.sendTwice(stubs, req)
			sent += 2
			for _, r := range results {
				if op.Fate != Acked {
					op.Fate, op.Result, op.Return = Acked, r, c.l.H.now()
				} else if !sameAnswer(op.Result, r) || op.Result.Revision != r.Revision {
					c.l.H.violation(fmt.Sprintf("client %d sequence %d was answered %+v and %+v", me, seq, op.Result, r))
				}
			}
			if len(results) == 0 {
				rest(ctx, 100*time.Millisecond)
			}
		}
		c.l.H.resent(sent - 1)
		if op.Fate != Acked {
			op.Return = c.l.H.now()
		}
		c.l.H.add(op)
	}
}

// sendTwice sends one request to two nodes at once and returns the answers.
func (c *caller) sendTwice(stubs []pb.KVClient, req *pb.AllocateIDsRequest) []catalog.Result {
	first := c.r.IntN(len(stubs))
	ch := make(chan *pb.WriteResponse, 2)
	for i := range 2 {
		stub := stubs[(first+i)%len(stubs)]
		go func() {
			ctx, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			r, err := stub.AllocateIDs(ctx, req)
			if err != nil {
				r = nil
			}
			ch <- r
		}()
	}
	var out []catalog.Result
	for range 2 {
		r := <-ch
		if r == nil {
			continue
		}
		out = append(out, api.ResultFromProto(r.GetResult()))
	}
	return out
}

// watch follows the history, ends at random, and goes on at another node from
// where it was; sometimes from where the history may be gone.
func (c *caller) watch(ctx context.Context) {
	last := catalog.Revision(0)
	for c.next(ctx) {
		nodes := c.l.C.Nodes()
		cl, err := c.l.C.Client([]string{nodes[c.r.IntN(len(nodes))]}, client.WithTimeout(c.l.Timeout))
		if err != nil {
			c.l.H.violation(err.Error())
			return
		}
		from := last
		if c.r.IntN(8) == 0 {
			from = catalog.Revision(c.r.Uint64N(uint64(last) + 1))
		}
		rev, compacted := c.watchOnce(ctx, cl, from)
		_ = cl.Close() //nolint:errcheck // nothing is left to lose
		if compacted {
			// Go on from what the cluster has now.
			if _, meta, err := c.c.KeyValues(ctx, "none/"); err == nil {
				rev = meta.Revision
			}
		}
		last = max(last, rev)
	}
}

func (c *caller) watchOnce(ctx context.Context, cl *client.Client, from catalog.Revision) (last catalog.Revision, compacted bool) {
	w := Watch{Watcher: c.id, From: from, Prefix: c.id%2 == 1}
	o := client.WatchOptions{From: catalog.Some(from)}
	if w.Prefix {
		o.Filter = client.WatchFilter{Kinds: []catalog.ObjectKind{catalog.ObjectKeyValue}, KeyPrefix: watchPrefix}
	}
	last = from
	ctx, cancel := context.WithTimeout(ctx, time.Duration(1+c.r.IntN(5))*time.Second)
	defer cancel()
	stream, err := cl.Watch(ctx, o)
	if err != nil {
		c.l.H.violation("watch: " + err.Error())
		return last, false
	}
	for {
		b, err := stream.Next(ctx)
		if err != nil {
			w.Compacted = errors.Is(err, catalog.ErrCompacted)
			if !w.Compacted && ctx.Err() == nil && !errors.Is(err, io.EOF) {
				rest(ctx, 50*time.Millisecond)
			}
			break
		}
		step := Watched{Revision: b.Revision, Bookmark: b.Bookmark()}
		if b.Event != nil {
			step.Changes = len(b.Event.Changes)
		}
		w.Steps = append(w.Steps, step)
		last = b.Revision
	}
	_ = stream.Close() //nolint:errcheck // its end was noted
	c.l.H.addWatch(w)
	return last, w.Compacted
}
