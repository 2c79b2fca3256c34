package api

import (
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// otherCommand converts the messages of limits and the generic group;
// nil for others.
func otherCommand(req Request) (catalog.Command, error) {
	switch r := req.(type) {
	case *pb.SetLimitsRequest:
		if r.GetLimits() == nil {
			return nil, invalid("limits", "not set", "at least one limit")
		}
		return catalog.SetLimits{Database: r.GetDatabase(), Limits: limitsFromProto(r.GetLimits())}, nil
	case *pb.PutRequest:
		return catalog.PutKV{Key: r.GetKey(), Value: copyBytes(r.GetValue()), ExpectedVersion: optFrom[uint64](r.ExpectedVersion)}, nil
	case *pb.DeleteRequest:
		return catalog.DeleteKV{Key: r.GetKey(), ExpectedVersion: optFrom[uint64](r.ExpectedVersion), IfExists: r.GetIfExists()}, nil
	case *pb.TxnRequest:
		return catalog.TxnKV{Compares: each(r.GetCompares(), compareFrom), Ops: each(r.GetOps(), opFrom)}, nil
	case *pb.AllocateIDsRequest:
		return catalog.AllocateIDs{Counter: r.GetCounter(), Count: r.GetCount()}, nil
	}
	return nil, nil //nolint:nilnil // another group's message
}

func compareFrom(c *pb.TxnCompare) catalog.CompareKV {
	return catalog.CompareKV{Key: c.GetKey(), Version: c.GetVersion()}
}

func compareTo(c catalog.CompareKV) *pb.TxnCompare {
	return &pb.TxnCompare{Key: c.Key, Version: c.Version}
}

func opFrom(o *pb.TxnOp) catalog.OpKV {
	return catalog.OpKV{Key: o.GetKey(), Value: copyBytes(o.GetValue()), Delete: o.GetDelete()}
}

func opTo(o catalog.OpKV) *pb.TxnOp {
	return &pb.TxnOp{Key: o.Key, Value: copyBytes(o.Value), Delete: o.Delete}
}

// otherRequest converts the commands of limits and the generic group;
// nil for others.
func otherRequest(cmd catalog.Command, client *pb.ClientRef) (Request, error) {
	switch c := cmd.(type) {
	case catalog.SetLimits:
		l := &pb.Limits{Buckets: c.Limits.Buckets, Partitions: c.Limits.Partitions, Replicas: c.Limits.Replicas}
		return &pb.SetLimitsRequest{Client: client, Database: c.Database, Limits: l}, nil
	case catalog.PutKV:
		return &pb.PutRequest{Client: client, Key: c.Key, Value: copyBytes(c.Value), ExpectedVersion: optTo[uint64](c.ExpectedVersion)}, nil
	case catalog.DeleteKV:
		return &pb.DeleteRequest{Client: client, Key: c.Key, ExpectedVersion: optTo[uint64](c.ExpectedVersion), IfExists: c.IfExists}, nil
	case catalog.TxnKV:
		return &pb.TxnRequest{Client: client, Compares: each(c.Compares, compareTo), Ops: each(c.Ops, opTo)}, nil
	case catalog.AllocateIDs:
		return &pb.AllocateIDsRequest{Client: client, Counter: c.Counter, Count: c.Count}, nil
	}
	return nil, nil //nolint:nilnil // a command without a message
}

// LeasesToProto converts leases for KeepAlive.
func LeasesToProto(in []catalog.Lease) []*pb.Lease {
	return each(in, func(l catalog.Lease) *pb.Lease {
		return &pb.Lease{ServerId: int32(l.ID), Incarnation: uint64(l.Incarnation)}
	})
}

// LeasesFromProto converts the leases of KeepAlive.
func LeasesFromProto(in []*pb.Lease) []catalog.Lease {
	return each(in, func(l *pb.Lease) catalog.Lease {
		return catalog.Lease{ID: catalog.ServerID(l.GetServerId()), Incarnation: catalog.ServerIncarnation(l.GetIncarnation())}
	})
}
