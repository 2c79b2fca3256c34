package server

import (
	"sync"
	"time"

	"github.com/stavedb/stave/catalog"
)

// watches are the open watches of a server.
type watches struct {
	max  int
	slow time.Duration
	mu   sync.Mutex
	set  map[*watcher]struct{}
}

func (l *watches) init(cfg Config) {
	l.max, l.slow, l.set = cfg.MaxWatches, cfg.SlowAfter, map[*watcher]struct{}{}
}

func (l *watches) add(w *watcher) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.set) >= l.max {
		return &catalog.Error{
			Code: catalog.ErrBusy, Limit: uint64(l.max), Size: uint64(l.max) + 1, Message: "this node serves as many watches as it may",
		}
	}
	l.set[w] = struct{}{}
	return nil
}

func (l *watches) remove(w *watcher) {
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
func (l *watches) stuck(now time.Time) []*watcher {
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []*watcher
	for w := range l.set {
		if began := w.sending.Load(); began != 0 && now.UnixNano()-began >= int64(l.slow) {
			out = append(out, w)
		}
	}
	return out
}
