package server

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// Every answer to a write carries the object at or after the write's revision.
func TestCatalog_WritesAnswerWithTheObject(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		db := must(s.catalog.CreateDatabase(s.ctx(), &pb.CreateDatabaseRequest{Name: "shop", Comment: "c"}))(t)
		if db.GetDatabase().GetComment() != "c" || !db.GetResult().GetChanged() || db.GetHeader().GetRevision() < db.GetResult().GetRevision() {
			t.Errorf("create database: %v", db)
		}
		comment := "d"
		alt := must(s.catalog.AlterDatabase(s.ctx(), &pb.AlterDatabaseRequest{Name: "shop", Comment: &comment}))(t)
		if alt.GetDatabase().GetComment() != "d" {
			t.Errorf("alter database: %v", alt)
		}
		table := s.ordersTable(4)
		if table.GetPath() != "shop.orders" || table.GetBucketCount() != 4 {
			t.Errorf("create table: %v", table)
		}
		before := must(s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts("a", "b")}))(t)
		res := must(s.catalog.RescaleTable(s.ctx(), &pb.RescaleTableRequest{Table: "shop.orders", Buckets: 8}))(t)
		if res.GetTable().GetBucketCount() != 8 || res.GetTable().GetLayoutEpoch() != 1 {
			t.Errorf("rescale: %v", res)
		}
		after := must(s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts("c")}))(t)
		var got []string
		for _, p := range append(before.GetPartitions(), after.GetPartitions()...) {
			got = append(got, fmt.Sprintf("%s=%d@%d", p.GetName(), p.GetBucketCount(), p.GetLayoutEpoch()))
		}
		if d := cmp.Diff([]string{"a=4@0", "b=4@0", "c=8@1"}, got); d != "" {
			t.Error(d)
		}
		must(s.catalog.DropPartitions(s.ctx(), &pb.DropPartitionsRequest{Table: "shop.orders", Specs: dts("a")}))(t)
		must(s.catalog.DropTable(s.ctx(), &pb.DropTableRequest{Table: "shop.orders"}))(t)
		must(s.catalog.DropDatabase(s.ctx(), &pb.DropDatabaseRequest{Name: "shop"}))(t)
		_, err := s.catalog.GetDatabase(s.ctx(), &pb.GetDatabaseRequest{Name: "shop"})
		refusedAs(t, err, catalog.ErrDatabaseNotExist)
	})
}

// A registered client that sends a sequence again gets the same result, and the
// command takes effect once.
func TestCatalog_RetriedSequence(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		s.ordersTable(4)
		id := must(s.cluster.RegisterClient(s.ctx(), &pb.RegisterClientRequest{Name: "test"}))(t).GetClientId()
		var first *pb.TableResponse
		for i := range 10 {
			r := must(s.catalog.RescaleTable(s.ctx(), &pb.RescaleTableRequest{
				Client: &pb.ClientRef{ClientId: id, Sequence: 1}, Table: "shop.orders", Buckets: 8,
			}))(t)
			if i == 0 {
				first = r
			}
			if d := cmp.Diff(first.GetResult(), r.GetResult(), protocmp.Transform()); d != "" {
				t.Fatalf("try %d: %s", i, d)
			}
			if r.GetTable().GetLayoutEpoch() != 1 {
				t.Fatalf("try %d: epoch %d, want 1", i, r.GetTable().GetLayoutEpoch())
			}
		}
	})
}
