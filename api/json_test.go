package api

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

var update = flag.Bool("update", false, "write the golden files anew")

// golden compares one document per line with a file.
func golden(t *testing.T, name string, docs ...any) {
	t.Helper()
	var b bytes.Buffer
	for _, d := range docs {
		if err := WriteJSON(&b, d); err != nil {
			t.Fatal(err)
		}
	}
	goldenText(t, name, b.Bytes())
}

func goldenText(t *testing.T, name string, text []byte) {
	t.Helper()
	path := filepath.Join("testdata", "json", name+".ndjson")
	if *update {
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(text)); diff != "" {
		t.Errorf("%s differs (-golden +now):\n%s", path, diff)
	}
}

var sampleIncarnation = catalog.Incarnation{Number: 1_764_500_000_000, Random: 1<<64 - 1}

func sampleTable() *catalog.Table {
	return &catalog.Table{
		ID: 1<<53 + 1, Path: "shop.orders", Comment: "a < b & \"c\"", NextColumn: 3,
		Schemas: []catalog.Schema{
			{ID: 1, Columns: []catalog.Column{{ID: 0, Name: "id", Type: "BIGINT NOT NULL"}, {ID: 1, Name: "dt", Type: "STRING NOT NULL"}}},
			{ID: 2, Columns: []catalog.Column{
				{ID: 0, Name: "id", Type: "BIGINT NOT NULL"},
				{ID: 1, Name: "dt", Type: "STRING NOT NULL"},
				{ID: 2, Name: "note", Type: "STRING", Comment: "free"},
			}},
		},
		PrimaryKey: []string{"id", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"id"},
		Buckets: 8, Epoch: 1, LegacyCount: catalog.Some[int32](4),
		History:     []catalog.LayoutEntry{{Epoch: 0, Buckets: 4, Revision: 10, Wall: 1000}, {Epoch: 1, Buckets: 8, Revision: 12, Wall: 2000}},
		Replication: 3,
		Properties:  []catalog.Property{{Key: "table.log.ttl", Value: "7 d"}, {Key: "table.replication.factor", Value: "3"}},
		Created:     1000, Wall: 2000, CreatedAt: 10, Revision: 12,
	}
}

func samplePartitions() (*catalog.Partition, *catalog.Partition) {
	own := &catalog.Partition{
		ID: 7, Table: 1<<53 + 1, Name: "2026-11-30", Buckets: 2, Epoch: 1, Created: 2100, CreatedAt: 13, Revision: 13,
		Placement: &catalog.Placement{
			Replicas: [][]catalog.ServerID{{0, 1}, {1, 2}},
			Buckets: []catalog.BucketState{
				{Leader: 0, LeaderEpoch: 2, Ready: true, ISR: []catalog.ServerID{0, 1}},
				{Leader: catalog.NoServer, ISR: []catalog.ServerID{1}},
			},
		},
	}
	legacy := &catalog.Partition{ID: 0, Table: 1<<53 + 1, Name: "2026-11-29", Legacy: true, Imported: true, Created: 900, CreatedAt: 10, Revision: 10}
	return own, legacy
}

// Every document of the command line looks as promised.
func TestJSON_Golden(t *testing.T) {
	table := sampleTable()
	own, legacy := samplePartitions()
	plain := &catalog.Table{Path: "shop.log", Schemas: []catalog.Schema{{ID: 1}}, Buckets: 1, Import: catalog.ImportID{Revision: 1}}
	header := Header(sampleIncarnation, 1<<64-1)
	golden(t, "table", TableJSON(TableToProto(table)), TableJSON(TableToProto(plain)))
	golden(t, "partition",
		PartitionJSON(PartitionToProto(table, own)), PartitionJSON(PartitionToProto(table, legacy)), PartitionJSON(PartitionToProto(nil, legacy)))
	golden(t, "partition_list", PartitionListJSON(header, TableToProto(table), []*pb.Partition{PartitionToProto(table, own)}),
		PartitionListJSON(header, TableToProto(table), nil))
	golden(t, "database", DatabaseJSON(DatabaseToProto(&catalog.Database{
		Name: "shop", Comment: "c", Properties: []catalog.Property{{Key: "b", Value: "1"}, {Key: "a", Value: ""}}, Created: 1, Wall: 2, Revision: 3,
		Limits: catalog.Limits{Buckets: 16},
	})), DatabaseJSON(&pb.Database{}))
	golden(t, "server", ServerJSON(ServerToProto(&catalog.Server{
		ID: 1, Incarnation: 2, DirectoryID: "d", Listeners: []string{"CLIENT://h:9123"}, Rack: "r1", TTL: 10_000, Live: true,
		Tag: catalog.TemporaryOffline, Registered: 5, Revision: 6,
	})), ServerJSON(&pb.Server{}))
	golden(t, "kv", KVJSON(&pb.KeyValue{Key: "a", Value: []byte("<text>"), Version: 1, ModifiedMs: 2, Revision: 3}),
		KVJSON(&pb.KeyValue{Key: "b", Value: []byte{0xff}}), KVJSON(&pb.KeyValue{Key: "empty"}), KeyJSON(&pb.KeyValue{Key: "c", Version: 4}))
	golden(t, "result", ResultJSON(header), ResultJSON(nil))
	golden(t, "error", ErrorJSON(fmt.Errorf("create: %w", catalog.ErrBusy)),
		ErrorJSON(&catalog.Error{Code: catalog.ErrTableNotExist, Message: "table shop.x does not exist"}),
		ErrorJSON(&NotLeaderError{Leader: "n2", Addr: "h:1"}), UsageErrorJSON("unknown flag --x"))
	golden(t, "cluster_status", ClusterStatusJSON(sampleStatus(header)), ClusterStatusJSON(&pb.StatusResponse{}))
}

func sampleStatus(h *pb.ResponseHeader) *pb.StatusResponse {
	yes, no, applied, age := true, false, uint64(41), uint64(12)
	h.Leader, h.AgeMs = &pb.LeaderHint{NodeId: "n1", Address: "h1:7401"}, &age
	return &pb.StatusResponse{
		Header: h, NodeId: "n2", CommitIndex: 42, AppliedIndex: 41, Conditions: []string{"CLOCK_JUMP: 11 min off"},
		Cluster: &pb.ClusterState{ClusterId: "c", Term: 3, CoordinatorEpoch: 2, FeatureLevel: 1, Limits: &pb.Limits{Buckets: 5}},
		Members: []*pb.MemberStatus{
			{
				Member: &pb.Member{NodeId: "n1", ApiAddress: "h1:7401", RaftAddress: "h1:7201", HttpAddress: "h1:7301", DirectoryId: "d1", FeatureLevel: 1, Build: "v0.1.0"},
				Role:   pb.MemberRole_MEMBER_ROLE_VOTER, Leader: true, Reachable: &yes, AppliedRevision: &applied,
			},
			{Member: &pb.Member{NodeId: "n3"}, Role: pb.MemberRole_MEMBER_ROLE_NON_VOTER},
		},
		Counts: &pb.StateCounts{Tables: 2}, Changed: &no,
	}
}

// Events show every kind of row.
func TestJSON_Golden_Events(t *testing.T) {
	table := sampleTable()
	own, _ := samplePartitions()
	older := *table
	older.Buckets, older.Epoch = 4, 0
	rows := []catalog.Object{
		&catalog.Cluster{ID: "c", Incarnation: sampleIncarnation, Coordinator: catalog.NoCoordinator, NextClient: 1},
		&catalog.Database{Name: "shop"}, own, &catalog.Server{ID: 1}, &catalog.Member{NodeID: "n1"},
		&catalog.KeyValue{Key: "k", Value: []byte("v"), Version: 1}, &catalog.Counter{Name: "c", Next: 4},
		&catalog.DroppedObject{Table: 1, Partition: catalog.Some[catalog.PartitionID](0), Path: "a.b", Name: "p"},
		&catalog.Rebalance{ID: "r", Status: catalog.RebalanceRunning, Moves: []catalog.Move{{Done: true}, {}}},
		&catalog.Import{ID: catalog.ImportID{Incarnation: sampleIncarnation, Revision: 8}, Rows: 2, Tables: []catalog.TableID{3}},
		&catalog.Client{ID: 1, Name: "cli"},
	}
	e := &catalog.Event{Revision: 12, Kind: catalog.KindRescaleTable, Wall: 2000, Actor: "ops", Changes: []catalog.Change{
		{Before: &older, After: table},
		{Before: own},
	}}
	for _, r := range rows {
		e.Changes = append(e.Changes, catalog.Change{After: r})
	}
	lookup := func(catalog.TableID) *catalog.Table { return table }
	var docs []any
	for _, before := range []bool{false, true} {
		m, err := EventToProto(e, before, lookup)
		if err != nil {
			t.Fatal(err)
		}
		docs = append(docs, EventJSON(m))
		e.Changes = e.Changes[:1]
	}
	rowOnly, err := ObjectToProto(own, lookup)
	if err != nil {
		t.Fatal(err)
	}
	docs = append(docs, SnapshotJSON(&pb.WatchSnapshot{Revision: 13, Rows: []*pb.Object{rowOnly}}))
	golden(t, "event", docs...)
}

// Export lines keep their form: files of older builds must be read.
func TestJSON_Golden_Export(t *testing.T) {
	table := sampleTable()
	var b bytes.Buffer
	for _, r := range []ExportRow{
		{Cluster: &ExportCluster{Format: 1, Incarnation: sampleIncarnation, Revision: 20, Counters: catalog.ImportCounters{NextTable: 1<<53 + 2, NextPartition: 8}}},
		{Database: &catalog.Database{Name: "shop", Created: 1, Wall: 2}},
		{Table: &catalog.ImportTable{Table: *table}},
		{Partition: &catalog.ImportPartition{Table: table.ID, ID: 0, Name: "2026-11-29", Legacy: true, Created: 900}},
		{Partition: &catalog.ImportPartition{Table: table.ID, ID: 7, Name: "2026-11-30", Buckets: 2, Epoch: 1, Created: 2100}},
		{Table: &catalog.ImportTable{Table: catalog.Table{Path: "shop.log"}, Finished: true}},
		{KeyValue: &catalog.ImportKeyValue{Key: "k", Value: []byte{0xff}, Version: 3}},
		{KeyValue: &catalog.ImportKeyValue{Key: "l", Value: []byte("text"), Version: 1}},
		{Counter: &catalog.ImportCounter{Name: "producers", Next: 1<<63 - 1}},
	} {
		if err := WriteExportRow(&b, r); err != nil {
			t.Fatal(err)
		}
	}
	goldenText(t, "export", b.Bytes())
}

// Incarnations are read as they are written, and in no other way.
func TestParseIncarnation(t *testing.T) {
	for _, i := range []catalog.Incarnation{{}, sampleIncarnation, {Number: 1}, {Random: 1}} {
		if got, err := ParseIncarnation(IncarnationText(i).String()); err != nil || got != i {
			t.Errorf("got %v, %v, want %v", got, err, i)
		}
	}
	for _, s := range []string{"1", "1-", "-1", "1-2", "01-0000000000000002", "1-000000000000000A", "1-0000000000000002 "} {
		if got, err := ParseIncarnation(s); err == nil {
			t.Errorf("%q was read as %v", s, got)
		}
	}
}

// Properties keep their order and escape nothing that needs none.
func TestProperties_JSON(t *testing.T) {
	in := Properties{{Key: "z", Value: "<&>"}, {Key: "a", Value: "\n"}}
	b, err := in.MarshalJSON()
	if err != nil || string(b) != `{"z":"<&>","a":"\n"}` {
		t.Fatalf("%s, %v", b, err)
	}
	var out Properties
	if err := json.Unmarshal(b, &out); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(in, out); diff != "" {
		t.Error(diff)
	}
}
