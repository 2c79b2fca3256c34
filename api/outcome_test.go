package api

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// A command's outcome is the same through the stream as in a unary call.
func TestOutcome_RoundTrip(t *testing.T) {
	done := catalog.Result{Revision: 4, Changed: true, Count: 8, Epoch: 1}
	refused := catalog.Result{Revision: 5, Code: catalog.ErrVersionConflict, Message: "m", Current: 3}
	tests := []struct {
		name string
		give *pb.CommandOutcome
		want catalog.Result
		err  error
	}{
		{"done", OutcomeToProto(1, &done, nil), done, nil},
		{"refused", OutcomeToProto(2, &refused, nil), refused, catalog.ErrVersionConflict},
		{"not leader", OutcomeToProto(3, nil, &NotLeaderError{Leader: "n2"}), catalog.Result{}, catalog.ErrNotLeader},
		{"unknown", OutcomeToProto(4, nil, catalog.ErrOutcomeUnknown), catalog.Result{}, catalog.ErrOutcomeUnknown},
		{"nothing set", &pb.CommandOutcome{}, catalog.Result{}, catalog.ErrOutcomeUnknown},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := OutcomeFromProto(overTheWire(t, tt.give))
			if !errors.Is(err, tt.err) {
				t.Errorf("got %v, want %v", err, tt.err)
			}
			if diff := cmp.Diff(tt.want, got, same); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// Only a registered client's sequences reach the log.
func TestStreamRef(t *testing.T) {
	c := &pb.SequencedCommand{Sequence: 7}
	if ref, err := StreamRef(&pb.CommandsRequest{}, c); err != nil || ref != (Ref{}) {
		t.Errorf("no client: %+v, %v", ref, err)
	}
	if ref, err := StreamRef(&pb.CommandsRequest{ClientId: 2, Ack: 6}, c); err != nil || ref != (Ref{Client: 2, Sequence: 7, Ack: 6}) {
		t.Errorf("client: %+v, %v", ref, err)
	}
	for _, m := range []*pb.CommandsRequest{{Ack: 1}, {ClientId: 1}} {
		if _, err := StreamRef(m, &pb.SequencedCommand{}); !errors.Is(err, catalog.ErrInvalidArgument) {
			t.Errorf("%v: got %v", m, err)
		}
	}
}
