package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// StreamRef returns what identifies one command of a batch stream. Without a
// client the sequence only names the command within its stream, and the Ref is
// the zero one; with a client it is checked as in RefFromProto.
func StreamRef(m *pb.CommandsRequest, c *pb.SequencedCommand) (Ref, error) {
	if m.GetClientId() == 0 {
		if m.GetAck() != 0 {
			return Ref{}, invalid("ack", m.GetAck(), "0 while client_id is 0")
		}
		return Ref{}, nil
	}
	return RefFromProto(&pb.ClientRef{ClientId: m.GetClientId(), Sequence: c.GetSequence(), Ack: m.GetAck()})
}

// OutcomeToProto makes the answer to one command of a batch stream: the result
// of a command that was executed, also of a refusal, or else why it was not, or
// may not have been.
func OutcomeToProto(sequence uint64, r *catalog.Result, err error) *pb.CommandOutcome {
	out := &pb.CommandOutcome{Sequence: sequence}
	if err != nil {
		out.Outcome = &pb.CommandOutcome_Error{Error: ErrorToProto(err)}
		return out
	}
	out.Outcome = &pb.CommandOutcome_Result{Result: ResultToProto(r)}
	return out
}

// OutcomeFromProto returns what one command of a batch stream came to. A refusal
// is both a result and an error, as in a unary call. Neither being set is
// catalog.ErrOutcomeUnknown: the answer says nothing about the command.
func OutcomeFromProto(p *pb.CommandOutcome) (catalog.Result, error) {
	switch o := p.GetOutcome().(type) {
	case *pb.CommandOutcome_Result:
		r := ResultFromProto(o.Result)
		return r, r.Err()
	case *pb.CommandOutcome_Error:
		return catalog.Result{}, ErrorFromProto(o.Error)
	}
	return catalog.Result{}, &catalog.Error{Code: catalog.ErrOutcomeUnknown, Message: "the answer holds neither a result nor an error"}
}
