package testhistory

import (
	"sync"
	"time"

	"github.com/stavedb/stave/catalog"
)

// Fate is how a call ended for its caller.
type Fate uint8

// The fates.
const (
	Acked   Fate = iota // answered, be it by a refusal
	Unknown             // it may have been executed
	Failed              // nothing was changed
)

// Op is one call.
type Op struct {
	Caller       int
	Object       string // what porcupine splits by; empty: not for porcupine
	Call, Return time.Duration
	Fate         Fate

	// Command of a write, and its answer if it was Acked. Client and Sequence are
	// known if the fate is Unknown.
	Command  catalog.Command
	Result   catalog.Result
	Client   catalog.ClientID
	Sequence uint64

	// Read is what an acknowledged read saw at Revision.
	Read     *Seen
	Revision catalog.Revision
}

// Seen is what a read saw of its object. Absent objects are the zero value.
type Seen struct {
	Version uint64 // of a key, or the layout epoch of a table
	Value   string // of a key, or the bucket count of a table
	Sum     uint64 // of rows, for reads of many
}

// Watched is one step of a watch as it arrived.
type Watched struct {
	Revision catalog.Revision
	Changes  int
	Bookmark bool
}

// Watch is one watch from its beginning to its end.
type Watch struct {
	Watcher int
	From    catalog.Revision // exclusive
	Prefix  bool             // only keys under watchPrefix
	Steps   []Watched
	// Compacted says that the cluster had dropped the history from there on.
	Compacted bool
}

// Sample is a state hash a node reported.
type Sample struct {
	Node     string
	Revision catalog.Revision
	Hash     uint64
	Term     uint64
}

// History is everything that was seen. Its methods may be called concurrently;
// its fields are read once the load has ended.
type History struct {
	began time.Time

	mu      sync.Mutex
	Ops     []Op
	Watches []Watch
	Samples []Sample
	// Errors are violations that a caller could see by itself.
	Errors []string
	// Refused counts acknowledged refusals by code, Resent the calls that were
	// sent more than once on purpose.
	Refused map[catalog.Code]int
	Resent  int
}

// New returns an empty history whose clock begins at a moment.
func New(began time.Time) *History { return &History{began: began, Refused: map[catalog.Code]int{}} }

func (h *History) now() time.Duration { return time.Since(h.began) }

func (h *History) add(op Op) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Ops = append(h.Ops, op)
	if op.Fate == Acked && op.Result.Code != catalog.Done {
		h.Refused[op.Result.Code]++
	}
}

func (h *History) addWatch(w Watch) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Watches = append(h.Watches, w)
}

func (h *History) sample(s Sample) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Samples = append(h.Samples, s)
}

func (h *History) resent(n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.Resent += n
}

// violation notes what must not be. The first 100 are kept.
func (h *History) violation(text string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.Errors) < 100 {
		h.Errors = append(h.Errors, text)
	}
}

// Len is the number of calls so far.
func (h *History) Len() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.Ops)
}

// LastWrite is when the last acknowledged write returned.
func (h *History) LastWrite() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.Ops) - 1; i >= 0; i-- {
		if op := &h.Ops[i]; op.Command != nil && op.Fate == Acked {
			return op.Return
		}
	}
	return 0
}
