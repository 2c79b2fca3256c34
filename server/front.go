package server

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

// Front is the HTTP server of a process: it answers the probes while the node
// opens, and everything once a Server took it over through Config.Front. All
// methods may be called concurrently.
type Front struct {
	http    *http.Server
	handler atomic.Pointer[http.Handler]
}

// NewFront makes a Front that answers as LiveHandler does.
func NewFront(reason func() string) *Front {
	f := newFront(slog.New(slog.DiscardHandler))
	f.set(LiveHandler(reason))
	return f
}

func newFront(log *slog.Logger) *Front {
	f := &Front{}
	f.http = &http.Server{
		Handler:           http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { (*f.handler.Load()).ServeHTTP(w, r) }),
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       time.Minute,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    64 << 10,
		ErrorLog:          slog.NewLogLogger(log.Handler(), slog.LevelDebug),
	}
	return f
}

func (f *Front) set(h http.Handler) { f.handler.Store(&h) }

// Serve answers requests on a listener until Close, and then returns nil.
func (f *Front) Serve(l net.Listener) error {
	if err := f.http.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

// Close closes the listeners, waits for running requests as long as ctx lasts,
// and ends those that are left.
func (f *Front) Close(ctx context.Context) error {
	err := f.http.Shutdown(ctx)
	if err != nil {
		err = errors.Join(err, f.http.Close())
	}
	return err
}

// LiveHandler answers for a process whose node is not open yet: /livez with 200,
// /readyz with 503 and the reason, which may be empty, and all else with 503 and
// UNAVAILABLE.
func LiveHandler(reason func() string) http.Handler {
	return readOnly(map[string]http.Handler{
		"/livez": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { plain(w, http.StatusOK, "ok") }),
		"/readyz": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			plain(w, http.StatusServiceUnavailable, "node is not open yet: "+reason())
		}),
	}, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		failure(w, http.StatusServiceUnavailable, refuse(catalog.ErrUnavailable, "node is not open yet: %s", reason()))
	}))
}

// readOnly answers GET and HEAD of the paths in own, refuses their other methods,
// and hands every other path to rest as it came: a key may hold two slashes in a
// row, so no path is cleaned by a redirect, as http.ServeMux does.
func readOnly(own map[string]http.Handler, rest http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h, ok := own[r.URL.Path]
		switch {
		case !ok:
			rest.ServeHTTP(w, r)
		case r.Method == http.MethodGet, r.Method == http.MethodHead:
			h.ServeHTTP(w, r)
		default:
			w.Header().Set("Allow", "GET, HEAD")
			failure(w, http.StatusMethodNotAllowed, notServed(r, http.StatusMethodNotAllowed))
		}
	})
}

// notServed is the refusal of a path or method that is not there.
func notServed(r *http.Request, status int) error {
	return refuse(catalog.ErrUnknownCommand, "%s %s is not part of the API: %s", r.Method, r.URL.Path, http.StatusText(status))
}

// plain answers a probe with one line.
func plain(w http.ResponseWriter, status int, line string) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, line+"\n") //nolint:errcheck // the peer is gone
}

// failure answers with the JSON of an error.
func failure(w http.ResponseWriter, status int, err error) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = api.WriteJSON(w, api.ErrorJSON(err)) //nolint:errcheck // the peer is gone
}
