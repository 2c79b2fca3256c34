package api

import (
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/encoding/protojson"
)

// HTTPMarshaler returns the JSON form of the HTTP gateway: snake_case names,
// zero values present, 64-bit numbers as strings, unknown fields of a request
// refused. It is safe for concurrent use.
func HTTPMarshaler() runtime.Marshaler {
	return &runtime.JSONPb{
		MarshalOptions:   protojson.MarshalOptions{UseProtoNames: true, EmitUnpopulated: true},
		UnmarshalOptions: protojson.UnmarshalOptions{DiscardUnknown: false},
	}
}
