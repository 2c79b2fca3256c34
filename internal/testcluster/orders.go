package testcluster

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"
)

// note records an order that was carried out.
func (c *Cluster) note(kind, format string, args ...any) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.counts[kind]++
	c.events = append(c.events, Event{At: time.Since(c.began), Kind: kind, Text: fmt.Sprintf(format, args...)})
}

// Events are the orders so far, in order.
func (c *Cluster) Events() []Event {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.events)
}

// Counts are how often each kind of order was carried out, and how often the
// leader was seen to change.
func (c *Cluster) Counts() map[string]int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return maps.Clone(c.counts)
}

// Select turns words into node ids: an id, "leader", "follower" (one of them),
// "followers", "all", "last" (what the last order named), "down" (what does not
// run), "majority" (one more than half).
func (c *Cluster) Select(ctx context.Context, words ...string) ([]string, error) {
	var out []string
	for _, w := range words {
		switch w {
		case "all":
			out = append(out, c.ids...)
		case "last":
			c.mu.Lock()
			out = append(out, c.last...)
			c.mu.Unlock()
		case "down":
			running := c.Running()
			for _, id := range c.ids {
				if !slices.Contains(running, id) {
					out = append(out, id)
				}
			}
		case "majority":
			out = append(out, c.ids[:len(c.ids)/2+1]...)
		case "leader", "follower", "followers":
			l, err := c.AwaitLeader(ctx, "")
			if err != nil {
				return nil, err
			}
			others := slices.DeleteFunc(c.Running(), func(id string) bool { return id == l })
			switch {
			case w == "leader":
				out = append(out, l)
			case len(others) == 0:
				return nil, errors.New("no follower runs")
			case w == "follower":
				out = append(out, others[0])
			default:
				out = append(out, others...)
			}
		default:
			if !slices.Contains(c.ids, w) && !slices.Contains(c.spares, w) {
				return nil, fmt.Errorf("no node %q", w)
			}
			out = append(out, w)
		}
	}
	c.mu.Lock()
	c.last = slices.Clone(out)
	c.mu.Unlock()
	return out, nil
}

// Start starts nodes and does not wait for them.
func (c *Cluster) Start(ids ...string) error {
	for _, id := range ids {
		if err := c.b.start(id); err != nil {
			return err
		}
		c.mu.Lock()
		c.running[id] = true
		c.mu.Unlock()
		c.note("start", "start %s", id)
	}
	return nil
}

// down notes that a node does not run.
func (c *Cluster) down(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.running, id)
	delete(c.paused, id)
}

// Stop stops nodes politely.
func (c *Cluster) Stop(ctx context.Context, ids ...string) error {
	for _, id := range ids {
		c.note("stop", "stop %s", id)
		err := c.b.stop(ctx, id)
		c.down(id)
		if err != nil {
			return fmt.Errorf("stop %s: %w", id, err)
		}
	}
	return nil
}

// Kill ends nodes without a warning.
func (c *Cluster) Kill(ids ...string) error {
	for _, id := range ids {
		c.note("kill", "kill %s", id)
		err := c.b.kill(id)
		c.down(id)
		if err != nil {
			return fmt.Errorf("kill %s: %w", id, err)
		}
	}
	return nil
}

// PowerLoss ends nodes and takes from their disks what was never synced. It
// wraps ErrUnsupported where that cannot be done.
func (c *Cluster) PowerLoss(ids ...string) error {
	for _, id := range ids {
		if err := c.b.powerLoss(id); err != nil {
			return err
		}
		c.down(id)
		c.note("power-loss", "power-loss %s", id)
	}
	return nil
}

// Pause stands nodes still; Resume lets them go on as if nothing had been.
func (c *Cluster) Pause(ids ...string) error { return c.setPaused(true, ids) }

// Resume undoes Pause.
func (c *Cluster) Resume(ids ...string) error { return c.setPaused(false, ids) }

func (c *Cluster) setPaused(on bool, ids []string) error {
	for _, id := range ids {
		do, name := c.b.resume, "resume"
		if on {
			do, name = c.b.pause, "pause"
		}
		if err := do(id); err != nil {
			return fmt.Errorf("%s %s: %w", name, id, err)
		}
		c.mu.Lock()
		c.paused[id] = on
		c.mu.Unlock()
		c.note(name, "%s %s", name, id)
	}
	return nil
}

func (c *Cluster) hosts() []string {
	return slices.Concat(c.ids, c.spares, []string{ArchiveHost, ClientHost})
}

// setLink makes one direction what c.cuts and c.delays say of it.
func (c *Cluster) setLink(from, to string) {
	k := [2]string{from, to}
	c.mu.Lock()
	cut, delay := c.cuts[k], c.delays[k]
	c.mu.Unlock()
	c.b.link(from, to, cut, delay)
}

func (c *Cluster) setCut(from, to string, cut bool) {
	c.mu.Lock()
	c.cuts[[2]string{from, to}] = cut
	c.mu.Unlock()
	c.setLink(from, to)
}

// Cut stops bytes in one direction; ClientHost and ArchiveHost are hosts, too.
func (c *Cluster) Cut(from, to string) {
	c.setCut(from, to, true)
	c.note("cut", "cut %s > %s", from, to)
}

// Partition cuts every link between groups of nodes. The archive is with the
// largest; clients reach all.
func (c *Cluster) Partition(groups ...[]string) {
	largest := 0
	for i, g := range groups {
		if len(g) > len(groups[largest]) {
			largest = i
		}
	}
	var names []string
	for i, g := range groups {
		names = append(names, strings.Join(g, " "))
		for j, h := range groups {
			if i == j {
				continue
			}
			for _, a := range g {
				for _, b := range h {
					c.setCut(a, b, true)
				}
				if i != largest {
					c.setCut(a, ArchiveHost, true)
					c.setCut(ArchiveHost, a, true)
				}
			}
		}
	}
	c.note("partition", "partition %s", strings.Join(names, " | "))
}

// Isolate cuts a node from all others, and with clients from them, too.
func (c *Cluster) Isolate(id string, clients bool) {
	for _, h := range c.hosts() {
		if h != id && (h != ClientHost || clients) {
			c.setCut(id, h, true)
			c.setCut(h, id, true)
		}
	}
	c.note("isolate", "isolate %s", id)
}

// OneWay lets a node only send (deaf) or only receive (mute).
func (c *Cluster) OneWay(id string, deaf bool) {
	for _, h := range c.hosts() {
		if h == id || h == ClientHost {
			continue
		}
		if deaf {
			c.setCut(h, id, true)
		} else {
			c.setCut(id, h, true)
		}
	}
	c.note("one-way", "one-way %s deaf=%t", id, deaf)
}

// Bridge cuts the other nodes into two halves that both still reach the bridge.
func (c *Cluster) Bridge(id string) {
	others := slices.DeleteFunc(slices.Clone(c.ids), func(o string) bool { return o == id })
	for _, a := range others[:len(others)/2] {
		for _, b := range others[len(others)/2:] {
			c.setCut(a, b, true)
			c.setCut(b, a, true)
		}
	}
	c.note("bridge", "bridge %s", id)
}

// Slow delays every byte to and from a node.
func (c *Cluster) Slow(id string, by time.Duration) {
	for _, h := range c.hosts() {
		if h == id {
			continue
		}
		c.mu.Lock()
		c.delays[[2]string{id, h}], c.delays[[2]string{h, id}] = by, by
		c.mu.Unlock()
		c.setLink(id, h)
		c.setLink(h, id)
	}
	c.note("slow", "slow %s %s", id, by)
}

// Reset breaks every connection of a node.
func (c *Cluster) Reset(id string) {
	for _, h := range c.hosts() {
		if h != id {
			c.b.reset(id, h)
		}
	}
	c.note("reset", "reset %s", id)
}

// Drop makes the links between nodes lossy, as TCP shows it: each stands still
// for 50 ms with the given probability, and some break.
func (c *Cluster) Drop(share float64, seed uint64) {
	c.endDrops()
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	c.mu.Lock()
	c.drops, c.dropped = cancel, done
	c.mu.Unlock()
	c.note("drop", "drop %.0f%%", 100*share)
	go func() {
		defer close(done)
		r := rand.New(rand.NewPCG(seed, 1))
		for ctx.Err() == nil {
			for _, a := range c.ids {
				for _, b := range append(slices.Clone(c.ids), ClientHost) {
					if a == b {
						continue
					}
					c.mu.Lock()
					cut := c.cuts[[2]string{a, b}]
					delay := c.delays[[2]string{a, b}]
					c.mu.Unlock()
					c.b.link(a, b, cut || r.Float64() < share, delay)
					if r.Float64() < share/50 {
						c.b.reset(a, b)
					}
				}
			}
			pause(ctx, 50*time.Millisecond)
		}
	}()
}

func (c *Cluster) endDrops() {
	c.mu.Lock()
	cancel, done := c.drops, c.dropped
	c.drops = nil
	c.mu.Unlock()
	if cancel != nil {
		cancel()
		<-done
	}
}

// Disk sets how the disks of nodes behave.
func (c *Cluster) Disk(mode DiskMode, ids ...string) error {
	for _, id := range ids {
		if err := c.b.disk(id, mode); err != nil {
			return err
		}
		c.note("disk-"+string(mode), "disk of %s: %s", id, mode)
	}
	return nil
}

// ClockJump moves the wall clocks of nodes.
func (c *Cluster) ClockJump(by time.Duration, ids ...string) error {
	for _, id := range ids {
		if err := c.b.clock(id, by); err != nil {
			return err
		}
		c.note("clock-jump", "clock of %s: %s", id, by)
	}
	return nil
}

// Heal ends every fault of network, disks and pauses. Nodes that are down stay
// so, and clocks wrong.
func (c *Cluster) Heal() error {
	c.endDrops()
	c.mu.Lock()
	pausedNow := c.paused
	c.paused = map[string]bool{}
	c.cuts, c.delays = map[[2]string]bool{}, map[[2]string]time.Duration{}
	c.mu.Unlock()
	var errs []error
	for id, on := range pausedNow {
		if on {
			errs = append(errs, c.b.resume(id))
		}
	}
	for _, id := range c.Running() {
		errs = append(errs, c.b.disk(id, DiskGood))
	}
	for _, a := range c.hosts() {
		for _, b := range c.hosts() {
			if a != b {
				c.b.link(a, b, false, 0)
			}
		}
	}
	c.note("heal", "heal")
	return errors.Join(errs...)
}
