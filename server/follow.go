package server

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/watch"
)

// sender is the sending side of a stream that follows the history: a watch or a
// feed.
type sender struct {
	out grpc.ServerStream
	sub *watch.Subscription
	// sending is when the send under way began, in nanoseconds since the epoch;
	// 0: none is.
	sending atomic.Int64
	cut     chan error // one reason to end the call from outside
}

// send may be held up as long as the peer does not read.
func (w *sender) send(m any) error {
	w.sending.Store(time.Now().UnixNano())
	defer w.sending.Store(0)
	return w.out.SendMsg(m)
}

// follow runs a stream that follows the history. begin subscribes; run, in a
// goroutine of its own, sends until the stream is over, so that the call can end
// while a send is held up by a peer that does not read.
func (s *Server) follow(out grpc.ServerStream, w *sender, begin func() error, run func(context.Context) error) error {
	w.out, w.cut = out, make(chan error, 1)
	if err := s.watches.reserve(); err != nil {
		return err
	}
	defer s.watches.free()
	if err := begin(); err != nil {
		return err
	}
	defer w.sub.Close()
	s.watches.add(w)
	defer s.watches.remove(w)
	s.metrics.watches.Inc()
	defer s.metrics.watches.Dec()
	ctx, cancel := context.WithCancel(out.Context())
	defer cancel()
	ended := make(chan error, 1)
	s.group.Go(func() { ended <- s.guarded(ctx, run) })
	select {
	case err := <-ended:
		return err
	case err := <-w.cut:
		s.metrics.cut.Inc()
		return err
	case <-s.closing:
		return closingError()
	}
}

func (s *Server) guarded(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = s.panicked("sender of a stream", p)
		}
	}()
	return run(ctx)
}

// watches are the streams of a server that follow the history.
type watches struct {
	max  int
	slow time.Duration
	mu   sync.Mutex
	open int // guarded by mu, as is set
	set  map[*sender]struct{}
}

func (l *watches) init(cfg Config) {
	l.max, l.slow, l.set = cfg.MaxWatches, cfg.SlowAfter, map[*sender]struct{}{}
}

func (l *watches) reserve() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open >= l.max {
		return &catalog.Error{
			Code: catalog.ErrBusy, Limit: uint64(l.max), Size: uint64(l.max) + 1, Message: "this node serves as many watches as it may",
		}
	}
	l.open++
	return nil
}

func (l *watches) free() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.open--
}

func (l *watches) add(w *sender) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.set[w] = struct{}{}
}

func (l *watches) remove(w *sender) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.set, w)
}

// cutSlow ends watches whose peer takes nothing while the watch is further
// behind than it may be, or is over anyway. Until then what such a peer costs is
// one message.
func (l *watches) cutSlow(closing <-chan struct{}) {
	t := time.NewTicker(l.slow / 2)
	defer t.Stop()
	for {
		select {
		case <-closing:
			return
		case now := <-t.C:
			for _, w := range l.stuck(now) {
				if err := w.sub.Err(); err != nil {
					select {
					case w.cut <- err:
					default:
					}
				}
			}
		}
	}
}

// stuck are the watches with a send that is under way for too long.
func (l *watches) stuck(now time.Time) []*sender {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*sender
	for w := range l.set {
		if began := w.sending.Load(); began != 0 && now.UnixNano()-began >= int64(l.slow) {
			out = append(out, w)
		}
	}
	return out
}
