package client

import (
	"context"
	"errors"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/routing"
)

// CountSource answers the questions of routing.Channels from the router's
// metadata. Create, which Channels calls in strict mode, makes a missing
// partition and returns the id and count of one layout, whatever
// RouterOptions.Create says.
func (r *Router) CountSource() routing.CountSource { return countSource{r} }

type countSource struct{ r *Router }

// Lookup implements routing.CountSource. It creates nothing, and waits for no
// creation.
func (s countSource) Lookup(ctx context.Context, partition string) (routing.PartitionCount, error) {
	ctx, cancel := s.r.c.budget(ctx)
	defer cancel()
	l := s.r.layout.Load()
	if l != nil {
		if p, ok := l.Partition(partition); ok && p.Err == nil {
			return routing.PartitionCount{Exists: true, Partition: bucketsOf(p), Default: l.Table().Buckets}, nil
		}
	}
	l, err := s.r.find.get(ctx, lookupKey{name: partition}, false)
	if errors.Is(err, catalog.ErrPartitionNotExists) {
		// The answer that did not have it brought the table's current row.
		if l, err = s.r.Layout(ctx); err == nil {
			return routing.PartitionCount{Default: l.Table().Buckets}, nil
		}
	}
	if err != nil {
		return routing.PartitionCount{}, err
	}
	p, ok := l.Partition(partition)
	if !ok {
		return routing.PartitionCount{Default: l.Table().Buckets}, nil
	}
	return routing.PartitionCount{Exists: true, Partition: bucketsOf(p), Default: l.Table().Buckets}, p.Err
}

// Create implements routing.CountSource.
func (s countSource) Create(ctx context.Context, partition string) (routing.PartitionBuckets, error) {
	ctx, cancel := s.r.c.budget(ctx)
	defer cancel()
	l, err := s.r.find.get(ctx, lookupKey{partition, true}, false)
	if err != nil {
		return routing.PartitionBuckets{}, err
	}
	p, ok := l.Partition(partition)
	if !ok {
		return routing.PartitionBuckets{}, &catalog.Error{Code: catalog.ErrPartitionNotExists, Message: "partition '" + partition + "' does not exist"}
	}
	return bucketsOf(p), p.Err
}

func bucketsOf(p *routing.LayoutPartition) routing.PartitionBuckets {
	return routing.PartitionBuckets{ID: p.ID, Name: p.Name, Count: p.Count}
}
