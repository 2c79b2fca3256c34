package server

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/stavedb/stave/api"
)

// metrics counts what the server does.
type metrics struct {
	reg      prometheus.Registerer
	requests *prometheus.CounterVec
	duration *prometheus.HistogramVec
	commands prometheus.Counter
	reads    prometheus.Counter
	rounds   prometheus.Counter
	watches  prometheus.Gauge
	events   prometheus.Counter
	cut      prometheus.Counter
}

func newMetrics(reg prometheus.Registerer, node string) (*metrics, error) {
	labels := prometheus.Labels{"node": node}
	m := &metrics{
		reg: reg,
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stave_server_requests_total", Help: "Calls that ended, by method and code.", ConstLabels: labels,
		}, []string{"method", "code"}),
		duration: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "stave_server_request_duration_seconds", Help: "Durations of unary calls, by method.", ConstLabels: labels,
			Buckets: prometheus.ExponentialBuckets(0.0001, 2.5, 14),
		}, []string{"method"}),
		commands: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_server_stream_commands_total", Help: "Commands received on batch streams.", ConstLabels: labels,
		}),
		reads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_server_stream_reads_total", Help: "Reads received on streams of reads.", ConstLabels: labels,
		}),
		rounds: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_server_stream_read_batches_total", Help: "Batches in which reads of streams were answered.", ConstLabels: labels,
		}),
		watches: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stave_server_watches", Help: "Watches that are open.", ConstLabels: labels,
		}),
		events: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_server_watch_events_total", Help: "Events sent to watches.", ConstLabels: labels,
		}),
		cut: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_server_watches_cut_total", Help: "Watches ended because their peer did not read.", ConstLabels: labels,
		}),
	}
	if reg == nil {
		return m, nil
	}
	for i, c := range m.collectors() {
		if err := reg.Register(c); err != nil {
			for _, done := range m.collectors()[:i] {
				reg.Unregister(done)
			}
			var dup prometheus.AlreadyRegisteredError
			if errors.As(err, &dup) {
				return nil, fmt.Errorf("metrics of a server of node %s are registered already: %w", node, err)
			}
			return nil, fmt.Errorf("register metrics: %w", err)
		}
	}
	return m, nil
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.requests, m.duration, m.commands, m.reads, m.rounds, m.watches, m.events, m.cut}
}

func (m *metrics) unregister() {
	if m.reg == nil {
		return
	}
	for _, c := range m.collectors() {
		m.reg.Unregister(c)
	}
}

// observe counts a unary call.
func (m *metrics) observe(method string, err error, took time.Duration) {
	m.count(method, err)
	m.duration.WithLabelValues(label(method)).Observe(took.Seconds())
}

// count counts a call by the code of the status it ended with.
func (m *metrics) count(method string, err error) {
	m.requests.WithLabelValues(label(method), codeLabel(err)).Inc()
}

func label(method string) string {
	return strings.TrimPrefix(strings.TrimPrefix(method, "/"), "stave.v1.")
}

// codeLabel is OK, the name of a code of the error table, or that of grpc.
func codeLabel(err error) string {
	st := status.Convert(err)
	if st.Code() == codes.OK {
		return "OK"
	}
	var rpc *api.RPCError
	if e := api.ErrorFromStatus(st); !errors.As(e, &rpc) {
		return api.CodeOf(e).String()
	}
	return "RPC_" + strings.ToUpper(st.Code().String())
}
