package api

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/testing/protocmp"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// recorder answers every unary call that the test sends and keeps its request.
type recorder struct {
	pb.UnimplementedCatalogServer
	pb.UnimplementedPlacementServer
	pb.UnimplementedKVServer
	got proto.Message
}

func (r *recorder) GetTable(_ context.Context, m *pb.GetTableRequest) (*pb.TableResponse, error) {
	r.got = m
	return &pb.TableResponse{Header: Header(sampleIncarnation, 1<<53+1), Table: TableToProto(sampleTable())}, nil
}

func (r *recorder) RescaleTable(_ context.Context, m *pb.RescaleTableRequest) (*pb.TableResponse, error) {
	r.got = m
	return nil, StatusFromError(&catalog.Error{Code: catalog.ErrVersionConflict, Message: "m", Current: 2}).Err()
}

func (r *recorder) AlterTable(_ context.Context, m *pb.AlterTableRequest) (*pb.TableResponse, error) {
	r.got = m
	return &pb.TableResponse{}, nil
}

func (r *recorder) DropPartitions(_ context.Context, m *pb.DropPartitionsRequest) (*pb.WriteResponse, error) {
	r.got = m
	return &pb.WriteResponse{}, nil
}

func (r *recorder) KeepAlive(_ context.Context, m *pb.KeepAliveRequest) (*pb.KeepAliveResponse, error) {
	r.got = m
	return &pb.KeepAliveResponse{}, nil
}

func (r *recorder) GetServer(_ context.Context, m *pb.GetServerRequest) (*pb.ServerResponse, error) {
	r.got = m
	return &pb.ServerResponse{}, nil
}

func (r *recorder) Put(_ context.Context, m *pb.PutRequest) (*pb.WriteResponse, error) {
	r.got = m
	return &pb.WriteResponse{}, nil
}

func (r *recorder) Txn(_ context.Context, m *pb.TxnRequest) (*pb.WriteResponse, error) {
	r.got = m
	return &pb.WriteResponse{}, nil
}

// HTTP paths reach the right call with the right fields, and 64-bit numbers are
// strings in both directions.
func TestGateway(t *testing.T) {
	r := &recorder{}
	mux := runtime.NewServeMux(runtime.WithMarshalerOption(runtime.MIMEWildcard, HTTPMarshaler()))
	for _, err := range []error{
		pb.RegisterCatalogHandlerServer(t.Context(), mux, r),
		pb.RegisterPlacementHandlerServer(t.Context(), mux, r),
		pb.RegisterKVHandlerServer(t.Context(), mux, r),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	id, big := uint64(0), uint64(1<<63)
	tests := []struct {
		method, path, body string
		want               proto.Message
		status             int
		says               string
	}{
		{
			"GET", "/v1/tables/shop.orders?table_id=0&consistency.level=CONSISTENCY_LEVEL_AT_LEAST&consistency.at_least=9", "",
			&pb.GetTableRequest{
				Table: "shop.orders", TableId: &id,
				Consistency: &pb.Consistency{Level: pb.ConsistencyLevel_CONSISTENCY_LEVEL_AT_LEAST, AtLeast: 9},
			}, 200, `"table_id":"9007199254740993"`,
		},
		{
			"POST", "/v1/tables/shop.orders:rescale", `{"buckets":8,"expected_epoch":"9223372036854775808"}`,
			&pb.RescaleTableRequest{Table: "shop.orders", Buckets: 8, ExpectedEpoch: &big}, 409, `"reason":"VERSION_CONFLICT"`,
		},
		{
			"PATCH", "/v1/tables/shop.orders", `{"reset":["a"],"if_exists":true}`,
			&pb.AlterTableRequest{Table: "shop.orders", Reset_: []string{"a"}, IfExists: true}, 200, "",
		},
		{
			"POST", "/v1/tables/shop.orders/partitions:drop", `{"partition_ids":["0"]}`,
			&pb.DropPartitionsRequest{Table: "shop.orders", PartitionIds: []uint64{0}}, 200, "",
		},
		{"POST", "/v1/servers:keepalive", `{"leases":[{"server_id":1}]}`, &pb.KeepAliveRequest{Leases: []*pb.Lease{{ServerId: 1}}}, 200, ""},
		{"GET", "/v1/servers/7", "", &pb.GetServerRequest{ServerId: 7}, 200, ""},
		{"PUT", "/v1/kv/a/b%2Fc", `{"value":"AQ=="}`, &pb.PutRequest{Key: "a/b/c", Value: []byte{1}}, 200, ""},
		{"POST", "/v1/kv:txn", `{"ops":[{"key":"a","delete":true}]}`, &pb.TxnRequest{Ops: []*pb.TxnOp{{Key: "a", Delete: true}}}, 200, ""},
		{"POST", "/v1/kv:txn", `{"opps":[]}`, nil, 400, "opps"},
	}
	for _, tt := range tests {
		t.Run(tt.method+" "+tt.path, func(t *testing.T) {
			r.got = nil
			w := httptest.NewRecorder()
			mux.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, strings.NewReader(tt.body)))
			body := strings.ReplaceAll(w.Body.String(), " ", "")
			if w.Code != tt.status || !strings.Contains(body, tt.says) {
				t.Errorf("got %d %s, want %d with %s", w.Code, body, tt.status, tt.says)
			}
			if diff := cmp.Diff(tt.want, r.got, protocmp.Transform()); diff != "" {
				t.Errorf("request differs (-want +got):\n%s", diff)
			}
		})
	}
	if http.StatusConflict != runtime.HTTPStatusFromCode(LookupError(catalog.ErrVersionConflict).Status) {
		t.Error("a version conflict is not 409")
	}
}
