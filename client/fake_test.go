package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"sync"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/memnet"
)

// fake is a cluster without consensus: all nodes apply to one real catalog
// state, so that clients, sequences and watermarks follow the real rules, and
// answers can be replaced or lost at will.
type fake struct {
	t   testing.TB
	net *memnet.Network

	mu     sync.Mutex
	id     string
	nodes  []*fakeNode
	state  *catalog.State
	events []*catalog.Event
	oldest catalog.Revision // of the history of node 0; others keep all
	leader string
	// before is asked before anything is done, lose whether an answer is lost.
	before func(n *fakeNode, req any) error
	lose   func(n *fakeNode, req any) bool
	// batches are the sequences of each message of batch streams.
	batches [][]uint64
	// readBatches are the sizes of the messages of streams of reads.
	readBatches []int
	changed     chan struct{}
	// cutAfter ends watch streams after that many messages; 0: never.
	cutAfter func() int
}

// fakeNode is one address behind which the fake answers.
type fakeNode struct {
	f    *fake
	id   string
	addr string
	// cluster is what the node says it belongs to.
	cluster string
	srv     *grpc.Server
	done    chan struct{}
	pb.UnimplementedKVServer
	pb.UnimplementedCatalogServer
}

type (
	fakeCluster struct {
		*fakeNode
		pb.UnimplementedClusterServer
	}
	fakeWatch struct {
		*fakeNode
		pb.UnimplementedWatchServer
	}
)

func newFake(t testing.TB, size int) *fake {
	t.Helper()
	f := &fake{t: t, net: memnet.New(), id: "c1", leader: "n1", state: catalog.NewState(), changed: make(chan struct{})}
	f.incarnate(1)
	for i := range size {
		id := fmt.Sprintf("n%d", i+1)
		f.nodes = append(f.nodes, f.start(id, id+":7401"))
	}
	t.Cleanup(func() {
		for _, n := range f.nodes {
			n.stop()
		}
	})
	return f
}

// incarnate begins a history that knows no clients, as a restore does.
func (f *fake) incarnate(number uint64) {
	b := catalog.NewState().Begin()
	rev := f.state.Revision() + 1
	b.Apply(rev, catalog.Envelope{}, catalog.ActivateIncarnation{
		ClusterID: f.id, Incarnation: catalog.Incarnation{Number: number, Random: 7}, Level: catalog.CurrentLevel,
	})
	b.Apply(rev+1, catalog.Envelope{}, catalog.NewTerm{Term: 1, Leader: "n1"})
	f.state = b.Publish()
}

// restore is incarnate with the clients' ids moved on. The lock is held.
func (f *fake) restore(number uint64) {
	f.incarnate(number)
	b := f.state.Begin()
	for range 5 { // ids of the old history are not given out again
		b.Apply(f.state.Revision()+1, catalog.Envelope{}, catalog.RegisterClient{Name: "gap"})
	}
	s := b.Publish()
	var ids []catalog.ClientActivity
	s.Clients(func(c *catalog.Client) bool {
		ids = append(ids, catalog.ClientActivity{ID: c.ID, ActiveAt: c.ActiveAt})
		return true
	})
	b.Apply(s.Revision()+1, catalog.Envelope{Lease: catalog.ClientTTL * 2}, catalog.ExpireClients{Clients: ids})
	f.state, f.events = b.Publish(), nil
	f.wake()
}

// expire forgets every client record. The lock is held.
func (f *fake) expire() {
	var ids []catalog.ClientActivity
	f.state.Clients(func(c *catalog.Client) bool {
		ids = append(ids, catalog.ClientActivity{ID: c.ID, ActiveAt: c.ActiveAt})
		return true
	})
	b := f.state.Begin()
	b.Apply(f.state.Revision()+1, catalog.Envelope{Lease: f.state.Cluster().Lease + catalog.ClientTTL*2}, catalog.ExpireClients{Clients: ids})
	f.state = b.Publish()
}

func (f *fake) start(id, addr string) *fakeNode {
	n := &fakeNode{f: f, id: id, addr: addr, cluster: f.id, srv: grpc.NewServer(), done: make(chan struct{})}
	host, err := f.net.Host(id).Listen(addr)
	if err != nil {
		f.t.Fatalf("listen %s: %v", addr, err)
	}
	pb.RegisterKVServer(n.srv, n)
	pb.RegisterCatalogServer(n.srv, n)
	pb.RegisterClusterServer(n.srv, &fakeCluster{fakeNode: n})
	pb.RegisterWatchServer(n.srv, &fakeWatch{fakeNode: n})
	go func() {
		defer close(n.done)
		_ = n.srv.Serve(host)
	}()
	return n
}

func (n *fakeNode) stop() {
	n.srv.Stop()
	<-n.done
}

func (f *fake) endpoints() (out []string) {
	for _, n := range f.nodes {
		out = append(out, n.addr)
	}
	return out
}

// client returns a client of the fake that is closed with the test.
func (f *fake) client(opts ...Option) *Client {
	f.t.Helper()
	c, err := New(f.endpoints(), append([]Option{WithDialer(f.net.Host("client").Dial)}, opts...)...)
	if err != nil {
		f.t.Fatalf("new client: %v", err)
	}
	f.t.Cleanup(func() { _ = c.Close() })
	return c
}

func (f *fake) counter(name string) uint64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	c, ok := f.state.Counter(name)
	if !ok {
		return 0
	}
	return c.Next
}

// locked runs something that wants the lock.
func (f *fake) locked(do func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	do()
}

func (f *fake) wake() {
	close(f.changed)
	f.changed = make(chan struct{})
}

func (f *fake) hook(before func(n *fakeNode, req any) error, lose func(n *fakeNode, req any) bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.before, f.lose = before, lose
}

func (f *fake) header() *pb.ResponseHeader {
	h := api.Header(f.state.Incarnation(), f.state.Revision())
	for _, n := range f.nodes {
		if n.id == f.leader {
			h.Leader = &pb.LeaderHint{NodeId: n.id, Address: n.addr}
		}
	}
	return h
}

// apply executes one command under the lock.
func (f *fake) apply(ref api.Ref, cmd catalog.Command) catalog.Result {
	b := f.state.Begin()
	res, ev := b.Apply(f.state.Revision()+1, catalog.Envelope{Client: ref.Client, Sequence: ref.Sequence, Ack: ref.Ack}, cmd)
	f.state = b.Publish()
	if ev != nil {
		f.events = append(f.events, ev)
	}
	f.wake()
	return res
}

var errLost = status.Error(codes.Unavailable, "the answer was lost")

// unary does one write as the server does.
func (n *fakeNode) unary(req api.Request) (*pb.ResponseHeader, *pb.Result, error) {
	f := n.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		if err := f.before(n, req); err != nil {
			return nil, nil, wireError(err)
		}
	}
	cmd, ref, err := api.CommandFromRequest(req)
	if err != nil {
		return nil, nil, wireError(err)
	}
	res := f.apply(ref, cmd)
	if f.lose != nil && f.lose(n, req) {
		return nil, nil, errLost
	}
	if err := res.Err(); err != nil {
		return nil, nil, wireError(err)
	}
	return f.header(), api.ResultToProto(&res), nil
}

func wireError(err error) error {
	if _, ok := status.FromError(err); ok {
		return err
	}
	return api.StatusFromError(err).Err()
}

func (n *fakeNode) write(req api.Request) (*pb.WriteResponse, error) {
	h, r, err := n.unary(req)
	if err != nil {
		return nil, err
	}
	return &pb.WriteResponse{Header: h, Result: r}, nil
}

func (n *fakeNode) Put(_ context.Context, r *pb.PutRequest) (*pb.WriteResponse, error) {
	return n.write(r)
}

func (n *fakeNode) AllocateIDs(_ context.Context, r *pb.AllocateIDsRequest) (*pb.WriteResponse, error) {
	return n.write(r)
}

func (n *fakeNode) Get(_ context.Context, r *pb.GetRequest) (*pb.GetResponse, error) {
	f := n.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		if err := f.before(n, r); err != nil {
			return nil, wireError(err)
		}
	}
	v, ok := f.state.KeyValue(r.GetKey())
	if !ok {
		return nil, wireError(&catalog.Error{Code: catalog.ErrKeyNotExist, Message: "no such key"})
	}
	return &pb.GetResponse{Header: f.header(), Row: api.KeyValueToProto(v)}, nil
}

func (n *fakeNode) GetLayout(_ context.Context, r *pb.GetLayoutRequest) (*pb.GetLayoutResponse, error) {
	f := n.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		if err := f.before(n, r); err != nil {
			return nil, wireError(err)
		}
	}
	t, ok := f.state.Table(r.GetTable())
	if !ok {
		return nil, wireError(&catalog.Error{Code: catalog.ErrTableNotExist, Message: "no such table"})
	}
	out := &pb.GetLayoutResponse{Header: f.header(), Table: api.TableToProto(t)}
	for _, name := range r.GetNames() {
		if p, ok := f.state.Partition(t.ID, name); ok {
			out.Partitions = append(out.Partitions, api.PartitionToProto(t, p))
		}
	}
	f.state.Servers(func(s *catalog.Server) bool { // more than the leaders, which is harmless
		out.Servers = append(out.Servers, api.ServerToProto(s))
		return true
	})
	return out, nil
}

func (n *fakeNode) List(r *pb.ListRequest, s grpc.ServerStreamingServer[pb.ListResponse]) error {
	f := n.f
	f.mu.Lock()
	st, h, before := f.state, f.header(), f.before
	f.mu.Unlock()
	var rows []*pb.KeyValue
	st.KeyValues(r.GetPrefix(), func(v *catalog.KeyValue) bool {
		rows = append(rows, api.KeyValueToProto(v))
		return true
	})
	for c := range slices.Chunk(rows, 2) {
		if before != nil {
			if err := before(n, c); err != nil {
				return wireError(err)
			}
		}
		if err := s.Send(&pb.ListResponse{Header: h, Rows: c}); err != nil {
			return err
		}
	}
	return nil
}

func (n *fakeCluster) Status(context.Context, *pb.StatusRequest) (*pb.StatusResponse, error) {
	f := n.f
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.state.Cluster()
	out := &pb.StatusResponse{Header: f.header(), NodeId: n.id, Cluster: api.ClusterToProto(&c)}
	out.Cluster.ClusterId = n.cluster
	for _, m := range f.nodes {
		out.Members = append(out.Members, &pb.MemberStatus{Member: &pb.Member{NodeId: m.id, ApiAddress: m.addr}})
	}
	return out, nil
}

func (n *fakeCluster) RegisterClient(_ context.Context, r *pb.RegisterClientRequest) (*pb.RegisterClientResponse, error) {
	f := n.f
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.before != nil {
		if err := f.before(n.fakeNode, r); err != nil {
			return nil, wireError(err)
		}
	}
	res := f.apply(api.Ref{}, catalog.RegisterClient{Name: r.GetName(), TTL: catalog.Millis(r.GetTtlMs())})
	id, _ := res.FirstID()
	return &pb.RegisterClientResponse{Header: f.header(), ClientId: id}, nil
}

func (n *fakeCluster) Commands(s grpc.BidiStreamingServer[pb.CommandsRequest, pb.CommandsResponse]) error {
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		out, end := n.batch(m)
		if len(out.GetOutcomes()) > 0 {
			if err := s.Send(out); err != nil {
				return err
			}
		}
		if end != nil {
			return wireError(end)
		}
	}
}

func (n *fakeCluster) batch(m *pb.CommandsRequest) (*pb.CommandsResponse, error) {
	f := n.f
	f.mu.Lock()
	defer f.mu.Unlock()
	out := &pb.CommandsResponse{Header: f.header()}
	var seqs []uint64
	for _, c := range m.GetCommands() {
		seqs = append(seqs, c.GetSequence())
	}
	f.batches = append(f.batches, seqs)
	for _, c := range m.GetCommands() {
		o := &pb.CommandOutcome{Sequence: c.GetSequence()}
		req := api.RequestOf(c.GetCommand())
		if f.before != nil {
			if err := f.before(n.fakeNode, req); err != nil {
				if _, foreign := status.FromError(err); foreign { // the transport broke
					return out, err
				}
				o.Outcome = &pb.CommandOutcome_Error{Error: api.ErrorToProto(err)}
				out.Outcomes = append(out.Outcomes, o)
				switch judge(context.Background(), err) {
				case stepAgain, stepElsewhere, stepUnclear:
					return out, err
				}
				continue
			}
		}
		cmd, err := api.CommandFromProto(c.GetCommand())
		if err != nil {
			return out, err
		}
		res := f.apply(api.Ref{Client: catalog.ClientID(m.GetClientId()), Sequence: c.GetSequence(), Ack: m.GetAck()}, cmd)
		if f.lose != nil && f.lose(n.fakeNode, req) {
			return out, errLost
		}
		switch res.Code {
		case catalog.ErrSessionExpired, catalog.ErrAlreadyAcknowledged, catalog.ErrBusy:
			o.Outcome = &pb.CommandOutcome_Error{Error: api.ErrorToProto(res.Err())}
		default:
			o.Outcome = &pb.CommandOutcome_Result{Result: api.ResultToProto(&res)}
		}
		out.Outcomes = append(out.Outcomes, o)
	}
	return out, nil
}

// Reads answers each message as one batch.
func (n *fakeCluster) Reads(s grpc.BidiStreamingServer[pb.ReadsRequest, pb.ReadsResponse]) error {
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		n.f.locked(func() { n.f.readBatches = append(n.f.readBatches, len(m.GetReads())) })
		out := &pb.ReadsResponse{}
		n.f.locked(func() { out.Header = n.f.header() })
		for _, r := range m.GetReads() {
			o, err := n.readOne(s.Context(), r)
			if st, ok := status.FromError(err); ok && err != nil {
				back := api.ErrorFromStatus(st)
				var rpc *api.RPCError
				if errors.As(back, &rpc) { // the transport broke
					return err
				}
				o.Outcome = &pb.ReadOutcome_Error{Error: api.ErrorToProto(back)}
			}
			out.Outcomes = append(out.Outcomes, o)
		}
		if err := s.Send(out); err != nil {
			return err
		}
	}
}

func (n *fakeCluster) readOne(ctx context.Context, r *pb.Read) (*pb.ReadOutcome, error) {
	switch q := r.GetRead().(type) {
	case *pb.Read_Get:
		a, err := n.Get(ctx, q.Get)
		return &pb.ReadOutcome{Outcome: &pb.ReadOutcome_Get{Get: a}}, err
	case *pb.Read_Layout:
		a, err := n.GetLayout(ctx, q.Layout)
		return &pb.ReadOutcome{Outcome: &pb.ReadOutcome_Layout{Layout: a}}, err
	}
	return &pb.ReadOutcome{}, status.Error(codes.Unimplemented, "no such read")
}
