// Package kv is a small tablet server: what whoever serves the buckets of Stave's
// tables has to do, on its public API alone.
//
// It registers and keeps its lease, follows the feed of its own buckets, asks a
// routing.Guard before it executes anything, and keeps one file per bucket in a
// directory that all servers share, as they would an object store. Nothing is
// copied between servers. A new leader opens the file once the old one has let go
// of its lock, so that a bucket has one writer, and what was acknowledged is there
// whoever leads. A server that cannot renew its lease in time lets go by itself.
//
// What a real server needs and this one has not: logs that are compacted, rows
// that need not fit into memory, deletes, and storage of its own with replication.
package kv

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"sync"
	"time"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	stavev1 "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
	pb "github.com/stavedb/stave/examples/bucketkv/v1"
	"github.com/stavedb/stave/routing"
)

// Config describes a server.
type Config struct {
	ID catalog.ServerID
	// Dir holds the buckets. All servers share it; it must support flock.
	Dir string
	// Address is what clients are told; empty: the listener's.
	Address string
	// TTL is how long the server is believed alive without a renewal; default 10 s.
	TTL    time.Duration
	Client *client.Client
	Logger *slog.Logger // default: nowhere
}

// Server serves the buckets it leads.
type Server struct {
	cfg   Config
	guard *routing.Guard
	grpc  *grpc.Server

	mu      sync.Mutex
	open    map[routing.TableBucket]*bucketFile
	wanted  map[routing.TableBucket]*stavev1.Activation // what it leads
	renewed time.Time                                   // when the last renewal that succeeded was sent
	// dead is set while the lease is not believed in: nothing is opened.
	dead bool
}

// New returns a server that serves nothing before Run.
func New(cfg Config) *Server {
	if cfg.TTL == 0 {
		cfg.TTL = 10 * time.Second
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s := &Server{
		cfg: cfg, guard: routing.NewGuard(), grpc: grpc.NewServer(grpc.MaxRecvMsgSize(maxRow)),
		open: map[routing.TableBucket]*bucketFile{}, wanted: map[routing.TableBucket]*stavev1.Activation{}, dead: true,
	}
	pb.RegisterBucketKVServer(s.grpc, service{s: s})
	return s
}

// Run serves on l until ctx ends, then lets go of everything and returns nil. It
// returns an error if the server can not go on: its id is in use, or the listener
// broke.
func (s *Server) Run(ctx context.Context, l net.Listener) error {
	if s.cfg.Address == "" {
		s.cfg.Address = l.Addr().String()
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	wg.Go(func() {
		if err := s.grpc.Serve(l); err != nil {
			cancel(fmt.Errorf("serve: %w", err))
		}
	})
	wg.Go(func() { s.openFiles(ctx) })
	err := s.live(ctx)
	cancel(err)
	s.grpc.Stop()
	wg.Wait()
	s.letGo("stopped")
	if cause := context.Cause(ctx); err == nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	return err
}

// live registers and follows the feed, again whenever the registration is lost.
func (s *Server) live(ctx context.Context) error {
	for ctx.Err() == nil {
		err := s.once(ctx)
		if api.CodeOf(err) == catalog.ErrServerIDInUse {
			return err
		}
		s.letGo("registration lost")
		if ctx.Err() == nil {
			s.cfg.Logger.Warn("registering again", "error", err)
			sleep(ctx, 200*time.Millisecond)
		}
	}
	return nil
}

func sleep(ctx context.Context, d time.Duration) {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
}

// once is the life of one registration.
func (s *Server) once(ctx context.Context) error {
	placement := stavev1.NewPlacementClient(s.cfg.Client)
	sent := time.Now()
	reg, err := placement.RegisterServer(ctx, &stavev1.RegisterServerRequest{
		ServerId: int32(s.cfg.ID), DirectoryId: fmt.Sprintf("bucketkv-%d-%s", s.cfg.ID, s.cfg.Dir),
		Listeners: []string{s.cfg.Address}, TtlMs: s.cfg.TTL.Milliseconds(),
	})
	if err != nil {
		return err
	}
	s.renewedAt(sent)
	lease := &stavev1.Lease{ServerId: int32(s.cfg.ID), Incarnation: reg.GetServer().GetIncarnation()}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() { cancel(s.keepAlive(ctx, placement, lease)) })
	wg.Go(func() { s.rejoin(ctx, placement, lease) })
	for ctx.Err() == nil {
		err := s.follow(ctx, placement, lease)
		if code := api.CodeOf(err); code == catalog.ErrFenced || code == catalog.ErrSessionExpired {
			cancel(err)
		}
		sleep(ctx, 50*time.Millisecond)
	}
	return context.Cause(ctx)
}

func (s *Server) renewedAt(sent time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.renewed, s.dead = sent, false
}

// keepAlive renews the lease until it is lost. The cluster counts from when a
// renewal arrives, the server from when it was sent, so the server gives up first.
func (s *Server) keepAlive(ctx context.Context, p stavev1.PlacementClient, lease *stavev1.Lease) error {
	for {
		sleep(ctx, s.cfg.TTL/4)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.mu.Lock()
		left := s.cfg.TTL - time.Since(s.renewed)
		s.mu.Unlock()
		if left <= 0 {
			return errors.New("the lease was not renewed in time")
		}
		sent := time.Now()
		call, cancel := context.WithTimeout(ctx, left)
		r, err := p.KeepAlive(call, &stavev1.KeepAliveRequest{Leases: []*stavev1.Lease{lease}})
		cancel()
		switch {
		case err != nil:
		case len(r.GetLost()) > 0:
			return &catalog.Error{Code: catalog.ErrSessionExpired, Message: "the lease is lost"}
		default:
			s.renewedAt(sent)
		}
	}
}

// rejoin brings servers that came back into the in-sync replicas of the buckets
// this server leads, so that they may lead them next: all have the same files. An
// adjustment that was overtaken is made again from the next state.
func (s *Server) rejoin(ctx context.Context, p stavev1.PlacementClient, lease *stavev1.Lease) {
	for ctx.Err() == nil {
		sleep(ctx, s.cfg.TTL/4)
		var short []*stavev1.Activation
		s.mu.Lock()
		for b, a := range s.wanted {
			if s.open[b] != nil && len(a.GetIsr()) < len(a.GetReplicas()) {
				short = append(short, a)
			}
		}
		s.mu.Unlock()
		if len(short) == 0 {
			continue
		}
		live, err := s.liveServers(ctx)
		if err != nil {
			continue
		}
		req := &stavev1.AdjustISRRequest{ServerId: lease.GetServerId(), Incarnation: lease.GetIncarnation()}
		for _, a := range short {
			var isr []int32
			for _, id := range a.GetReplicas() {
				if live[id] {
					isr = append(isr, id)
				}
			}
			if len(isr) > len(a.GetIsr()) {
				req.Changes = append(req.Changes, &stavev1.ISRChange{
					Bucket: a.GetBucket(), LeaderEpoch: a.GetLeaderEpoch(), BucketEpoch: a.GetBucketEpoch(), CoordinatorEpoch: a.GetCoordinatorEpoch(), Isr: isr,
				})
			}
		}
		if len(req.Changes) == 0 {
			continue
		}
		if _, err := p.AdjustISR(ctx, req); err != nil && ctx.Err() == nil {
			s.cfg.Logger.Warn("in-sync replicas not adjusted", "error", err)
		}
	}
}

func (s *Server) liveServers(ctx context.Context) (map[int32]bool, error) {
	list, err := stavev1.NewPlacementClient(s.cfg.Client).ListServers(ctx, &stavev1.ListServersRequest{})
	if err != nil {
		return nil, err
	}
	live := map[int32]bool{}
	for {
		m, err := list.Recv()
		if errors.Is(err, io.EOF) {
			return live, nil
		} else if err != nil {
			return nil, err
		}
		for _, v := range m.GetServers() {
			live[v.GetServerId()] = v.GetLive()
		}
	}
}

// follow takes the feed from a snapshot on.
func (s *Server) follow(ctx context.Context, p stavev1.PlacementClient, lease *stavev1.Lease) error {
	stream, err := p.Feed(ctx, &stavev1.FeedRequest{ServerId: lease.GetServerId(), Incarnation: lease.GetIncarnation()})
	if err != nil {
		return err
	}
	var step *stavev1.FeedResponse
	for {
		m, err := stream.Recv()
		if errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return api.ErrorFromStatus(statusOf(err))
		}
		if step == nil {
			step = m
		} else { // the rest of a step
			step.Activations = append(step.Activations, m.GetActivations()...)
			step.More = m.GetMore()
		}
		if step.GetMore() {
			continue
		}
		if err := s.take(ctx, p, lease, step); err != nil {
			return err
		}
		step = nil
	}
}

// take brings guard and files to where a step leads: what is not led any more is
// refused first, then closed; what is led is opened in the background.
func (s *Server) take(ctx context.Context, p stavev1.PlacementClient, lease *stavev1.Lease, m *stavev1.FeedResponse) error {
	u := s.update(m)
	if err := s.guard.Apply(u); err != nil {
		return err
	}
	s.settle(m.GetActivations())
	if len(m.GetDeletions()) == 0 {
		return nil
	}
	acks := make([]*stavev1.DeletionAck, len(m.GetDeletions()))
	for i, d := range m.GetDeletions() {
		path := objectPath(s.cfg.Dir, catalog.TableID(d.GetTableId()), catalog.PartitionID(d.GetPartitionId()))
		if d.PartitionId == nil {
			path = tablePath(s.cfg.Dir, catalog.TableID(d.GetTableId()))
		}
		acks[i] = &stavev1.DeletionAck{TableId: d.GetTableId(), PartitionId: d.PartitionId, Failed: os.RemoveAll(path) != nil}
	}
	_, err := p.AckDeletions(ctx, &stavev1.AckDeletionsRequest{ServerId: lease.GetServerId(), Incarnation: lease.GetIncarnation(), Objects: acks})
	return err
}

func tablePath(dir string, t catalog.TableID) string { return fmt.Sprintf("%s/%d", dir, t) }

func (s *Server) update(m *stavev1.FeedResponse) routing.GuardUpdate {
	u := routing.GuardUpdate{
		Incarnation: api.IncarnationFromProto(m.GetHeader().GetIncarnation()), Revision: catalog.Revision(m.GetRevision()), Reset: m.GetSnapshot(),
		Epochs: map[catalog.TableID]catalog.Epoch{}, DroppedPartitions: map[catalog.TableID][]catalog.PartitionID{},
	}
	for _, e := range m.GetEpochs() {
		u.Epochs[catalog.TableID(e.GetTableId())] = catalog.Epoch(e.GetLayoutEpoch())
	}
	for _, a := range m.GetActivations() {
		u.Activations = append(u.Activations, routing.Activation{
			Bucket: bucketOf(a.GetBucket()), Table: a.GetTable(), Partition: a.GetPartition(), Count: a.GetBucketCount(),
			Leading: catalog.ServerID(a.GetLeader()) == s.cfg.ID, LeaderEpoch: catalog.LeaderEpoch(a.GetLeaderEpoch()), BucketEpoch: catalog.BucketEpoch(a.GetBucketEpoch()),
		})
	}
	for _, r := range m.GetRemoved() {
		u.Removed = append(u.Removed, bucketOf(r))
	}
	for _, d := range m.GetDeletions() {
		t := catalog.TableID(d.GetTableId())
		if d.PartitionId == nil {
			u.DroppedTables = append(u.DroppedTables, t)
		} else {
			u.DroppedPartitions[t] = append(u.DroppedPartitions[t], catalog.PartitionID(d.GetPartitionId()))
		}
	}
	return u
}

func bucketOf(p *stavev1.BucketRef) routing.TableBucket {
	r := api.BucketRefFromProto(p)
	return routing.TableBucket{TableID: r.Table, PartitionID: r.Partition.Or(routing.NoPartition), Bucket: int32(r.Bucket)}
}

// settle closes what the guard says is not led any more.
func (s *Server) settle(list []*stavev1.Activation) {
	var shut []*bucketFile
	s.mu.Lock()
	for _, a := range list {
		s.wanted[bucketOf(a.GetBucket())] = a
	}
	for b := range s.wanted {
		if a, here := s.guard.Replica(b); here && a.Leading {
			continue
		}
		delete(s.wanted, b)
		if f := s.open[b]; f != nil {
			delete(s.open, b)
			shut = append(shut, f)
		}
	}
	s.mu.Unlock()
	s.close(shut)
}

func (s *Server) close(shut []*bucketFile) {
	for _, f := range shut {
		if err := f.close(); err != nil {
			s.cfg.Logger.Error("closing a bucket", "error", err)
		}
	}
}

// letGo stops serving everything: another server may lead it by now.
func (s *Server) letGo(why string) {
	s.mu.Lock()
	s.dead = true
	var shut []*bucketFile
	for _, f := range s.open {
		shut = append(shut, f)
	}
	clear(s.open)
	clear(s.wanted)
	s.mu.Unlock()
	s.close(shut)
	if len(shut) > 0 {
		s.cfg.Logger.Warn("let go of buckets", "buckets", len(shut), "why", why)
	}
}

// openFiles opens the files of buckets that are led, as soon as the leader before
// has let go of them. One that failed is opened anew.
func (s *Server) openFiles(ctx context.Context) {
	for ctx.Err() == nil {
		for _, b := range s.missing() {
			f, err := openBucket(bucketPath(s.cfg.Dir, b))
			if err != nil {
				if !errors.Is(err, ErrLocked) {
					s.cfg.Logger.Error("opening a bucket", "bucket", b.String(), "error", err)
				}
				continue
			}
			s.mu.Lock()
			keep := s.wanted[b] != nil && !s.dead
			if keep {
				s.open[b] = f
			}
			s.mu.Unlock()
			if !keep {
				s.close([]*bucketFile{f})
			}
		}
		sleep(ctx, 10*time.Millisecond)
	}
}

func (s *Server) missing() (out []routing.TableBucket) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for b := range s.wanted {
		f := s.open[b]
		if f != nil && f.broken() {
			delete(s.open, b)
			s.close([]*bucketFile{f})
			f = nil
		}
		if f == nil {
			out = append(out, b)
		}
	}
	return out
}
