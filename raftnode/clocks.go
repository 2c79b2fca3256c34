package raftnode

import (
	"context"
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/stavedb/stave/catalog"
)

const (
	// clockInterval is how often a leader compares its wall clock with the others'.
	clockInterval = time.Second
	// maxClockOffset is how far it may be from the median of the voters.
	maxClockOffset = 10 * time.Minute
)

// leaderClock is the wall time of one term. It moves no further than the monotonic
// clock since the wall clock was last found to be near the other voters', or since
// the term began with the time of the state: a clock that jumps moves nothing that
// is decided by time.
type leaderClock struct {
	mu     sync.Mutex
	base   catalog.Millis
	since  time.Duration // monotonic
	offset time.Duration // from the median, at the last comparison
}

func newLeaderClock(c Clock, state catalog.Millis) *leaderClock {
	l := &leaderClock{base: state, since: c.Monotonic()}
	if state == 0 { // a new cluster has no time yet
		l.base = wallMillis(c)
	}
	return l
}

func wallMillis(c Clock) catalog.Millis { return catalog.Millis(c.Wall().UnixMilli()) }

// now is the wall time for a command.
func (l *leaderClock) now(c Clock) catalog.Millis {
	l.mu.Lock()
	defer l.mu.Unlock()
	allowed := l.base + catalog.Millis((c.Monotonic()-l.since)/time.Millisecond)
	if l.offset.Abs() > maxClockOffset {
		return allowed // also where the clock fell back
	}
	return min(wallMillis(c), allowed)
}

// compared takes in how far the wall clock is ahead of the median.
func (l *leaderClock) compared(c Clock, offset time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.offset = offset
	if offset.Abs() <= maxClockOffset {
		l.base, l.since = wallMillis(c), c.Monotonic()
	}
}

// ahead is how far the wall clock was ahead of the median at the last comparison.
func (l *leaderClock) ahead() time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.offset
}

// jumped says what is wrong with the clock; empty if nothing is.
func (l *leaderClock) jumped() string {
	off := l.ahead()
	if off.Abs() <= maxClockOffset {
		return ""
	}
	direction := "ahead of"
	if off < 0 {
		direction = "behind"
	}
	return fmt.Sprintf("the wall clock of this leader is %s %s the median of the voters, more than %s: time goes on by its monotonic clock, "+
		"and nothing is dropped by age; set the clock, or transfer leadership", off.Abs().Round(time.Second), direction, maxClockOffset)
}

// dutyClock compares the wall clock of the leader with those of the voters that
// answer. Less than half of all voters say nothing.
func (n *Node) dutyClock(ctx context.Context, l *leadership) error {
	e := n.engine.Load()
	if e == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, probeTimeout)
	defer cancel()
	all := voters(e.raft.GetConfiguration().Configuration())
	answers := make(chan time.Duration, len(all))
	var asked sync.WaitGroup
	for _, v := range all {
		if v == n.cfg.ID {
			answers <- 0
			continue
		}
		asked.Go(func() {
			if off, err := n.clockAhead(ctx, v); err == nil {
				answers <- off
			}
		})
	}
	asked.Wait()
	close(answers)
	var offsets []time.Duration
	for off := range answers {
		offsets = append(offsets, off)
	}
	if len(offsets) <= len(all)/2 {
		return nil
	}
	before := l.clock.jumped()
	l.clock.compared(n.cfg.Clock, medianOffset(offsets))
	switch after := l.clock.jumped(); {
	case after != "" && before == "":
		n.log.Warn("wall clock jumped", "reason", after)
	case after == "" && before != "":
		n.log.Info("wall clock is near the others' again")
	}
	return nil
}

// clockAhead is how far this node's wall clock is ahead of another's.
func (n *Node) clockAhead(ctx context.Context, voter string) (time.Duration, error) {
	start := n.cfg.Clock.Monotonic()
	data, err := n.peers.Call(ctx, voter, methodClock, nil)
	if err != nil {
		return 0, err
	}
	if len(data) != 8 {
		return 0, fmt.Errorf("clock of %s has %d bytes, want 8", voter, len(data))
	}
	theirs := time.UnixMilli(int64(binary.BigEndian.Uint64(data))).Add((n.cfg.Clock.Monotonic() - start) / 2)
	return n.cfg.Clock.Wall().Sub(theirs), nil
}

// serveClock answers with this node's wall clock.
func (n *Node) serveClock(context.Context, string, []byte) ([]byte, error) {
	return binary.BigEndian.AppendUint64(nil, uint64(wallMillis(n.cfg.Clock))), nil
}

// medianOffset is the middle one of offsets, of two in the middle the one that is
// further away: two clocks cannot tell which of them is wrong.
func medianOffset(offsets []time.Duration) time.Duration {
	slices.Sort(offsets)
	low, high := offsets[(len(offsets)-1)/2], offsets[len(offsets)/2]
	if low.Abs() > high.Abs() {
		return low
	}
	return high
}
