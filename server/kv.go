package server

import (
	"context"
	"strings"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// kvService answers the calls on keys and counters.
type kvService struct {
	pb.UnimplementedKVServer
	s *Server
}

// Put implements pb.KVServer.
func (k *kvService) Put(ctx context.Context, r *pb.PutRequest) (*pb.WriteResponse, error) {
	return k.s.plainWrite(ctx, r)
}

// Delete implements pb.KVServer.
func (k *kvService) Delete(ctx context.Context, r *pb.DeleteRequest) (*pb.WriteResponse, error) {
	return k.s.plainWrite(ctx, r)
}

// Txn implements pb.KVServer.
func (k *kvService) Txn(ctx context.Context, r *pb.TxnRequest) (*pb.WriteResponse, error) {
	return k.s.plainWrite(ctx, r)
}

// AllocateIDs implements pb.KVServer.
func (k *kvService) AllocateIDs(ctx context.Context, r *pb.AllocateIDsRequest) (*pb.WriteResponse, error) {
	return k.s.plainWrite(ctx, r)
}

// Get implements pb.KVServer.
func (k *kvService) Get(ctx context.Context, r *pb.GetRequest) (*pb.GetResponse, error) {
	return answer(ctx, k.s, r, checkKey, getKey)
}

func checkKey(r *pb.GetRequest) error {
	if r.GetKey() == "" {
		return refuse(catalog.ErrInvalidArgument, "key is empty, want 1 to %d bytes", catalog.MaxKeyBytes)
	}
	return nil
}

func getKey(v view, r *pb.GetRequest) (*pb.GetResponse, error) {
	if err := checkKey(r); err != nil {
		return nil, err
	}
	row, ok := v.KeyValue(r.GetKey())
	if !ok {
		return nil, refuse(catalog.ErrKeyNotExist, "key %q does not exist", r.GetKey())
	}
	return &pb.GetResponse{Header: v.header, Row: api.KeyValueToProto(row)}, nil
}

// List implements pb.KVServer.
func (k *kvService) List(r *pb.ListRequest, out grpc.ServerStreamingServer[pb.ListResponse]) error {
	v, err := k.s.open(out.Context(), r.GetConsistency())
	if err != nil {
		return err
	}
	list := chunks[*pb.KeyValue]{send: func(rows []*pb.KeyValue) error {
		return out.Send(&pb.ListResponse{Header: v.header, Rows: rows})
	}}
	prefix, left := r.GetPrefix(), r.GetLimit()
	v.KeyValues(max(prefix, r.GetFrom()), func(row *catalog.KeyValue) bool {
		if !strings.HasPrefix(row.Key, prefix) {
			return false
		}
		if r.GetKeysOnly() {
			bare := *row
			bare.Value = nil
			row = &bare
		}
		more := list.add(api.KeyValueToProto(row))
		left-- // limit 0 wraps and never comes back to 0
		return more && left != 0
	})
	return list.end()
}
