package server

import (
	"context"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
)

// unary bounds a call in time, turns its error into a status and counts it.
func (s *Server) unary(ctx context.Context, req any, info *grpc.UnaryServerInfo, handler grpc.UnaryHandler) (res any, err error) {
	start := time.Now()
	defer func() {
		if p := recover(); p != nil {
			res, err = nil, s.panicked(info.FullMethod, p)
		}
		err = s.status(err)
		s.metrics.observe(info.FullMethod, err, time.Since(start))
	}()
	if _, ok := ctx.Deadline(); !ok {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.RequestTimeout)
		defer cancel()
	}
	return handler(ctx, req)
}

// stream turns the error a stream ends with into a status and counts it.
func (s *Server) stream(srv any, ss grpc.ServerStream, info *grpc.StreamServerInfo, handler grpc.StreamHandler) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked(info.FullMethod, p)
		}
		err = s.status(err)
		s.metrics.count(info.FullMethod, err)
	}()
	return handler(srv, ss)
}

// status is the error with which a call ends.
func (s *Server) status(err error) error {
	if err == nil {
		return nil
	}
	return api.StatusFromError(s.public(err)).Err()
}

// panicked keeps a fault of a handler from ending the node.
func (s *Server) panicked(method string, p any) error {
	s.cfg.Logger.LogAttrs(context.Background(), slog.LevelError, "handler panicked",
		slog.String("method", method), slog.String("panic", fmt.Sprint(p)), slog.String("stack", string(debug.Stack())))
	return status.Error(codes.Internal, "the handler of "+method+" failed; the node's log says where")
}

// bounded is a context for the reads that a stream begins with.
func (s *Server) bounded(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(ctx, s.cfg.RequestTimeout)
}
