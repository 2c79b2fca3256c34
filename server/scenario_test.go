package server

import (
	"fmt"
	"sync"
	"testing"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// S79: lists of partitions race with rescales and creations, over partitions that
// were imported without a count. Each list is of one state: above epoch 0 every
// partition has a count, and it is the one of the epoch it was created at.
func TestS79_ConsistentListing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		legacy := []*pb.ImportPartition{{TableId: 5, PartitionId: 20, Name: "l1", Legacy: true}, {TableId: 5, PartitionId: 21, Name: "l2", Legacy: true}}
		must(s.catalog.Import(s.ctx(), &pb.ImportRequest{
			Import: &pb.ImportID{Incarnation: &pb.Incarnation{Number: 7, Random: 9}, Revision: 42}, Last: true,
			Databases: []*pb.Database{{Name: "shop"}}, Partitions: legacy,
			Tables: []*pb.ImportTable{{Table: api.TableToProto(&catalog.Table{
				ID: 5, Path: "shop.orders", NextColumn: 2, Buckets: 5, Created: 5, Wall: 6,
				Schemas:    []catalog.Schema{{ID: 1, Columns: []catalog.Column{{ID: 0, Name: "a", Type: "INT NOT NULL"}, {ID: 1, Name: "dt", Type: "STRING NOT NULL"}}}},
				PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"a"},
				History: []catalog.LayoutEntry{{Buckets: 5, Revision: 3, Wall: 5}},
			})}},
		}))(t)
		const writers, rounds = 4, 20
		done := make(chan struct{})
		var wg, writing sync.WaitGroup
		for w := range writers {
			writing.Go(func() {
				for i := range rounds {
					n := int32(6 + w*rounds + i) // no two are the same
					must(s.catalog.RescaleTable(s.ctx(), &pb.RescaleTableRequest{Table: "shop.orders", Buckets: n}))(t)
					must(s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts(fmt.Sprintf("p%d", n))}))(t)
				}
			})
		}
		go func() { writing.Wait(); close(done) }()
		epochs := make([]map[uint64]bool, 3)
		for i := range epochs {
			epochs[i] = map[uint64]bool{}
			wg.Go(func() {
				for {
					epochs[i][s.listOnce(t)] = true
					select {
					case <-done:
						return
					default:
					}
				}
			})
		}
		wg.Wait()
		if e := s.listOnce(t); e != writers*rounds {
			t.Errorf("the last list is of epoch %d, want %d", e, writers*rounds)
		}
		for i, seen := range epochs {
			if len(seen) < 2 {
				t.Errorf("reader %d saw epochs %v: it did not race", i, seen)
			}
		}
	})
}

// listOnce checks one list and returns its epoch.
func (s *served) listOnce(t *testing.T) uint64 {
	t.Helper()
	var table *pb.Table
	counts := map[uint64]int32{} // of each epoch
	legacy := 0
	stream, err := s.catalog.ListPartitions(s.ctx(), &pb.ListPartitionsRequest{Table: "shop.orders"})
	for _, m := range all(t, stream, err) {
		if m.GetTable() != nil {
			table = m.GetTable()
			for _, h := range table.GetHistory() {
				counts[h.GetEpoch()] = h.GetBucketCount()
			}
		}
		for _, p := range m.GetPartitions() {
			if want := counts[p.GetLayoutEpoch()]; p.BucketCount == nil || p.GetBucketCount() != want {
				t.Errorf("partition %s of epoch %d, listed at epoch %d: %v, want %d buckets", p.GetName(), p.GetLayoutEpoch(), table.GetLayoutEpoch(), p.BucketCount, want)
			}
			if p.GetLegacy() {
				legacy++
			}
		}
	}
	if legacy != 2 || counts[table.GetLayoutEpoch()] != table.GetBucketCount() {
		t.Errorf("%d legacy partitions; at epoch %d: %d buckets, history %v", legacy, table.GetLayoutEpoch(), table.GetBucketCount(), counts)
	}
	return table.GetLayoutEpoch()
}
