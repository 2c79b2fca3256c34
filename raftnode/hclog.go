package raftnode

import (
	"context"
	"fmt"
	"io"
	"log"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// hcLog hands what raft logs to slog, one level lower: what raft calls an error
// (a peer that does not answer) is for us a warning at most, and its account of
// every election is for debugging.
type hcLog struct {
	log  *slog.Logger
	name string
	args []any
}

func newHCLog(l *slog.Logger) hclog.Logger { return &hcLog{log: l.With("component", "raft")} }

func level(l hclog.Level) slog.Level {
	switch l {
	case hclog.Error:
		return slog.LevelInfo
	case hclog.Warn:
		return slog.LevelDebug
	default:
		return slog.LevelDebug - 4
	}
}

// Log implements hclog.Logger.
func (h *hcLog) Log(l hclog.Level, msg string, args ...any) {
	if !h.log.Enabled(context.Background(), level(l)) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			if format, ok := f[0].(string); ok {
				args[i] = fmt.Sprintf(format, f[1:]...)
			}
		}
	}
	h.log.Log(context.Background(), level(l), msg, args...)
}

// Trace implements hclog.Logger.
func (h *hcLog) Trace(msg string, args ...any) { h.Log(hclog.Trace, msg, args...) }

// Debug implements hclog.Logger.
func (h *hcLog) Debug(msg string, args ...any) { h.Log(hclog.Debug, msg, args...) }

// Info implements hclog.Logger.
func (h *hcLog) Info(msg string, args ...any) { h.Log(hclog.Info, msg, args...) }

// Warn implements hclog.Logger.
func (h *hcLog) Warn(msg string, args ...any) { h.Log(hclog.Warn, msg, args...) }

// Error implements hclog.Logger.
func (h *hcLog) Error(msg string, args ...any) { h.Log(hclog.Error, msg, args...) }

func (h *hcLog) enabled(l hclog.Level) bool { return h.log.Enabled(context.Background(), level(l)) }

// IsTrace implements hclog.Logger.
func (h *hcLog) IsTrace() bool { return h.enabled(hclog.Trace) }

// IsDebug implements hclog.Logger.
func (h *hcLog) IsDebug() bool { return h.enabled(hclog.Debug) }

// IsInfo implements hclog.Logger.
func (h *hcLog) IsInfo() bool { return h.enabled(hclog.Info) }

// IsWarn implements hclog.Logger.
func (h *hcLog) IsWarn() bool { return h.enabled(hclog.Warn) }

// IsError implements hclog.Logger.
func (h *hcLog) IsError() bool { return h.enabled(hclog.Error) }

// ImpliedArgs implements hclog.Logger.
func (h *hcLog) ImpliedArgs() []any { return h.args }

// With implements hclog.Logger.
func (h *hcLog) With(args ...any) hclog.Logger {
	return &hcLog{log: h.log.With(args...), name: h.name, args: append(h.args[:len(h.args):len(h.args)], args...)}
}

// Name implements hclog.Logger.
func (h *hcLog) Name() string { return h.name }

// Named implements hclog.Logger.
func (h *hcLog) Named(name string) hclog.Logger {
	return &hcLog{log: h.log.With("part", name), name: name, args: h.args}
}

// ResetNamed implements hclog.Logger.
func (h *hcLog) ResetNamed(name string) hclog.Logger { return h.Named(name) }

// SetLevel implements hclog.Logger; the level is slog's.
func (h *hcLog) SetLevel(hclog.Level) {}

// GetLevel implements hclog.Logger.
func (h *hcLog) GetLevel() hclog.Level { return hclog.Trace }

// StandardLogger implements hclog.Logger.
func (h *hcLog) StandardLogger(o *hclog.StandardLoggerOptions) *log.Logger {
	return log.New(h.StandardWriter(o), "", 0)
}

// StandardWriter implements hclog.Logger.
func (h *hcLog) StandardWriter(*hclog.StandardLoggerOptions) io.Writer { return lineWriter{h} }

type lineWriter struct{ h *hcLog }

func (w lineWriter) Write(p []byte) (int, error) {
	w.h.Info(string(p))
	return len(p), nil
}
