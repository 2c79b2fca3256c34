package client

import (
	"fmt"
	"sync"

	"github.com/stavedb/stave/catalog"
)

// maxOutcomes is how many outcomes of writes that timed out are kept.
const maxOutcomes = catalog.ClientWindow

// OutcomeState says what is known of a write.
type OutcomeState uint8

// States of an outcome.
const (
	// OutcomeNone: the sequence was never of unknown outcome, or is forgotten.
	OutcomeNone OutcomeState = iota
	// OutcomePending: the client is still asking.
	OutcomePending
	// OutcomeKnown: the result is known.
	OutcomeKnown
	// OutcomeLost: the client's record is gone; it will never be known.
	OutcomeLost
)

// String returns none, pending, known or lost.
func (s OutcomeState) String() string {
	names := [...]string{"none", "pending", "known", "lost"}
	if int(s) < len(names) {
		return names[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// Outcome tells what became of a write that ended with
// catalog.ErrOutcomeUnknown; err names it, as CallError.Client and Sequence of
// the current registration. The result of a known one may be a refusal, which
// is in Result.Code. The last 4,096 are kept.
func (c *Client) Outcome(seq uint64) (catalog.Result, OutcomeState) {
	c.results.mu.Lock()
	defer c.results.mu.Unlock()
	o, ok := c.results.bySeq[seq]
	if !ok {
		return catalog.Result{}, OutcomeNone
	}
	return o.result, o.state
}

type outcome struct {
	t      ticket
	state  OutcomeState
	result catalog.Result
}

// outcomes remembers writes whose callers gave up.
type outcomes struct {
	mu    sync.Mutex
	bySeq map[uint64]*outcome
	order []uint64
}

// open notes a write that is asked for in the background.
func (o *outcomes) open(t ticket) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bySeq == nil {
		o.bySeq = map[uint64]*outcome{}
	}
	if _, ok := o.bySeq[t.seq]; !ok {
		o.order = append(o.order, t.seq)
	}
	o.bySeq[t.seq] = &outcome{t: t, state: OutcomePending}
	for len(o.order) > maxOutcomes {
		delete(o.bySeq, o.order[0])
		o.order = o.order[1:]
	}
}

func (o *outcomes) set(t ticket, s OutcomeState, r catalog.Result) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e, ok := o.bySeq[t.seq]; ok && e.t == t {
		e.state, e.result = s, r
	}
}

func (o *outcomes) close(t ticket, r catalog.Result) { o.set(t, OutcomeKnown, r) }

func (o *outcomes) lose(t ticket) { o.set(t, OutcomeLost, catalog.Result{}) }

// pending counts the writes that are still asked for.
func (o *outcomes) pending() (n int) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, e := range o.bySeq {
		if e.state == OutcomePending {
			n++
		}
	}
	return n
}
