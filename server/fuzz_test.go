package server

import (
	"context"
	"errors"
	"io"
	"math"
	"math/rand/v2"
	"net"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/memnet"
	"github.com/stavedb/stave/raftnode"
)

// methods are all calls of the API.
func methods(tb testing.TB) []protoreflect.MethodDescriptor {
	tb.Helper()
	var out []protoreflect.MethodDescriptor
	for _, name := range []string{"Catalog", "Placement", "KV", "Watch", "Cluster"} {
		d, err := protoregistry.GlobalFiles.FindDescriptorByName(protoreflect.FullName("stave.v1." + name))
		if err != nil {
			tb.Fatal(err)
		}
		list := d.(protoreflect.ServiceDescriptor).Methods()
		for i := range list.Len() {
			out = append(out, list.Get(i))
		}
	}
	return out
}

// loopbackNode serves one node on a real socket.
func loopbackNode(tb testing.TB) (*raftnode.Node, *grpc.ClientConn) {
	tb.Helper()
	n, err := raftnode.Open(timeout(tb, time.Minute), raftnode.Config{
		ID: "n1", Dir: tb.TempDir(), RaftAddr: "n1:7001", InitialCluster: map[string]string{"n1": "n1:7001"}, Network: memnet.New().Host("n1"),
	})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = n.Close() }) //nolint:errcheck // the test is over
	srv, err := New(Config{Node: n, RequestTimeout: 5 * time.Second, SpoolDir: tb.TempDir()})
	if err != nil {
		tb.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		tb.Fatal(err)
	}
	go func() { _ = srv.Serve(l, nil) }() //nolint:errcheck // ends with Close
	tb.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = srv.Close(ctx) //nolint:errcheck // the test is over
	})
	conn, err := grpc.NewClient(l.Addr().String(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = conn.Close() })                                       //nolint:errcheck // the test is over
	for n.Read(timeout(tb, 20*time.Second), raftnode.Linearizable); !n.Ready(); { //nolint:errcheck // Ready decides
		if tb.Context().Err() != nil {
			tb.Fatal("the node does not become ready")
		}
		time.Sleep(10 * time.Millisecond)
	}
	return n, conn
}

// FuzzHandlers sends any message to any call of a running node: none panics,
// each answers with a code of the error table, and the node stays sound.
func FuzzHandlers(f *testing.F) {
	list := methods(f)
	for i := range list {
		for seed := range uint64(20) {
			f.Add(uint8(i), seed, []byte(nil))
		}
	}
	n, conn := loopbackNode(f)
	f.Fuzz(func(t *testing.T, method uint8, seed uint64, data []byte) {
		m := list[int(method)%len(list)]
		req := randomMessage(t, m.Input(), rand.New(rand.NewPCG(seed, 1)), 4)
		_ = proto.UnmarshalOptions{Merge: true}.Unmarshal(data, req) //nolint:errcheck // what was read counts
		err := invoke(t, conn, m, req)
		st := status.Convert(err)
		if st.Code() == codes.Internal || st.Code() == codes.Unimplemented && !strings.Contains(string(m.FullName()), "Import") {
			t.Fatalf("%s of %v: %v", m.FullName(), req, err)
		}
		if api.CodeOf(api.ErrorFromStatus(st)) == catalog.ErrUnknownServerError {
			t.Fatalf("%s of %v: an error without a code: %v", m.FullName(), req, err)
		}
		if err := n.Err(); err != nil {
			t.Fatalf("%s of %v ended the node: %v", m.FullName(), req, err)
		}
		if seed%64 != 0 {
			return
		}
		st2, err := n.Read(t.Context(), raftnode.Stale)
		if err == nil {
			err = st2.Check()
		}
		if err != nil {
			t.Fatalf("after %s of %v: %v", m.FullName(), req, err)
		}
	})
}

// invoke makes a call; of a stream it reads a little.
func invoke(t *testing.T, conn *grpc.ClientConn, m protoreflect.MethodDescriptor, req proto.Message) error {
	t.Helper()
	name := "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	res := newMessage(t, m.Output())
	if !m.IsStreamingClient() && !m.IsStreamingServer() {
		return conn.Invoke(ctx, name, req, res)
	}
	s, err := conn.NewStream(ctx, &grpc.StreamDesc{ClientStreams: m.IsStreamingClient(), ServerStreams: m.IsStreamingServer()}, name)
	if err != nil {
		return err
	}
	if err := s.SendMsg(req); err != nil {
		return err
	}
	if err := s.CloseSend(); err != nil {
		return err
	}
	short, stop := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer stop()
	context.AfterFunc(short, cancel) // a watch has no end
	for range 100 {
		if err := s.RecvMsg(res); err != nil {
			if errors.Is(err, io.EOF) || short.Err() != nil && status.Code(err) == codes.Canceled {
				return nil
			}
			return err
		}
	}
	return nil
}

func newMessage(t *testing.T, d protoreflect.MessageDescriptor) proto.Message {
	t.Helper()
	mt, err := protoregistry.GlobalTypes.FindMessageByName(d.FullName())
	if err != nil {
		t.Fatal(err)
	}
	return mt.New().Interface()
}

// words are names that commands may meet again, and some that are wrong.
var words = []string{
	"shop", "shop.orders", "orders", "dt", "a", "b", "INT", "STRING", "table.replication.factor", "1", "x", "", "k/1", "n1", "n2:1", "h:9123",
	"__x", "a.b.c", "$", "a$b", "\x00", "é", strings.Repeat("y", 300), "DECIMAL(99,99)", "table.auto-partition.enabled", "true",
}

func randomMessage(t *testing.T, d protoreflect.MessageDescriptor, r *rand.Rand, depth int) proto.Message {
	t.Helper()
	msg := newMessage(t, d)
	m := msg.ProtoReflect()
	fields := d.Fields()
	for i := range fields.Len() {
		fd := fields.Get(i)
		if r.IntN(4) == 0 || depth == 0 && fd.Message() != nil {
			continue
		}
		if fd.ContainingOneof() != nil && !fd.HasOptionalKeyword() && r.IntN(fd.ContainingOneof().Fields().Len()) != 0 {
			continue
		}
		if !fd.IsList() {
			m.Set(fd, randomValue(t, fd, r, depth))
			continue
		}
		l := m.Mutable(fd).List()
		for range r.IntN(4) {
			l.Append(randomValue(t, fd, r, depth))
		}
	}
	return msg
}

func randomValue(t *testing.T, fd protoreflect.FieldDescriptor, r *rand.Rand, depth int) protoreflect.Value {
	t.Helper()
	n := []uint64{0, 1, 2, 3, 4, 8, 1000, 100_000, math.MaxInt32, math.MaxUint32, math.MaxInt64, math.MaxUint64, r.Uint64()}[r.IntN(13)]
	switch fd.Kind() {
	case protoreflect.BoolKind:
		return protoreflect.ValueOfBool(n%2 == 0)
	case protoreflect.EnumKind:
		return protoreflect.ValueOfEnum(protoreflect.EnumNumber(int32(n)))
	case protoreflect.Int32Kind:
		return protoreflect.ValueOfInt32(int32(n))
	case protoreflect.Int64Kind:
		return protoreflect.ValueOfInt64(int64(n))
	case protoreflect.Uint32Kind:
		return protoreflect.ValueOfUint32(uint32(n))
	case protoreflect.Uint64Kind:
		return protoreflect.ValueOfUint64(n)
	case protoreflect.StringKind:
		return protoreflect.ValueOfString(words[r.IntN(len(words))])
	case protoreflect.BytesKind:
		return protoreflect.ValueOfBytes([]byte(words[r.IntN(len(words))]))
	case protoreflect.MessageKind:
		return protoreflect.ValueOfMessage(randomMessage(t, fd.Message(), r, depth-1).ProtoReflect())
	default:
		t.Fatalf("field %s has kind %s", fd.FullName(), fd.Kind())
		return protoreflect.Value{}
	}
}
