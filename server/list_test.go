package server

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// A list that comes in many chunks is of one state, whatever is written while
// it is read, and holds its table once.
func TestCatalog_ListPartitions_OneState(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		s.ordersTable(64)
		var names []string
		for i := range 3 {
			var batch []string
			for j := range 900 {
				batch = append(batch, fmt.Sprintf("p%d%03d-%s", i, j, strings.Repeat("x", 60)))
			}
			must(s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts(batch...)}))(t)
			names = append(names, batch...)
		}
		stream := must(s.catalog.ListPartitions(s.ctx(), &pb.ListPartitionsRequest{Table: "shop.orders"}))(t)
		first := must(stream.Recv())(t)
		for i := range 5 {
			must(s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts(fmt.Sprintf("zz%d", i))}))(t)
		}
		must(s.catalog.RescaleTable(s.ctx(), &pb.RescaleTableRequest{Table: "shop.orders", Buckets: 128}))(t)
		chunks := append([]*pb.ListPartitionsResponse{first}, all(t, stream, nil)...)
		if len(chunks) < 4 {
			t.Errorf("%d chunks, want several", len(chunks))
		}
		var got []string
		for i, c := range chunks {
			if d := cmp.Diff(first.GetHeader(), c.GetHeader(), protocmp.Transform()); d != "" {
				t.Fatalf("chunk %d has another header: %s", i, d)
			}
			if (c.GetTable() != nil) != (i == 0) {
				t.Errorf("chunk %d: table %v", i, c.GetTable())
			}
			for _, p := range c.GetPartitions() {
				got = append(got, p.GetName())
			}
		}
		if first.GetTable().GetBucketCount() != 64 {
			t.Errorf("table of the list has %d buckets, want 64", first.GetTable().GetBucketCount())
		}
		if d := cmp.Diff(names, got); d != "" {
			t.Errorf("partitions: %s", d)
		}
	})
}

func TestCatalog_Lists(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		empty := all(t, must(s.catalog.ListDatabases(s.ctx(), &pb.ListDatabasesRequest{}))(t), nil)
		if len(empty) != 1 || empty[0].GetHeader().GetRevision() == 0 {
			t.Errorf("an empty list: %v, want one message with a header", empty)
		}
		s.ordersTable(4)
		must(s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts("a", "b", "c", "d")}))(t)
		tables := all(t, must(s.catalog.ListTables(s.ctx(), &pb.ListTablesRequest{Database: "shop"}))(t), nil)
		if n := len(tables[0].GetTables()); n != 1 {
			t.Errorf("%d tables, want 1", n)
		}
		for _, tt := range []struct {
			name string
			req  *pb.ListPartitionsRequest
			want string
		}{
			{"all", &pb.ListPartitionsRequest{}, "abcd"},
			{"from", &pb.ListPartitionsRequest{From: "b"}, "bcd"},
			{"limit", &pb.ListPartitionsRequest{Limit: 2}, "ab"},
			{"from and limit", &pb.ListPartitionsRequest{From: "c", Limit: 1}, "c"},
			{"filter", &pb.ListPartitionsRequest{Filter: dts("d")[0]}, "d"},
		} {
			tt.req.Table = "shop.orders"
			got := ""
			for _, m := range all(t, must(s.catalog.ListPartitions(s.ctx(), tt.req))(t), nil) {
				for _, p := range m.GetPartitions() {
					got += p.GetName()
				}
			}
			if got != tt.want {
				t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
			}
		}
		for _, k := range []string{"a/1", "a/2", "b/1"} {
			must(s.kv.Put(s.ctx(), &pb.PutRequest{Key: k, Value: []byte(k)}))(t)
		}
		rows := all(t, must(s.kv.List(s.ctx(), &pb.ListRequest{Prefix: "a/", KeysOnly: true}))(t), nil)[0].GetRows()
		if len(rows) != 2 || rows[0].GetKey() != "a/1" || len(rows[0].GetValue()) != 0 {
			t.Errorf("keys: %v", rows)
		}
	})
}

// A layout holds what was asked for and exists, with the leaders' servers.
func TestCatalog_GetLayout(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		reg := must(s.placement.RegisterServer(s.ctx(), &pb.RegisterServerRequest{
			ServerId: 7, DirectoryId: "d7", Listeners: []string{"h7:9123"}, TtlMs: 60_000,
		}))(t)
		if !reg.GetServer().GetLive() {
			t.Fatalf("register: %v", reg)
		}
		s.ordersTable(2)
		made := must(s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts("a", "b")}))(t)
		l := must(s.catalog.GetLayout(s.ctx(), &pb.GetLayoutRequest{
			Table: "shop.orders", Names: []string{"a", "nothing"}, PartitionIds: []uint64{made.GetPartitions()[1].GetPartitionId(), 999},
		}))(t)
		if len(l.GetPartitions()) != 2 || l.GetPartitions()[0].GetBucketCount() != 2 {
			t.Errorf("partitions: %v", l.GetPartitions())
		}
		if len(l.GetServers()) != 1 || l.GetServers()[0].GetServerId() != 7 {
			t.Errorf("servers: %v, want the leader 7", l.GetServers())
		}
		inc := reg.GetServer().GetIncarnation()
		for _, tt := range []struct {
			lease *pb.Lease
			lost  bool
		}{{&pb.Lease{ServerId: 7, Incarnation: inc}, false}, {&pb.Lease{ServerId: 7, Incarnation: inc + 1}, true}, {&pb.Lease{ServerId: 8, Incarnation: inc}, true}} {
			ka := must(s.placement.KeepAlive(s.ctx(), &pb.KeepAliveRequest{Leases: []*pb.Lease{tt.lease}}))(t)
			if (len(ka.GetLost()) == 1) != tt.lost {
				t.Errorf("keepalive of %v: lost %v, want %v", tt.lease, ka.GetLost(), tt.lost)
			}
		}
		_, err := s.catalog.CreatePartitions(s.ctx(), &pb.CreatePartitionsRequest{
			Table: "shop.orders", Specs: dts("c"), Assignment: []*pb.BucketReplicas{{Servers: []int32{7}}},
		})
		stale, ok := refusedAs(t, err, catalog.ErrStaleMetadata).(*api.StaleMetadataError)
		if !ok || stale.Layout.Buckets != 2 || stale.Layout.Table != "shop.orders" {
			t.Errorf("stale metadata carries %+v", stale)
		}
	})
}

// What one cluster exports another one imports, and exports again the same.
func TestCatalog_ExportImport(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		a := newServed(t, nil)
		a.ordersTable(4)
		must(a.catalog.CreatePartitions(a.ctx(), &pb.CreatePartitionsRequest{Table: "shop.orders", Specs: dts("a", "b")}))(t)
		must(a.kv.Put(a.ctx(), &pb.PutRequest{Key: "k", Value: []byte("v")}))(t)
		must(a.kv.AllocateIDs(a.ctx(), &pb.AllocateIDsRequest{Counter: "n", Count: 5}))(t)
		rows := exported(t, a)
		b := newServed(t, nil)
		var batch catalog.ImportBatch
		for _, r := range rows {
			r.AddTo(&batch)
		}
		importing := batch
		importing.Partitions, importing.KeyValues, importing.IDCounters = nil, nil, nil
		send := func(c catalog.ImportBatch) {
			t.Helper()
			req := must(api.RequestFromCommand(c, api.Ref{}))(t)
			must(b.catalog.Import(b.ctx(), req.(*pb.ImportRequest)))(t)
		}
		send(importing)
		_, err := b.catalog.GetLayout(b.ctx(), &pb.GetLayoutRequest{Table: "shop.orders"})
		refusedAs(t, err, catalog.ErrTableImporting)
		batch.Skip, batch.Last = uint64(len(batch.Databases)+len(batch.Tables)), true
		batch.Databases, batch.Tables = nil, nil
		send(batch)
		again := exported(t, b)
		if d := cmp.Diff(texts(t, rows[1:]), texts(t, again[1:])); d != "" {
			t.Errorf("the export of the import differs: %s", d)
		}
	})
}

func exported(t *testing.T, s *served) []api.ExportRow {
	t.Helper()
	var out []api.ExportRow
	for _, m := range all(t, must(s.catalog.Export(s.ctx(), &pb.ExportRequest{}))(t), nil) {
		for _, r := range m.GetRows() {
			out = append(out, must(api.ExportRowFromProto(r))(t))
		}
	}
	return out
}

func texts(t *testing.T, rows []api.ExportRow) []string {
	t.Helper()
	var out []string
	for _, r := range rows {
		var b strings.Builder
		if err := api.WriteExportRow(&b, r); err != nil {
			t.Fatal(err)
		}
		out = append(out, b.String())
	}
	return out
}
