package fsm

import (
	"errors"
	"runtime"
	"runtime/debug"
	"sync"
	"sync/atomic"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
)

// Publisher is told what was published; the watch history is one. All methods
// are called by the goroutine that applies and must not block.
type Publisher interface {
	// Publish is called once per batch, after the state at rev is published,
	// with the events of the batch in order; there may be none. The slice is the
	// publisher's.
	Publish(rev catalog.Revision, events []*catalog.Event)
	// Reset says that the state was replaced by one of another history or of a
	// later time, and which last events came with it.
	Reset(inc catalog.Incarnation, rev catalog.Revision, events []*catalog.Event)
	// Tail returns the last events, oldest first, of at most maxRevisions
	// revisions and about maxBytes. The caller does not change the slice.
	Tail(maxRevisions int, maxBytes int) []*catalog.Event
}

// Bounds of the watch history in a snapshot.
const (
	HistoryRevisions = 4096
	HistoryBytes     = 8 << 20
)

// keptMarkers is for how many checksum markers the hash is known.
const keptMarkers = 64

// Config holds what an FSM reports to. Every field may be left zero.
type Config struct {
	// Publisher gets events and gives the history of snapshots. Default: none.
	Publisher Publisher
	// OnStop is called once, by the applying goroutine, when the machine stops
	// in front of an entry.
	OnStop func(*StopError)
	// OnChecksum is called by the applying goroutine, after the state is
	// published, for every checksum marker applied. It must not block.
	OnChecksum func(rev catalog.Revision, hash uint64)
	// MaxLevel is the highest feature level the machine supports: of a snapshot, of
	// the cluster, of a kind of command. Default: catalog.CurrentLevel.
	MaxLevel catalog.FeatureLevel
}

// FSM is the replicated state machine. It implements raft.BatchingFSM.
type FSM struct {
	cfg     Config
	state   atomic.Pointer[catalog.State]
	index   atomic.Uint64
	waiters waiters
	decoder Decoder // of the applying goroutine
	// handed is the last index the present raft instance handed over. It is below
	// index while an instance that was opened in place repeats its log. Used by
	// the applying goroutine only.
	handed uint64

	closed    chan struct{}
	closeOnce sync.Once
	stopped   atomic.Pointer[StopError]

	markers struct {
		sync.Mutex
		ring [keptMarkers]marker
		next int
	}
}

type marker struct {
	rev  catalog.Revision
	hash uint64
}

var _ raft.BatchingFSM = (*FSM)(nil)

// New returns a machine with the empty state at index 0.
func New(cfg Config) *FSM {
	if cfg.MaxLevel == 0 {
		cfg.MaxLevel = catalog.CurrentLevel
	}
	f := &FSM{cfg: cfg, closed: make(chan struct{})}
	f.state.Store(catalog.NewState())
	return f
}

// State returns the last published state.
func (f *FSM) State() *catalog.State { return f.state.Load() }

// Index returns the index of the last entry handed over, of whatever type, or
// of the snapshot restored. The published state is at least that new.
func (f *FSM) Index() uint64 { return f.index.Load() }

// Err returns the *StopError of a machine that stopped, else nil.
func (f *FSM) Err() error {
	if e := f.stopped.Load(); e != nil {
		return e
	}
	return nil
}

// HashAt returns the state hash right after the checksum marker at rev; it is
// known for the last 64 markers.
func (f *FSM) HashAt(rev catalog.Revision) (uint64, bool) {
	f.markers.Lock()
	defer f.markers.Unlock()
	for _, m := range f.markers.ring {
		if m.rev == rev && rev != 0 {
			return m.hash, true
		}
	}
	return 0, false
}

// Close ends all waits and the goroutine that is held by a stopped machine. It
// may be called more than once.
func (f *FSM) Close() {
	f.closeOnce.Do(func() {
		f.waiters.finish(ErrClosed)
		close(f.closed)
	})
}

// Apply is ApplyBatch of one entry.
func (f *FSM) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch applies the commands of one raft batch and publishes one state.
// The answer to a command is a *catalog.Result, to any other entry nil. Entries
// at or below the machine's index are in the state already: they are answered
// nil and change nothing. It does not return when the machine stops.
func (f *FSM) ApplyBatch(logs []*raft.Log) []any {
	if f.stopped.Load() != nil {
		f.hold()
	}
	known := f.repeated(logs)
	if known == len(logs) {
		return make([]any, len(logs))
	}
	return append(make([]any, known, len(logs)), f.applyNew(logs[known:])...)
}

// repeated counts the entries at the front that the state has already.
func (f *FSM) repeated(logs []*raft.Log) int {
	index := f.index.Load()
	n := 0
	for n < len(logs) && logs[n].Index <= index {
		f.handed = logs[n].Index
		n++
	}
	return n
}

func (f *FSM) applyNew(logs []*raft.Log) []any {
	run := f.run(logs)
	var stop *StopError
	if run.cause != nil {
		l := logs[run.done]
		stop = &StopError{Index: l.Index, Kind: EntryKind(l.Data), Cause: run.cause}
		var p *PanicError
		if errors.As(run.cause, &p) {
			// The panic may have left half a change in the batch: apply the
			// entries before it again, to a new one.
			run = f.run(logs[:run.done])
			if run.cause != nil {
				run = &batchRun{} // not even that repeats: publish nothing of it
			}
		}
	}
	f.publish(logs, run)
	if stop != nil {
		f.stop(stop)
	}
	return run.answers
}

// batchRun is the outcome of applying a batch up to done entries.
type batchRun struct {
	batch   *catalog.Batch
	answers []any
	events  []*catalog.Event
	markers []marker
	done    int
	cause   error // of the entry at done, nil if all were applied
}

// run applies entries to a batch on top of the published state.
func (f *FSM) run(logs []*raft.Log) (r *batchRun) {
	r = &batchRun{batch: f.State().Begin(), answers: make([]any, len(logs))}
	results := make([]catalog.Result, len(logs))
	defer func() {
		if v := recover(); v != nil {
			r.cause = &PanicError{Value: v, Stack: debug.Stack()}
		}
	}()
	for i, l := range logs {
		if l.Type != raft.LogCommand {
			r.batch.Advance(catalog.Revision(l.Index))
			r.done++
			continue
		}
		env, cmd, err := f.decoder.Decode(l.Data)
		if err != nil {
			r.cause = err
			return r
		}
		if r.cause = f.supports(l.Data, cmd); r.cause != nil {
			return r
		}
		r.apply(catalog.Revision(l.Index), env, cmd, &results[i])
		r.answers[i] = &results[i]
		r.done++
	}
	return r
}

// supports reports why a machine of this level must not apply a command: the kind
// came with a later level, or it takes the cluster there.
func (f *FSM) supports(entry []byte, cmd catalog.Command) error {
	var level catalog.FeatureLevel
	switch c := cmd.(type) {
	case catalog.SetFeatureLevel:
		level = c.Level
	case catalog.ActivateIncarnation:
		level = c.Level
	default:
		if cmd.Kind().Level() > f.cfg.MaxLevel {
			return &UnknownKindError{Format: entry[0], Kind: cmd.Kind(), Version: entry[2]}
		}
	}
	if level > f.cfg.MaxLevel {
		return &LevelError{Have: f.cfg.MaxLevel, Need: level}
	}
	return nil
}

func (r *batchRun) apply(rev catalog.Revision, env catalog.Envelope, cmd catalog.Command, res *catalog.Result) {
	var event *catalog.Event
	if *res, event = r.batch.Apply(rev, env, cmd); event != nil {
		r.events = append(r.events, event)
	}
	if cmd.Kind() == catalog.KindChecksum && res.Code == catalog.Done && res.Revision == rev {
		r.markers = append(r.markers, marker{rev, r.batch.View().Hash()})
	}
}

// publish makes what was applied visible: state, then index, then the waiters
// and the publisher.
func (f *FSM) publish(logs []*raft.Log, r *batchRun) {
	if r.done == 0 {
		return
	}
	index := logs[r.done-1].Index
	f.keepMarkers(r.markers)
	f.state.Store(r.batch.Publish())
	f.index.Store(index)
	f.handed = index
	f.waiters.publish(index)
	if f.cfg.Publisher != nil {
		f.cfg.Publisher.Publish(catalog.Revision(index), r.events)
	}
	if f.cfg.OnChecksum != nil {
		for _, m := range r.markers {
			f.cfg.OnChecksum(m.rev, m.hash)
		}
	}
}

func (f *FSM) keepMarkers(list []marker) {
	if len(list) == 0 {
		return
	}
	f.markers.Lock()
	defer f.markers.Unlock()
	for _, m := range list {
		f.markers.ring[f.markers.next] = m
		f.markers.next = (f.markers.next + 1) % keptMarkers
	}
}

// stop reports once and never returns.
func (f *FSM) stop(e *StopError) {
	f.stopped.Store(e)
	f.waiters.finish(e)
	if f.cfg.OnStop != nil {
		f.cfg.OnStop(e)
	}
	f.hold()
}

// hold keeps the goroutine until Close and then ends it: raft has no way to be
// told that an entry was not applied.
func (f *FSM) hold() {
	<-f.closed
	runtime.Goexit()
}
