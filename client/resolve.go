package client

import (
	"context"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"time"
)

const (
	resolveTimeout = 5 * time.Second
	resolveEvery   = time.Second
)

// resolve looks the names up again, at most once a second, in the background.
// It is asked for when no connection can be used. The lock is held.
func (p *pool) resolve(now time.Time) {
	if p.mu.resolving || now.Before(p.mu.resolveAfter) || !slices.ContainsFunc(p.endpoints, func(e endpoint) bool { return e.dns }) {
		return
	}
	p.mu.resolving = p.goLocked(func() {
		addrs, err := p.lookup()
		p.mu.Lock()
		defer p.mu.Unlock()
		p.mu.resolving, p.mu.resolveAfter = false, time.Now().Add(resolveEvery)
		if err != nil {
			p.cfg.logger.Debug("name not resolved", slog.Any("error", err))
		}
		if len(addrs) > 0 { // an old address is better than none
			p.mu.resolved = addrs
			p.rebuild()
		}
		p.signal()
	})
}

func (p *pool) lookup() (addrs []string, err error) {
	ctx, cancel := context.WithTimeout(p.ctx, resolveTimeout)
	defer cancel()
	for _, e := range p.endpoints {
		if !e.dns {
			continue
		}
		hosts, rerr := p.cfg.resolve(ctx, e.host)
		if rerr != nil {
			err = fmt.Errorf("resolve %s: %w", e, rerr)
			continue
		}
		for _, h := range hosts {
			addrs = append(addrs, net.JoinHostPort(h, e.port))
		}
	}
	slices.Sort(addrs)
	return slices.Compact(addrs), err
}
