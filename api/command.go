package api

import (
	"fmt"

	"google.golang.org/protobuf/proto"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// MaxCommandBytes bounds one encoded write, MaxImportBytes one import batch of
// more than one row. The entry of the log has a bound of its own, which includes
// its envelope.
const (
	MaxCommandBytes = 1 << 20
	MaxImportBytes  = 128 << 10
)

// Request is the message of a write: one of the members of pb.Command.
type Request interface {
	proto.Message
	// GetClient returns the reference that makes the write exactly-once.
	GetClient() *pb.ClientRef
}

// CommandFromRequest converts the message of a unary write. The client reference
// is checked and returned apart. A message above its bound is ErrTooLarge.
func CommandFromRequest(req Request) (catalog.Command, Ref, error) {
	ref, err := RefFromProto(req.GetClient())
	if err != nil {
		return nil, Ref{}, err
	}
	cmd, err := commandFrom(req)
	return cmd, ref, err
}

// CommandFromProto converts one command of a batch stream; a client reference
// inside is ignored. An unset command is refused.
func CommandFromProto(c *pb.Command) (catalog.Command, error) {
	req := RequestOf(c)
	if req == nil {
		return nil, invalid("command", "not set", "one of the known commands")
	}
	return commandFrom(req)
}

// CommandToProto converts a command for a batch stream. Commands that only a
// leader proposes have no message: ErrUnknownCommand.
func CommandToProto(cmd catalog.Command) (*pb.Command, error) {
	req, err := RequestFromCommand(cmd, Ref{})
	if err != nil {
		return nil, err
	}
	return WrapRequest(req), nil
}

// RequestFromCommand converts a command for a unary call.
func RequestFromCommand(cmd catalog.Command, ref Ref) (Request, error) {
	client := RefToProto(ref)
	req, err := catalogRequest(cmd, client)
	if req == nil && err == nil {
		req, err = placementRequest(cmd, client)
	}
	if req == nil && err == nil {
		req, err = otherRequest(cmd, client)
	}
	if err != nil {
		return nil, err
	}
	if req == nil {
		return nil, &catalog.Error{Code: catalog.ErrUnknownCommand, Message: fmt.Sprintf("command %s is not part of the API", kindOf(cmd))}
	}
	return req, nil
}

func kindOf(cmd catalog.Command) string {
	if cmd == nil {
		return "nil"
	}
	return cmd.Kind().String()
}

// checkSize refuses a message that cannot become a log entry.
func checkSize(req Request) error {
	limit, what := MaxCommandBytes, "command"
	if r, ok := req.(*pb.ImportRequest); ok && importRows(r) > 1 {
		limit, what = MaxImportBytes, "import batch"
	}
	if n := proto.Size(req); n > limit {
		return &catalog.Error{
			Code: catalog.ErrTooLarge, Limit: uint64(limit), Size: uint64(n),
			Message: fmt.Sprintf("%s of %d bytes is above %d", what, n, limit),
		}
	}
	return nil
}

func importRows(r *pb.ImportRequest) int {
	return len(r.GetDatabases()) + len(r.GetTables()) + len(r.GetPartitions()) + len(r.GetKeyValues()) + len(r.GetIdCounters())
}

func commandFrom(req Request) (catalog.Command, error) {
	if err := checkSize(req); err != nil {
		return nil, err
	}
	if cmd, err := catalogCommand(req); cmd != nil || err != nil {
		return cmd, err
	}
	if cmd, err := placementCommand(req); cmd != nil || err != nil {
		return cmd, err
	}
	if cmd, err := otherCommand(req); cmd != nil || err != nil {
		return cmd, err
	}
	return nil, invalid("command", fmt.Sprintf("%T", req), "one of the known commands")
}

// RequestOf returns the message inside c, or nil if none is set.
func RequestOf(c *pb.Command) Request {
	m := c.ProtoReflect()
	if !m.IsValid() {
		return nil
	}
	field := m.WhichOneof(m.Descriptor().Oneofs().ByName("command"))
	if field == nil {
		return nil
	}
	req, ok := m.Get(field).Message().Interface().(Request)
	if !ok {
		return nil
	}
	return req
}

// WrapRequest puts a message into a Command, without copying it.
func WrapRequest(req Request) *pb.Command {
	switch r := req.(type) {
	case *pb.SetLimitsRequest:
		return &pb.Command{Command: &pb.Command_SetLimits{SetLimits: r}}
	case *pb.CreateDatabaseRequest:
		return &pb.Command{Command: &pb.Command_CreateDatabase{CreateDatabase: r}}
	case *pb.AlterDatabaseRequest:
		return &pb.Command{Command: &pb.Command_AlterDatabase{AlterDatabase: r}}
	case *pb.DropDatabaseRequest:
		return &pb.Command{Command: &pb.Command_DropDatabase{DropDatabase: r}}
	case *pb.CreateTableRequest:
		return &pb.Command{Command: &pb.Command_CreateTable{CreateTable: r}}
	case *pb.AlterTableRequest:
		return &pb.Command{Command: &pb.Command_AlterTable{AlterTable: r}}
	case *pb.RescaleTableRequest:
		return &pb.Command{Command: &pb.Command_RescaleTable{RescaleTable: r}}
	case *pb.DropTableRequest:
		return &pb.Command{Command: &pb.Command_DropTable{DropTable: r}}
	case *pb.CreatePartitionsRequest:
		return &pb.Command{Command: &pb.Command_CreatePartitions{CreatePartitions: r}}
	case *pb.DropPartitionsRequest:
		return &pb.Command{Command: &pb.Command_DropPartitions{DropPartitions: r}}
	case *pb.ImportRequest:
		return &pb.Command{Command: &pb.Command_Import{Import: r}}
	default:
		return wrapOther(req)
	}
}

func wrapOther(req Request) *pb.Command {
	switch r := req.(type) {
	case *pb.RegisterServerRequest:
		return &pb.Command{Command: &pb.Command_RegisterServer{RegisterServer: r}}
	case *pb.UnregisterServerRequest:
		return &pb.Command{Command: &pb.Command_UnregisterServer{UnregisterServer: r}}
	case *pb.AssignPendingRequest:
		return &pb.Command{Command: &pb.Command_AssignPending{AssignPending: r}}
	case *pb.TagServersRequest:
		return &pb.Command{Command: &pb.Command_TagServers{TagServers: r}}
	case *pb.AdjustISRRequest:
		return &pb.Command{Command: &pb.Command_AdjustIsr{AdjustIsr: r}}
	case *pb.ElectLeadersRequest:
		return &pb.Command{Command: &pb.Command_ElectLeaders{ElectLeaders: r}}
	case *pb.ReassignRequest:
		return &pb.Command{Command: &pb.Command_Reassign{Reassign: r}}
	case *pb.StartRebalanceRequest:
		return &pb.Command{Command: &pb.Command_StartRebalance{StartRebalance: r}}
	case *pb.CancelRebalanceRequest:
		return &pb.Command{Command: &pb.Command_CancelRebalance{CancelRebalance: r}}
	case *pb.AckDeletionsRequest:
		return &pb.Command{Command: &pb.Command_AckDeletions{AckDeletions: r}}
	case *pb.PutRequest:
		return &pb.Command{Command: &pb.Command_Put{Put: r}}
	case *pb.DeleteRequest:
		return &pb.Command{Command: &pb.Command_Delete{Delete: r}}
	case *pb.TxnRequest:
		return &pb.Command{Command: &pb.Command_Txn{Txn: r}}
	case *pb.AllocateIDsRequest:
		return &pb.Command{Command: &pb.Command_AllocateIds{AllocateIds: r}}
	default:
		return &pb.Command{}
	}
}
