package kv

import (
	"context"
	"errors"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
	pb "github.com/stavedb/stave/examples/bucketkv/v1"
	"github.com/stavedb/stave/routing"
)

const maxScan = 1000

// service answers calls: the guard decides, then the bucket's file executes.
type service struct {
	pb.UnimplementedBucketKVServer
	s *Server
}

// led returns the file of a bucket that this server leads, with the epoch it
// leads it in.
func (v service) led(b *pb.Bucket) (*bucketFile, catalog.LeaderEpoch, error) {
	req := requestOf(b)
	if err := v.s.guard.CheckWhole([]routing.Request{req}); err != nil {
		return nil, 0, refusal(err)
	}
	a, _ := v.s.guard.Replica(req.Bucket)
	v.s.mu.Lock()
	f := v.s.open[req.Bucket]
	v.s.mu.Unlock()
	if f == nil {
		return nil, 0, unavailable(req.Bucket.String() + " is being opened")
	}
	return f, a.LeaderEpoch, nil
}

func unavailable(why string) error {
	return api.StatusFromError(&catalog.Error{Code: catalog.ErrLeaderNotAvailable, Message: why}).Err()
}

// refusal puts the fresh layout into a STALE_METADATA.
func refusal(err error) error {
	var stale *routing.StaleError
	if errors.As(err, &stale) {
		l := api.Layout{
			Incarnation: stale.Incarnation, Revision: stale.Revision, TableID: stale.Bucket.TableID, Table: stale.Table,
			Partition: stale.Partition, Buckets: stale.Count, Epoch: stale.Epoch,
		}
		if id := stale.Bucket.PartitionID; id != routing.NoPartition {
			l.PartitionID = catalog.Some(id)
		}
		err = &api.StaleMetadataError{Layout: l, Message: stale.Bucket.String() + " was routed with another bucket count"}
	}
	return api.StatusFromError(err).Err()
}

// failed is what becomes of an error of a bucket's file.
func failed(err error) error {
	if errors.Is(err, errShut) {
		return api.StatusFromError(&catalog.Error{Code: catalog.ErrNotLeaderOrFollower, Message: err.Error()}).Err()
	}
	return api.StatusFromError(&catalog.Error{Code: catalog.ErrStorage, Message: err.Error()}).Err()
}

func requestOf(b *pb.Bucket) routing.Request {
	t := routing.TableBucket{TableID: catalog.TableID(b.GetTableId()), PartitionID: routing.NoPartition, Bucket: b.GetBucket()}
	if b != nil && b.PartitionId != nil {
		t.PartitionID = catalog.PartitionID(*b.PartitionId)
	}
	return routing.Request{Bucket: t, Count: b.GetBucketCount()}
}

// Put implements pb.BucketKVServer.
func (v service) Put(_ context.Context, r *pb.PutRequest) (*pb.PutResponse, error) {
	f, epoch, err := v.led(r.GetBucket())
	if err != nil {
		return nil, err
	}
	keys, values := make([][]byte, len(r.GetRows())), make([][]byte, len(r.GetRows()))
	for i, row := range r.GetRows() {
		keys[i], values[i] = row.GetKey(), row.GetValue()
	}
	if err := f.put(keys, values, v.s.cfg.ID, epoch); err != nil {
		return nil, failed(err)
	}
	return &pb.PutResponse{}, nil
}

// Get implements pb.BucketKVServer.
func (v service) Get(_ context.Context, r *pb.GetRequest) (*pb.GetResponse, error) {
	f, _, err := v.led(r.GetBucket())
	if err != nil {
		return nil, err
	}
	got, ok, err := f.get(r.GetKey())
	switch {
	case err != nil:
		return nil, failed(err)
	case !ok:
		return &pb.GetResponse{}, nil
	}
	return &pb.GetResponse{Row: rowTo(string(r.GetKey()), got)}, nil
}

func rowTo(key string, r row) *pb.Row {
	return &pb.Row{Key: []byte(key), Value: r.value, ServerId: int32(r.server), LeaderEpoch: int32(r.epoch)}
}

// Scan implements pb.BucketKVServer.
func (v service) Scan(_ context.Context, r *pb.ScanRequest) (*pb.ScanResponse, error) {
	f, _, err := v.led(r.GetBucket())
	if err != nil {
		return nil, err
	}
	limit := int(r.GetLimit())
	if limit <= 0 || limit > maxScan {
		limit = maxScan
	}
	out := &pb.ScanResponse{}
	err = f.scan(r.GetAfter(), func(k string, got row) bool {
		out.Rows = append(out.Rows, rowTo(k, got))
		return len(out.Rows) < limit
	})
	if err != nil {
		return nil, failed(err)
	}
	return out, nil
}
