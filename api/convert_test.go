package api

import (
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// overTheWire encodes and decodes a message.
func overTheWire[M proto.Message](t rapid.TB, m M) M {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatalf("marshal %T: %v", m, err)
	}
	out, ok := m.ProtoReflect().New().Interface().(M)
	if !ok {
		t.Fatalf("no new %T", m)
	}
	if err := proto.Unmarshal(b, out); err != nil {
		t.Fatalf("unmarshal %T: %v", m, err)
	}
	return out
}

func commandRoundTrip[C catalog.Command](t *testing.T) {
	var zero C
	t.Run(zero.Kind().String(), func(t *testing.T) {
		checkFilled(t, func(t rapid.TB, c C) {
			m, err := CommandToProto(c)
			if err != nil {
				t.Fatalf("to proto: %v", err)
			}
			field := m.ProtoReflect().WhichOneof(m.ProtoReflect().Descriptor().Oneofs().Get(0))
			if catalog.Kind(field.Number()) != c.Kind() {
				t.Fatalf("field number %d of %s is not its kind %d", field.Number(), field.Name(), c.Kind())
			}
			got, err := CommandFromProto(overTheWire(t, m))
			if err != nil {
				t.Fatalf("from proto: %v", err)
			}
			if diff := cmp.Diff(catalog.Command(c), got, same); diff != "" {
				t.Fatalf("command changed on the way (-sent +got):\n%s", diff)
			}
		})
	})
}

// Every command of the API arrives as it was sent, and its number is its kind.
func TestCommand_RoundTrip(t *testing.T) {
	commandRoundTrip[catalog.SetLimits](t)
	commandRoundTrip[catalog.CreateDatabase](t)
	commandRoundTrip[catalog.AlterDatabase](t)
	commandRoundTrip[catalog.DropDatabase](t)
	commandRoundTrip[catalog.CreateTable](t)
	commandRoundTrip[catalog.AlterTable](t)
	commandRoundTrip[catalog.RescaleTable](t)
	commandRoundTrip[catalog.DropTable](t)
	commandRoundTrip[catalog.CreatePartitions](t)
	commandRoundTrip[catalog.DropPartitions](t)
	commandRoundTrip[catalog.ImportBatch](t)
	commandRoundTrip[catalog.RegisterServer](t)
	commandRoundTrip[catalog.UnregisterServer](t)
	commandRoundTrip[catalog.AssignPending](t)
	commandRoundTrip[catalog.PutKV](t)
	commandRoundTrip[catalog.DeleteKV](t)
	commandRoundTrip[catalog.TxnKV](t)
	commandRoundTrip[catalog.AllocateIDs](t)
}

// The list above names every member of the oneof.
func TestCommand_EveryMember(t *testing.T) {
	fields := (&pb.Command{}).ProtoReflect().Descriptor().Oneofs().Get(0).Fields()
	for i := range fields.Len() {
		m := (&pb.Command{}).ProtoReflect()
		m.Set(fields.Get(i), m.NewField(fields.Get(i)))
		c, ok := m.Interface().(*pb.Command)
		if !ok {
			t.Fatal("not a command")
		}
		req := RequestOf(c)
		if req == nil {
			t.Errorf("%s has no request", fields.Get(i).Name())
			continue
		}
		if !proto.Equal(WrapRequest(req), c) {
			t.Errorf("%s is not wrapped again", fields.Get(i).Name())
		}
		if cmd, err := CommandFromProto(c); err == nil && cmd.Kind() != catalog.Kind(fields.Get(i).Number()) {
			t.Errorf("%s becomes a %s", fields.Get(i).Name(), cmd.Kind())
		}
	}
}

// A leader's own commands cannot be sent by a client.
func TestCommand_NotPartOfTheAPI(t *testing.T) {
	for _, c := range []catalog.Command{nil, catalog.NewTerm{}, catalog.Checksum{}, catalog.ExpireClients{}} {
		if _, err := CommandToProto(c); !errors.Is(err, catalog.ErrUnknownCommand) {
			t.Errorf("%T: got %v, want UNKNOWN_COMMAND", c, err)
		}
	}
}

func rowRoundTrip[R any, P interface {
	*R
	catalog.Object
}](t *testing.T,
) {
	t.Run(P(new(R)).Object().String(), func(t *testing.T) {
		checkFilled(t, func(t rapid.TB, row R) {
			if table, ok := any(&row).(*catalog.Table); ok && len(table.Schemas) == 0 {
				table.Schemas = []catalog.Schema{{ID: 1}}
			}
			m, err := ObjectToProto(P(&row), nil)
			if err != nil {
				t.Fatalf("to proto: %v", err)
			}
			m = overTheWire(t, m)
			if got := objectKind(m); got != P(&row).Object() {
				t.Fatalf("kind %v, want %v", got, P(&row).Object())
			}
			got, err := ObjectFromProto(m)
			if err != nil {
				t.Fatalf("from proto: %v", err)
			}
			if diff := cmp.Diff(catalog.Object(P(&row)), got, same); diff != "" {
				t.Fatalf("row changed on the way (-sent +got):\n%s", diff)
			}
		})
	})
}

// Every row arrives as it was sent.
func TestObject_RoundTrip(t *testing.T) {
	rowRoundTrip[catalog.Cluster](t)
	rowRoundTrip[catalog.Database](t)
	rowRoundTrip[catalog.Table](t)
	rowRoundTrip[catalog.Partition](t)
	rowRoundTrip[catalog.Server](t)
	rowRoundTrip[catalog.Member](t)
	rowRoundTrip[catalog.KeyValue](t)
	rowRoundTrip[catalog.Counter](t)
	rowRoundTrip[catalog.DroppedObject](t)
	rowRoundTrip[catalog.Rebalance](t)
	rowRoundTrip[catalog.Import](t)
	rowRoundTrip[catalog.Client](t)
}

// A bucket without a leader stays without one.
func TestPlacement_NoLeader(t *testing.T) {
	p := &catalog.Placement{Replicas: [][]catalog.ServerID{{0}}, Buckets: []catalog.BucketState{{Leader: catalog.NoServer}}}
	got := placementFrom(overTheWire(t, placementTo(p)))
	if diff := cmp.Diff(p, got, same); diff != "" {
		t.Fatal(diff)
	}
}

// Results arrive as they were sent.
func TestResult_RoundTrip(t *testing.T) {
	checkFilled(t, func(t rapid.TB, r catalog.Result) {
		if diff := cmp.Diff(r, ResultFromProto(overTheWire(t, ResultToProto(&r))), same); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Events arrive as they were sent, in fragments too; without before-values only
// the rows before an update are gone.
func TestEvent_RoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		e := &catalog.Event{Revision: 9, Kind: catalog.KindDropTable, Wall: 7, Actor: "ops"}
		for range rapid.IntRange(1, 4).Draw(t, "changes") {
			before, after := filled[catalog.Partition](t), filled[catalog.Partition](t)
			c := catalog.Change{Before: &before, After: &after}
			switch rapid.IntRange(0, 2).Draw(t, "type") {
			case 0:
				c.Before = nil
			case 1:
				c.After = nil
			}
			e.Changes = append(e.Changes, c)
		}
		whole := rapid.Bool().Draw(t, "before")
		m, err := EventToProto(e, whole, nil)
		if err != nil {
			t.Fatal(err)
		}
		cut := rapid.IntRange(0, len(m.Changes)).Draw(t, "cut")
		first := &pb.EventBatch{Revision: m.Revision, Command: m.Command, CommandKind: m.CommandKind, WallMs: m.WallMs, Actor: m.Actor, Changes: m.Changes[:cut:cut], More: true}
		done, err := JoinFragments(first, overTheWire(t, &pb.EventBatch{Revision: m.Revision, Changes: m.Changes[cut:]}))
		if err != nil || !done {
			t.Fatalf("join: whole %v, %v", done, err)
		}
		got, err := EventFromProto(first)
		if err != nil {
			t.Fatal(err)
		}
		want := *e
		if !whole {
			want.Changes = nil
			for _, c := range e.Changes {
				if c.After != nil {
					c.Before = nil
				}
				want.Changes = append(want.Changes, c)
			}
		}
		if diff := cmp.Diff(&want, got, same); diff != "" {
			t.Fatal(diff)
		}
	})
}

// Nonsense that only a message can hold is refused with the field's name.
func TestRefusals(t *testing.T) {
	consistency := func(c *pb.Consistency) error { _, err := ConsistencyFromProto(c); return err }
	ref := func(r *pb.ClientRef) error { _, err := RefFromProto(r); return err }
	object := func(o *pb.Object) error { _, err := ObjectFromProto(o); return err }
	command := func(c *pb.Command) error { _, err := CommandFromProto(c); return err }
	three := uint64(3)
	tests := []struct {
		name  string
		err   error
		code  catalog.Code
		field string
	}{
		{"command not set", command(&pb.Command{}), catalog.ErrInvalidArgument, "command"},
		{"nil command", command(nil), catalog.ErrInvalidArgument, "command"},
		{"no limits", command(&pb.Command{Command: &pb.Command_SetLimits{}}), catalog.ErrInvalidArgument, "limits"},
		{"unknown level", consistency(&pb.Consistency{Level: 9}), catalog.ErrInvalidArgument, "consistency.level is 9"},
		{"revision without level", consistency(&pb.Consistency{AtLeast: 3}), catalog.ErrInvalidArgument, "consistency.at_least is 3"},
		{"sequence without client", ref(&pb.ClientRef{Sequence: 4}), catalog.ErrInvalidArgument, "client.sequence is 4"},
		{"ack without client", ref(&pb.ClientRef{Ack: 4}), catalog.ErrInvalidArgument, "client.ack is 4"},
		{"client without sequence", ref(&pb.ClientRef{ClientId: 4}), catalog.ErrInvalidArgument, "client.sequence is 0"},
		{"row not set", object(&pb.Object{}), catalog.ErrInvalidArgument, "object.row"},
		{"table without schema", object(&pb.Object{Row: &pb.Object_Table{}}), catalog.ErrInvalidArgument, "table.schemas"},
		{"unknown tag", object(&pb.Object{Row: &pb.Object_Server{Server: &pb.Server{Tag: 7}}}), catalog.ErrInvalidArgument, "server.tag is 7"},
		{"negative tag", object(&pb.Object{Row: &pb.Object_Server{Server: &pb.Server{Tag: -1}}}), catalog.ErrInvalidArgument, "server.tag is -1"},
		{"unknown status", object(&pb.Object{Row: &pb.Object_Rebalance{Rebalance: &pb.Rebalance{Status: 6}}}), catalog.ErrInvalidArgument, "rebalance.status is 6"},
		{
			"tries above a byte", object(&pb.Object{Row: &pb.Object_Dropped{Dropped: &pb.DroppedObject{Pending: []*pb.PendingDeletion{{Tries: 256}}}}}),
			catalog.ErrInvalidArgument, "tries is 256",
		},
		{
			"oversize", command(&pb.Command{Command: &pb.Command_Put{Put: &pb.PutRequest{Value: make([]byte, MaxCommandBytes)}}}),
			catalog.ErrTooLarge, "above 1048576",
		},
		{
			"oversize import", command(&pb.Command{Command: &pb.Command_Import{Import: &pb.ImportRequest{
				KeyValues: []*pb.ImportKeyValue{{Value: make([]byte, MaxImportBytes)}, {}},
			}}}), catalog.ErrTooLarge, "above 131072",
		},
		{
			"watch of two", WatchRequestCheck(&pb.WatchRequest{Filter: &pb.WatchFilter{Database: "a", Table: "a.b"}}),
			catalog.ErrInvalidArgument, "filter.table",
		},
		{
			"watch backwards", WatchRequestCheck(&pb.WatchRequest{FromRevision: &three, UntilRevision: new(uint64)}),
			catalog.ErrInvalidArgument, "until_revision is 0",
		},
		{
			"watch kinds", WatchRequestCheck(&pb.WatchRequest{Filter: &pb.WatchFilter{Kinds: []pb.ObjectKind{13}}}),
			catalog.ErrInvalidArgument, "filter.kinds is 13",
		},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if !errors.Is(tt.err, tt.code) || !strings.Contains(tt.err.Error(), tt.field) {
				t.Errorf("got %v, want %v naming %q", tt.err, tt.code, tt.field)
			}
		})
	}
}

// Counts that have a code of their own reach the catalog as they are.
func TestCommand_CountsAreTheCatalogs(t *testing.T) {
	cmd, ref, err := CommandFromRequest(&pb.RescaleTableRequest{Client: &pb.ClientRef{ClientId: 1, Sequence: 2, Ack: 1}, Table: "a.b", Buckets: -4})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(catalog.Command(catalog.RescaleTable{Table: "a.b", Buckets: -4}), cmd); diff != "" {
		t.Error(diff)
	}
	if want := (Ref{Client: 1, Sequence: 2, Ack: 1}); ref != want {
		t.Errorf("got %+v, want %+v", ref, want)
	}
}

// Consistency and references survive the way.
func TestRequestParts_RoundTrip(t *testing.T) {
	for _, c := range []Consistency{
		{},
		{Level: AtLeast, Revision: 7},
		{Level: Stale, Incarnation: catalog.Incarnation{Number: 3, Random: 4}},
	} {
		if got, err := ConsistencyFromProto(ConsistencyToProto(c)); err != nil || got != c {
			t.Errorf("got %+v, %v, want %+v", got, err, c)
		}
	}
	r := Ref{Client: 1, Sequence: 2, Ack: 1}
	if got, err := RefFromProto(RefToProto(r)); err != nil || got != r {
		t.Errorf("got %+v, %v, want %+v", got, err, r)
	}
}
