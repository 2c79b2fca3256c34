package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/pprof"
	rpprof "runtime/pprof"
	"unicode/utf8"

	"github.com/grpc-ecosystem/grpc-gateway/v2/runtime"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	spb "google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// bodyBytes bounds the body of a request; in JSON bytes take a third more.
const bodyBytes = 4 << 20

// openGateway makes the HTTP side, with a connection in memory to the gRPC side.
func (s *Server) openGateway() error {
	s.memory = bufconn.Listen(1 << 20)
	conn, err := grpc.NewClient("passthrough:///memory",
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.memory.DialContext(ctx) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(1<<30)),
	)
	if err != nil {
		return err
	}
	mux := runtime.NewServeMux(
		runtime.WithMarshalerOption(runtime.MIMEWildcard, lines{api.HTTPMarshaler()}),
		runtime.WithUnescapingMode(runtime.UnescapingModeAllCharacters),
		runtime.WithErrorHandler(httpError),
		runtime.WithRoutingErrorHandler(routingError),
	)
	for _, register := range []func(context.Context, *runtime.ServeMux, *grpc.ClientConn) error{
		pb.RegisterCatalogHandler, pb.RegisterPlacementHandler, pb.RegisterKVHandler, pb.RegisterWatchHandler, pb.RegisterClusterHandler,
	} {
		if err := register(context.Background(), mux, conn); err != nil {
			return errors.Join(err, conn.Close())
		}
	}
	s.gateway = conn
	s.group.Go(func() {
		if err := s.grpc.Serve(s.memory); err != nil && !s.isClosing() {
			s.cfg.Logger.Error("serving in memory ended", "error", err)
		}
	})
	if s.front = s.cfg.Front; s.front == nil {
		s.front = newFront(s.cfg.Logger)
	}
	s.front.set(s.routes(mux))
	return nil
}

func (s *Server) routes(gateway http.Handler) http.Handler {
	own := map[string]http.Handler{
		"/livez": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if err := s.node.Err(); err != nil {
				plain(w, http.StatusServiceUnavailable, "node has ended: "+err.Error())
				return
			}
			plain(w, http.StatusOK, "ok")
		}),
		"/readyz": http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if err := s.ready(r.Context()); err != nil {
				plain(w, http.StatusServiceUnavailable, err.Error())
				return
			}
			plain(w, http.StatusOK, "ok")
		}),
	}
	if s.cfg.Gatherer != nil {
		own["/metrics"] = promhttp.HandlerFor(s.cfg.Gatherer, promhttp.HandlerOpts{})
	}
	if s.cfg.PProf {
		own["/debug/pprof"] = http.RedirectHandler("/debug/pprof/", http.StatusMovedPermanently)
		own["/debug/pprof/"] = http.HandlerFunc(pprof.Index) // and every profile by its name
		own["/debug/pprof/cmdline"] = http.HandlerFunc(pprof.Cmdline)
		own["/debug/pprof/profile"] = http.HandlerFunc(pprof.Profile)
		own["/debug/pprof/symbol"] = http.HandlerFunc(pprof.Symbol)
		own["/debug/pprof/trace"] = http.HandlerFunc(pprof.Trace)
		for _, p := range rpprof.Profiles() {
			own["/debug/pprof/"+p.Name()] = http.HandlerFunc(pprof.Index)
		}
	}
	return readOnly(own, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := readBody(w, r)
		if err != nil {
			status := http.StatusBadRequest
			if err.Code == catalog.ErrTooLarge {
				status = http.StatusRequestEntityTooLarge
			}
			failure(w, status, err)
			return
		}
		if !utf8.ValidString(r.URL.Path) {
			failure(w, http.StatusBadRequest, refuse(catalog.ErrInvalidArgument, "path %q is not valid UTF-8", r.URL.Path))
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(body))
		gateway.ServeHTTP(w, r)
	}))
}

// drainBytes is how much of a body that is refused is read and thrown away: who is
// cut off while it still writes never sees the answer.
const drainBytes = 16 * bodyBytes

// readBody reads a body whole, so that a long one is refused before anything is
// done with its beginning.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *catalog.Error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, bodyBytes+1))
	if err != nil {
		return nil, &catalog.Error{Code: catalog.ErrInvalidArgument, Message: fmt.Sprintf("the body ended after %d bytes: %s", len(body), err)}
	}
	if len(body) <= bodyBytes {
		return body, nil
	}
	_, _ = io.Copy(io.Discard, http.MaxBytesReader(w, r.Body, drainBytes)) //nolint:errcheck // best effort for whoever still writes
	return nil, &catalog.Error{Code: catalog.ErrTooLarge, Limit: bodyBytes, Message: fmt.Sprintf("the body is above %d bytes", bodyBytes)}
}

// lines is the JSON of the API. On a stream each message is one line, without a
// wrapping, and an error is the last line.
type lines struct{ runtime.Marshaler }

// StreamContentType implements runtime.StreamContentType.
func (lines) StreamContentType(any) string { return "application/x-ndjson" }

// Marshal implements runtime.Marshaler.
func (l lines) Marshal(v any) ([]byte, error) {
	switch m := v.(type) {
	case map[string]any:
		if r, ok := m["result"]; ok && len(m) == 1 {
			return l.Marshaler.Marshal(r)
		}
	case map[string]proto.Message:
		if st, ok := m["error"].(*spb.Status); ok {
			return l.Marshaler.Marshal(api.ErrorJSON(spoken(status.FromProto(st))))
		}
	}
	return l.Marshaler.Marshal(v)
}

// spoken is the error of a status, without the vocabulary of gRPC.
func spoken(st *status.Status) error {
	err := api.ErrorFromStatus(st)
	var rpc *api.RPCError
	if errors.As(err, &rpc) {
		return &catalog.Error{Code: rpc.Code(), Message: rpc.Message}
	}
	return err
}

func httpError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, _ *http.Request, err error) {
	st := status.Convert(err)
	w.Header().Del("Trailer")
	w.Header().Del("Transfer-Encoding")
	failure(w, runtime.HTTPStatusFromCode(st.Code()), spoken(st))
}

// routingError answers a path or method that is not there.
func routingError(_ context.Context, _ *runtime.ServeMux, _ runtime.Marshaler, w http.ResponseWriter, r *http.Request, code int) {
	failure(w, code, notServed(r, code))
}
