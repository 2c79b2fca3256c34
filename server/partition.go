package server

import (
	"context"
	"slices"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// maxAnswered is how many partitions the answer to CreatePartitions shows.
const maxAnswered = 1024

// CreatePartitions implements pb.CatalogServer.
func (c *catalogService) CreatePartitions(ctx context.Context, r *pb.CreatePartitionsRequest) (*pb.PartitionsResponse, error) {
	w, err := c.s.write(ctx, r)
	if err != nil {
		return nil, err
	}
	out := &pb.PartitionsResponse{Header: w.header, Result: w.result}
	t, err := findTable(w.State, r.GetTable(), r.TableId)
	if err != nil {
		return out, nil //nolint:nilerr // the table was dropped since; the write took effect
	}
	out.Table = withoutHistory(t)
	for _, run := range w.ids {
		for i := uint64(0); i < run.Count && len(out.Partitions) < maxAnswered; i++ {
			p, ok := w.PartitionByID(catalog.PartitionID(run.First + i))
			if ok && p.Table == t.ID {
				out.Partitions = append(out.Partitions, api.PartitionToProto(t, p))
			}
		}
	}
	return out, nil
}

// DropPartitions implements pb.CatalogServer.
func (c *catalogService) DropPartitions(ctx context.Context, r *pb.DropPartitionsRequest) (*pb.WriteResponse, error) {
	return c.s.plainWrite(ctx, r)
}

// GetPartition implements pb.CatalogServer.
func (c *catalogService) GetPartition(ctx context.Context, r *pb.GetPartitionRequest) (*pb.PartitionResponse, error) {
	return answer(ctx, c.s, r, checkPartition, getPartition)
}

func checkPartition(r *pb.GetPartitionRequest) error {
	if r.PartitionId == nil && r.GetName() == "" && r.Spec == nil {
		return refuse(catalog.ErrInvalidArgument, "partition_id, name and spec are not set, want one of them")
	}
	return checkTable(r.GetTable(), r.TableId)
}

func getPartition(v view, r *pb.GetPartitionRequest) (*pb.PartitionResponse, error) {
	if err := checkPartition(r); err != nil {
		return nil, err
	}
	t, err := findTable(v.State, r.GetTable(), r.TableId)
	if err != nil {
		return nil, err
	}
	p, err := findPartition(v.State, t, r)
	if err != nil {
		return nil, err
	}
	return &pb.PartitionResponse{Header: v.header, Table: withoutHistory(t), Partition: api.PartitionToProto(t, p)}, nil
}

// findPartition finds a partition by id, else by name, else by spec.
func findPartition(st *catalog.State, t *catalog.Table, r *pb.GetPartitionRequest) (*catalog.Partition, error) {
	if !t.Partitioned() {
		return nil, refuse(catalog.ErrTableNotPartitioned, "table %s is not partitioned", t.Path)
	}
	name := r.GetName()
	switch {
	case r.PartitionId != nil:
		p, ok := st.PartitionByID(catalog.PartitionID(r.GetPartitionId()))
		if !ok || p.Table != t.ID {
			return nil, refuse(catalog.ErrPartitionNotExists, "table %s has no partition with id %d", t.Path, r.GetPartitionId())
		}
		return p, nil
	case name == "":
		var err error
		if name, err = catalog.PartitionName(t, api.SpecFromProto(r.Spec), false); err != nil {
			return nil, err
		}
	}
	p, ok := st.Partition(t.ID, name)
	if !ok {
		return nil, refuse(catalog.ErrPartitionNotExists, "table %s has no partition %s", t.Path, name)
	}
	return p, nil
}

// ListPartitions implements pb.CatalogServer.
func (c *catalogService) ListPartitions(r *pb.ListPartitionsRequest, out grpc.ServerStreamingServer[pb.ListPartitionsResponse]) error {
	if err := checkTable(r.GetTable(), r.TableId); err != nil {
		return err
	}
	v, err := c.s.open(out.Context(), r.GetConsistency())
	if err != nil {
		return err
	}
	t, err := findTable(v.State, r.GetTable(), r.TableId)
	if err != nil {
		return err
	}
	filter := api.SpecFromProto(r.GetFilter())
	if err := checkFilter(t, filter); err != nil {
		return err
	}
	table := api.TableToProto(t) // with the first chunk only
	list := chunks[*pb.Partition]{send: func(rows []*pb.Partition) error {
		msg := &pb.ListPartitionsResponse{Header: v.header, Table: table, Partitions: rows}
		table = nil
		return out.Send(msg)
	}}
	left := r.GetLimit()
	v.Partitions(t.ID, r.GetFrom(), func(p *catalog.Partition) bool {
		if !matchesSpec(t, p, filter) {
			return true
		}
		more := list.add(api.PartitionToProto(t, p))
		left-- // limit 0 wraps and never comes back to 0
		return more && left != 0
	})
	return list.end()
}

// checkFilter wants partition keys of the table, each once.
func checkFilter(t *catalog.Table, filter catalog.PartitionSpec) error {
	if len(filter) > 0 && !t.Partitioned() {
		return refuse(catalog.ErrTableNotPartitioned, "table %s is not partitioned", t.Path)
	}
	for i, f := range filter {
		switch {
		case !slices.Contains(t.PartitionKeys, f.Key):
			return refuse(catalog.ErrPartitionSpecInvalid, "filter: %q is not a partition key of table %s", f.Key, t.Path)
		case slices.ContainsFunc(filter[:i], func(o catalog.Property) bool { return o.Key == f.Key }):
			return refuse(catalog.ErrPartitionSpecInvalid, "filter: partition key %q is given twice", f.Key)
		}
	}
	return nil
}

func matchesSpec(t *catalog.Table, p *catalog.Partition, filter catalog.PartitionSpec) bool {
	if len(filter) == 0 {
		return true
	}
	spec := t.Spec(p)
	for _, f := range filter {
		if v, ok := catalog.PropertyValue(spec, f.Key); !ok || v != f.Value {
			return false
		}
	}
	return true
}
