package api

import (
	"bytes"
	"io"
	"testing"

	"github.com/google/go-cmp/cmp"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func seed(f *testing.F, m proto.Message) {
	b, err := proto.Marshal(m)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(b)
}

// Whatever a command's bytes are, they are refused or become a command that
// arrives the same once more.
func FuzzCommandFromProto(f *testing.F) {
	for _, c := range []catalog.Command{
		filled[catalog.SetLimits](nil), filled[catalog.CreateTable](nil), filled[catalog.AlterTable](nil), filled[catalog.RescaleTable](nil),
		filled[catalog.CreatePartitions](nil), filled[catalog.DropPartitions](nil), filled[catalog.ImportBatch](nil),
		filled[catalog.RegisterServer](nil), filled[catalog.TxnKV](nil), filled[catalog.AllocateIDs](nil),
	} {
		m, err := CommandToProto(c)
		if err != nil {
			f.Fatal(err)
		}
		seed(f, m)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var m pb.Command
		if proto.Unmarshal(in, &m) != nil {
			return
		}
		cmd, err := CommandFromProto(&m)
		if err != nil {
			if CodeOf(err) != catalog.ErrInvalidArgument && CodeOf(err) != catalog.ErrTooLarge {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		again, err := CommandToProto(cmd)
		if err != nil {
			t.Fatal(err)
		}
		got, err := CommandFromProto(again)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(cmd, got, same); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Whatever an event's bytes are, they are refused or become rows; its JSON can
// always be made.
func FuzzEventFromProto(f *testing.F) {
	table, part := filled[catalog.Table](nil), filled[catalog.Partition](nil)
	server, plan, dropped := filled[catalog.Server](nil), filled[catalog.Rebalance](nil), filled[catalog.DroppedObject](nil)
	for _, o := range []catalog.Object{&table, &part, &server, &plan, &dropped} {
		for _, c := range []catalog.Change{{After: o}, {Before: o, After: o}} {
			m, err := EventToProto(&catalog.Event{Revision: 1, Kind: catalog.KindDropTable, Changes: []catalog.Change{c}}, true, nil)
			if err != nil {
				f.Fatal(err)
			}
			seed(f, m)
		}
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var m pb.EventBatch
		if proto.Unmarshal(in, &m) != nil {
			return
		}
		if err := WriteJSON(io.Discard, EventJSON(&m)); err != nil {
			t.Fatal(err)
		}
		e, err := EventFromProto(&m)
		if err != nil {
			if CodeOf(err) != catalog.ErrInvalidArgument {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		var table *catalog.Table
		for _, c := range e.Changes {
			if row, ok := c.After.(*catalog.Table); ok {
				table = row
			}
		}
		if _, err := EventToProto(e, true, func(catalog.TableID) *catalog.Table { return table }); err != nil {
			t.Fatal(err)
		}
	})
}

// Whatever a status holds, it becomes an error that can be sent again.
func FuzzErrorFromStatus(f *testing.F) {
	for _, err := range []error{
		&NotLeaderError{Leader: "n", Addr: "a"}, &StaleMetadataError{Layout: Layout{Table: "a.b"}},
		&CompactedError{Oldest: 3}, &RestoredError{}, &catalog.Error{Code: catalog.ErrTooLarge, Limit: 1, Size: 2},
	} {
		seed(f, StatusFromError(err).Proto())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		var m spb.Status
		if proto.Unmarshal(in, &m) != nil {
			return
		}
		err := ErrorFromStatus(status.FromProto(&m))
		if (err == nil) != (m.GetCode() == 0) {
			t.Fatalf("status %d became %v", m.GetCode(), err)
		}
		if err == nil {
			return
		}
		again := ErrorFromStatus(StatusFromError(err))
		if CodeOf(again) != CodeOf(err) || RetryOf(again) != RetryOf(err) {
			t.Fatalf("%v became %v", err, again)
		}
		if err := WriteJSON(io.Discard, ErrorJSON(err)); err != nil {
			t.Fatal(err)
		}
	})
}

// Whatever a line holds, it is refused with a code or is read again from the line
// it is written to.
func FuzzParseExportLine(f *testing.F) {
	for kind := range 6 {
		var b bytes.Buffer
		if err := WriteExportRow(&b, anyRow(nil, kind)); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes())
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		row, err := ParseExportLine(in)
		if err != nil {
			if c := CodeOf(err); c != catalog.ErrInvalidArgument && c != catalog.ErrUnsupportedVersion {
				t.Fatalf("refused with %v", err)
			}
			return
		}
		var b bytes.Buffer
		if err := WriteExportRow(&b, row); err != nil {
			t.Fatal(err)
		}
		got, err := ParseExportLine(b.Bytes())
		if err != nil {
			t.Fatalf("%v in %s", err, b.String())
		}
		if diff := cmp.Diff(row, got, same); diff != "" {
			t.Fatal(diff)
		}
	})
}
