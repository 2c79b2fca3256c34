package server

import (
	"context"
	"maps"
	"slices"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// maxLayout bounds the partitions that one GetLayout asks for.
const maxLayout = 4096

// GetLayout implements pb.CatalogServer.
func (c *catalogService) GetLayout(ctx context.Context, r *pb.GetLayoutRequest) (*pb.GetLayoutResponse, error) {
	return answer(ctx, c.s, r, checkLayout, getLayout)
}

func checkLayout(r *pb.GetLayoutRequest) error {
	if n := len(r.GetNames()) + len(r.GetPartitionIds()); n > maxLayout {
		return &catalog.Error{
			Code: catalog.ErrTooLarge, Limit: maxLayout, Size: uint64(n),
			Message: "names and partition_ids are more than 4096 together",
		}
	}
	return checkTable(r.GetTable(), r.TableId)
}

func getLayout(v view, r *pb.GetLayoutRequest) (*pb.GetLayoutResponse, error) {
	if err := checkLayout(r); err != nil {
		return nil, err
	}
	t, err := findTable(v.State, r.GetTable(), r.TableId)
	if err != nil {
		return nil, err
	}
	if t.Importing() {
		return nil, refuse(catalog.ErrTableImporting, "table %s has no routes before its import has ended", t.Path)
	}
	out := &pb.GetLayoutResponse{Header: v.header, Table: withoutHistory(t)}
	leaders := map[catalog.ServerID]bool{}
	addLeaders(leaders, t.Placement)
	for _, p := range chosen(v.State, t, r) {
		out.Partitions = append(out.Partitions, api.PartitionToProto(t, p))
		addLeaders(leaders, p.Placement)
	}
	for _, id := range slices.Sorted(maps.Keys(leaders)) {
		if row, ok := v.Server(id); ok {
			out.Servers = append(out.Servers, api.ServerToProto(row))
		}
	}
	return out, nil
}

// chosen are the partitions asked for that exist, each once, names first.
func chosen(st *catalog.State, t *catalog.Table, r *pb.GetLayoutRequest) []*catalog.Partition {
	var out []*catalog.Partition
	seen := map[catalog.PartitionID]bool{}
	take := func(p *catalog.Partition, ok bool) {
		if ok && p.Table == t.ID && !seen[p.ID] {
			seen[p.ID] = true
			out = append(out, p)
		}
	}
	for _, name := range r.GetNames() {
		take(st.Partition(t.ID, name))
	}
	for _, id := range r.GetPartitionIds() {
		take(st.PartitionByID(catalog.PartitionID(id)))
	}
	return out
}

func addLeaders(leaders map[catalog.ServerID]bool, p *catalog.Placement) {
	if p == nil {
		return
	}
	for i := range p.Buckets {
		if id := p.Buckets[i].Leader; id != catalog.NoServer {
			leaders[id] = true
		}
	}
}
