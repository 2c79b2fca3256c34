package client

import (
	"errors"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the client's numbers. Without a registerer they are counted all
// the same.
type metrics struct {
	attempts prometheus.Counter
	retries  *prometheus.CounterVec
	commands prometheus.Counter
	batches  prometheus.Counter
	// reads and readBatches are those of the stream of reads.
	reads, readBatches prometheus.Counter
	queued             prometheus.Gauge
	lookups            *prometheus.CounterVec
}

func newMetrics(reg prometheus.Registerer) (*metrics, error) {
	m := &metrics{
		attempts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_client_attempts_total", Help: "Attempts of unary calls and of reads on the stream, the first ones included.",
		}),
		retries: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stave_client_retries_total", Help: "Answers after which a call was made again, by what they said.",
		}, []string{"reason"}),
		commands: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_client_batched_commands_total", Help: "Commands sent on the batch stream, repetitions included.",
		}),
		batches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_client_batches_total", Help: "Messages sent on the batch stream.",
		}),
		reads: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_client_batched_reads_total", Help: "Reads sent on the stream of reads, repetitions included.",
		}),
		readBatches: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "stave_client_read_batches_total", Help: "Messages sent on the stream of reads.",
		}),
		queued: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "stave_client_queued_commands", Help: "Commands that wait for the batch stream.",
		}),
		lookups: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "stave_client_layout_lookups_total", Help: "Lookups of layouts that were not a hit, by what they found.",
		}, []string{"result"}),
	}
	if reg == nil {
		return m, nil
	}
	return m, errors.Join(
		share(reg, &m.attempts), share(reg, &m.retries), share(reg, &m.commands),
		share(reg, &m.batches), share(reg, &m.reads), share(reg, &m.readBatches), share(reg, &m.queued), share(reg, &m.lookups))
}

// share registers a collector, or takes the one another client registered.
func share[C prometheus.Collector](reg prometheus.Registerer, c *C) error {
	err := reg.Register(*c)
	var there prometheus.AlreadyRegisteredError
	if errors.As(err, &there) {
		if old, ok := there.ExistingCollector.(C); ok {
			*c = old
			return nil
		}
	}
	return err
}

var stepNames = [...]string{
	stepAgain: "busy", stepElsewhere: "elsewhere", stepUnclear: "unclear", stepBroken: "broken", stepLost: "session", stepRestored: "restored",
}

func (m *metrics) retried(s step) { m.retries.WithLabelValues(stepNames[s]).Inc() }
