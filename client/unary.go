package client

import (
	"fmt"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// unaryOf finds the unary method that takes req, and makes an empty answer of it.
func unaryOf(req api.Request) (method string, reply proto.Message, err error) {
	name := req.ProtoReflect().Descriptor().FullName()
	for _, file := range []protoreflect.FileDescriptor{
		pb.File_stave_v1_catalog_proto, pb.File_stave_v1_kv_proto, pb.File_stave_v1_cluster_proto, pb.File_stave_v1_placement_proto,
	} {
		for i := range file.Services().Len() {
			methods := file.Services().Get(i).Methods()
			for j := range methods.Len() {
				m := methods.Get(j)
				if m.Input().FullName() != name || m.IsStreamingClient() || m.IsStreamingServer() {
					continue
				}
				t, err := protoregistry.GlobalTypes.FindMessageByName(m.Output().FullName())
				if err != nil {
					return "", nil, fmt.Errorf("answer of %s: %w", m.FullName(), err)
				}
				return "/" + string(m.Parent().FullName()) + "/" + string(m.Name()), t.New().Interface(), nil
			}
		}
	}
	return "", nil, &catalog.Error{Code: catalog.ErrUnknownCommand, Message: fmt.Sprintf("no call takes %s", name)}
}
