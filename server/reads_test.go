package server

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func getRead(key string) *pb.Read {
	return &pb.Read{Read: &pb.Read_Get{Get: &pb.GetRequest{Key: key}}}
}

// readOutcomes receives n outcomes, and the headers they came with.
func readOutcomes(t *testing.T, s pb.Cluster_ReadsClient, n int) (out []*pb.ReadOutcome, headers []*pb.ResponseHeader) {
	t.Helper()
	for len(out) < n {
		m, err := s.Recv()
		if err != nil {
			t.Fatalf("after %d of %d outcomes: %v", len(out), n, err)
		}
		for _, o := range m.GetOutcomes() {
			out, headers = append(out, o), append(headers, m.GetHeader())
		}
	}
	return out, headers
}

// Every kind of read has an outcome in its place, on every node; what is refused
// does not end the stream, and a batch sees everything that was written before.
func TestReads_Outcomes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newCluster(t, 3, nil)
		buckets := int32(4)
		must(nodes[0].catalog.CreateDatabase(nodes[0].ctx(), &pb.CreateDatabaseRequest{Name: "shop"}))(t)
		must(nodes[0].catalog.CreateTable(nodes[0].ctx(), &pb.CreateTableRequest{
			Table: "shop.orders", Columns: []*pb.NewColumn{{Name: "id", Type: "INT"}, {Name: "dt", Type: "STRING"}},
			PartitionKeys: []string{"dt"}, BucketKeys: []string{"id"}, Buckets: &buckets,
		}))(t)
		must(nodes[0].catalog.CreatePartitions(nodes[0].ctx(), &pb.CreatePartitionsRequest{
			Table: "shop.orders", Specs: []*pb.PartitionSpec{{Values: []*pb.Property{{Key: "dt", Value: "a"}}}},
		}))(t)
		reads := []*pb.Read{
			getRead("k"),
			{Read: &pb.Read_Database{Database: &pb.GetDatabaseRequest{Name: "shop"}}},
			{Read: &pb.Read_Table{Table: &pb.GetTableRequest{Table: "shop.orders"}}},
			{Read: &pb.Read_Partition{Partition: &pb.GetPartitionRequest{Table: "shop.orders", Name: "a"}}},
			{Read: &pb.Read_Layout{Layout: &pb.GetLayoutRequest{Table: "shop.orders", Names: []string{"a"}}}},
			getRead("none"),
			getRead(""),
			{},
			{Read: &pb.Read_Get{Get: &pb.GetRequest{Key: "k", Consistency: &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_STALE}}}},
			{Read: &pb.Read_Get{Get: &pb.GetRequest{Key: "k", Consistency: &pb.Consistency{Incarnation: &pb.Incarnation{Number: 1, Random: 1}}}}},
		}
		for i, s := range nodes {
			stream := must(s.cluster.Reads(s.ctx()))(t)
			for round := range 5 {
				value := fmt.Sprintf("%d/%d", i, round)
				put := must(nodes[round%3].kv.Put(s.ctx(), &pb.PutRequest{Key: "k", Value: []byte(value)}))(t)
				if err := stream.Send(&pb.ReadsRequest{Reads: reads}); err != nil {
					t.Fatal(err)
				}
				got, headers := readOutcomes(t, stream, len(reads))
				if v := string(got[0].GetGet().GetRow().GetValue()); v != value {
					t.Errorf("node %d read %q after %q was written", i, v, value)
				}
				if d, p := got[1].GetDatabase().GetDatabase().GetName(), got[3].GetPartition().GetPartition().GetName(); d != "shop" || p != "a" {
					t.Errorf("database %q, partition %q", d, p)
				}
				if tb, l := got[2].GetTable().GetTable(), got[4].GetLayout(); tb.GetBucketCount() != 4 || l.GetTable().GetTableId() != tb.GetTableId() || len(l.GetPartitions()) != 1 {
					t.Errorf("table %v, layout %v", tb, l)
				}
				for j, want := range []catalog.Code{catalog.ErrKeyNotExist, catalog.ErrInvalidArgument, catalog.ErrInvalidArgument, catalog.ErrInvalidArgument, catalog.ErrRestored} {
					if c := catalog.Code(got[5+j].GetError().GetDetail().GetCode()); c != want {
						t.Errorf("read %d: %v, want %s", 5+j, got[5+j], want)
					}
				}
				for _, h := range headers {
					if h.GetRevision() != headers[0].GetRevision() || h.GetRevision() < put.GetResult().GetRevision() {
						t.Errorf("revision %d, the first outcome's %d, written at %d", h.GetRevision(), headers[0].GetRevision(), put.GetResult().GetRevision())
					}
				}
			}
			if err := stream.CloseSend(); err != nil {
				t.Fatal(err)
			}
			if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
				t.Errorf("the stream ends with %v", err)
			}
		}
	})
}

// Large outcomes are spread over messages that a caller can receive, in order
// and from one state, while the values change.
func TestReads_LargeAnswers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newCluster(t, 1, nil)[0]
		const size, n = 200 << 10, 40
		var reads []*pb.Read
		for i := range n {
			key := fmt.Sprintf("k%02d", i)
			must(s.kv.Put(s.ctx(), &pb.PutRequest{Key: key, Value: []byte(strings.Repeat("x", size))}))(t)
			reads = append(reads, getRead(key))
		}
		stream := must(s.cluster.Reads(s.ctx()))(t)
		if err := stream.Send(&pb.ReadsRequest{Reads: reads}); err != nil {
			t.Fatal(err)
		}
		got, headers := readOutcomes(t, stream, n)
		for i, o := range got {
			row := o.GetGet().GetRow()
			if row.GetKey() != fmt.Sprintf("k%02d", i) || len(row.GetValue()) != size || headers[i].GetRevision() != headers[0].GetRevision() {
				t.Errorf("outcome %d: key %s with %d bytes at %d", i, row.GetKey(), len(row.GetValue()), headers[i].GetRevision())
			}
		}
		if err := stream.Send(&pb.ReadsRequest{Reads: make([]*pb.Read, readMessage+1)}); err != nil {
			t.Fatal(err)
		}
		_, err := stream.Recv()
		refusedAs(t, err, catalog.ErrTooLarge)
	})
}

// Without a leader every read of the batch says so within the wait, and the
// stream ends, so that the caller goes elsewhere.
func TestReads_NoLeader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		leader, followers := leaderOf(t, newCluster(t, 3, nil))
		stream := must(leader.cluster.Reads(leader.ctx()))(t)
		for _, f := range followers {
			if err := f.node.Close(); err != nil {
				t.Fatal(err)
			}
		}
		start := time.Now()
		if err := stream.Send(&pb.ReadsRequest{Reads: []*pb.Read{getRead("a"), getRead("b")}}); err != nil {
			t.Fatal(err)
		}
		got, _ := readOutcomes(t, stream, 2)
		for _, o := range got {
			if c := catalog.Code(o.GetError().GetDetail().GetCode()); c != catalog.ErrUnavailable {
				t.Errorf("outcome: %v", o)
			}
		}
		_, err := stream.Recv()
		refusedAs(t, err, catalog.ErrUnavailable)
		if d := time.Since(start); d > 2*readWait {
			t.Errorf("took %s", d)
		}
	})
}
