package server

import (
	"errors"
	"fmt"
	"io"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/testing/protocmp"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

func putCommand(seq uint64, key string) *pb.SequencedCommand {
	return &pb.SequencedCommand{Sequence: seq, Command: &pb.Command{Command: &pb.Command_Put{Put: &pb.PutRequest{Key: key, Value: []byte(key)}}}}
}

// outcomes receives until as many outcomes are there, in the order of the
// commands.
func outcomes(t *testing.T, s pb.Cluster_CommandsClient, n int) []*pb.CommandOutcome {
	t.Helper()
	var out []*pb.CommandOutcome
	for len(out) < n {
		m, err := s.Recv()
		if err != nil {
			t.Fatalf("after %d of %d outcomes: %v", len(out), n, err)
		}
		out = append(out, m.GetOutcomes()...)
	}
	return out
}

// Commands of a stream are executed in order, each with an outcome; a refusal
// or a malformed one does not end the stream, and a retry gets the same result.
func TestCommands_OrderAndOutcomes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		nodes := newCluster(t, 3, nil)
		for i, s := range nodes {
			id := must(s.cluster.RegisterClient(s.ctx(), &pb.RegisterClientRequest{}))(t).GetClientId()
			list := []*pb.SequencedCommand{
				{Sequence: 1, Command: &pb.Command{Command: &pb.Command_CreateDatabase{CreateDatabase: &pb.CreateDatabaseRequest{Name: fmt.Sprintf("db%d", i)}}}},
				{Sequence: 2, Command: &pb.Command{Command: &pb.Command_CreateDatabase{CreateDatabase: &pb.CreateDatabaseRequest{Name: fmt.Sprintf("db%d", i)}}}},
				{Sequence: 3, Command: &pb.Command{}},
			}
			for seq := uint64(4); seq < 3000; seq++ {
				list = append(list, putCommand(seq, fmt.Sprintf("k%d", seq)))
			}
			var first []*pb.CommandOutcome
			for try := range 2 {
				stream := must(s.cluster.Commands(s.ctx()))(t)
				for from := 0; from < len(list); from += 100 {
					if err := stream.Send(&pb.CommandsRequest{ClientId: id, Commands: list[from:min(from+100, len(list))]}); err != nil {
						t.Fatal(err)
					}
				}
				if err := stream.CloseSend(); err != nil {
					t.Fatal(err)
				}
				got := outcomes(t, stream, len(list))
				if _, err := stream.Recv(); !errors.Is(err, io.EOF) {
					t.Errorf("the stream ends with %v", err)
				}
				var last uint64
				for j, o := range got {
					if o.GetSequence() != uint64(j+1) {
						t.Fatalf("outcome %d is of sequence %d", j, o.GetSequence())
					}
					if r := o.GetResult(); r != nil {
						if r.GetRevision() <= last {
							t.Fatalf("sequence %d at revision %d after %d", j+1, r.GetRevision(), last)
						}
						last = r.GetRevision()
					}
				}
				if c := catalog.Code(got[1].GetResult().GetCode()); c != catalog.ErrDatabaseAlreadyExist {
					t.Errorf("second creation: %v", got[1])
				}
				if c := catalog.Code(got[2].GetError().GetDetail().GetCode()); c != catalog.ErrInvalidArgument {
					t.Errorf("unset command: %v", got[2])
				}
				if try == 0 {
					first = got
				} else if d := cmp.Diff(first, got, protocmp.Transform()); d != "" {
					t.Errorf("the retry differs: %s", d)
				}
			}
		}
	})
}

// A node that cannot have a command executed ends the stream, and the outcomes
// say that nothing was executed.
func TestCommands_NoLeader(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		leader, followers := leaderOf(t, newCluster(t, 3, func(c *Config) { c.RequestTimeout = 2 * time.Second }))
		stream := must(leader.cluster.Commands(leader.ctx()))(t)
		if err := stream.Send(&pb.CommandsRequest{Commands: []*pb.SequencedCommand{putCommand(7, "a")}}); err != nil {
			t.Fatal(err)
		}
		if o := outcomes(t, stream, 1)[0]; o.GetSequence() != 7 || o.GetResult().GetVersion() != 1 {
			t.Errorf("put: %v", o)
		}
		for _, f := range followers {
			if err := f.node.Close(); err != nil {
				t.Fatal(err)
			}
		}
		if err := stream.Send(&pb.CommandsRequest{Commands: []*pb.SequencedCommand{putCommand(8, "b"), putCommand(9, "c")}}); err != nil {
			t.Fatal(err)
		}
		for _, o := range outcomes(t, stream, 2) {
			err := api.ErrorFromProto(o.GetError())
			if !endsStream(err) {
				t.Errorf("sequence %d: %v, want an error that ends the stream", o.GetSequence(), err)
			}
		}
		if _, err := stream.Recv(); err == nil || errors.Is(err, io.EOF) {
			t.Errorf("the stream goes on or ends well: %v", err)
		}
	})
}

func TestCommands_Refusals(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newServed(t, nil)
		for name, msgs := range map[string][]*pb.CommandsRequest{
			"another client":    {{ClientId: 1}, {ClientId: 2}},
			"without a client":  {{Ack: 0}, {ClientId: 1}},
			"client given late": {{}, {ClientId: 3, Ack: 1}},
		} {
			stream := must(s.cluster.Commands(s.ctx()))(t)
			for _, m := range msgs {
				if err := stream.Send(m); err != nil {
					break // ended already
				}
			}
			t.Log(name)
			_, err := stream.Recv()
			refusedAs(t, err, catalog.ErrInvalidArgument)
		}
		stream := must(s.cluster.Commands(s.ctx()))(t)
		if err := stream.Send(&pb.CommandsRequest{ClientId: 999, Commands: []*pb.SequencedCommand{putCommand(0, "a"), putCommand(1, "a")}}); err != nil {
			t.Fatal(err)
		}
		got := outcomes(t, stream, 2)
		for i, want := range []catalog.Code{catalog.ErrInvalidArgument, catalog.ErrSessionExpired} {
			if c := catalog.Code(got[i].GetError().GetDetail().GetCode()); c != want {
				t.Errorf("outcome %d: %v, want %s", i, got[i], want)
			}
		}
	})
}

// The inbox hands out batches that a follower can hand on.
func TestInbox_Batch(t *testing.T) {
	for _, tt := range []struct {
		name  string
		sizes []int
		want  []int
	}{
		{"small", []int{1, 2, 3}, []int{3}},
		{"one large", []int{batchBytes * 2}, []int{1}},
		{"large first", []int{batchBytes + 1, 1, 1}, []int{1, 2}},
		{"large last", []int{1, 1, batchBytes}, []int{2, 1}},
		{"many", make([]int, batchCommands+1), []int{batchCommands, 1}},
	} {
		q := newInbox()
		var items []queued
		for _, n := range tt.sizes {
			items = append(items, queued{size: n})
		}
		if err := q.put(t.Context(), items); err != nil {
			t.Fatal(err)
		}
		var got []int
		for len(q.list) > 0 {
			b := must(q.next(t.Context(), nil, nil))(t)
			got = append(got, len(b))
		}
		if d := cmp.Diff(tt.want, got); d != "" || q.bytes != 0 {
			t.Errorf("%s: %s; %d bytes are left", tt.name, d, q.bytes)
		}
	}
}
