package testhistory

import (
	"errors"
	"fmt"
	"slices"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
)

// Entry is one entry of the log with what its replay gave.
type Entry struct {
	Index, Term uint64
	Client      catalog.ClientID
	Sequence    uint64
	Command     catalog.Command // nil for raft's own entries
	Result      catalog.Result
	Repeat      bool // the same (client, sequence) was executed before
	Changes     int  // rows watchers see; 0: no event
	Prefixed    int  // of those, keys under watchPrefix
	Hash        uint64
}

// Replay is the whole log, executed.
type Replay struct {
	Entries  []Entry // by index, from 1
	Final    *catalog.State
	Naive    int // answers the naive model gave
	Repeats  int
	Events   int
	problems []string
}

// ask is a question to the state at a revision.
type ask struct {
	at catalog.Revision
	do func(*catalog.State)
}

// replay executes a log from its first entry, and asks on the way. The asks are
// sorted by revision.
func replay(logs []*raft.Log, asks []ask) (*Replay, error) {
	if len(logs) == 0 || logs[0].Index != 1 {
		return nil, errors.New("the log does not begin with entry 1: the archive was given a snapshot")
	}
	r := &Replay{Entries: make([]Entry, 0, len(logs)+1)}
	r.Entries = append(r.Entries, Entry{})
	var decoder fsm.Decoder
	model := newNaive()
	executed := map[[2]uint64]bool{}
	state := catalog.NewState()
	batch := state.Begin()
	for i, l := range logs {
		if l.Index != uint64(i)+1 {
			return nil, fmt.Errorf("entry %d follows %d", l.Index, i)
		}
		for len(asks) > 0 && uint64(asks[0].at) < l.Index {
			asks[0].do(batch.View())
			asks = asks[1:]
		}
		e := Entry{Index: l.Index, Term: l.Term}
		if l.Type == raft.LogCommand {
			env, cmd, err := decoder.Decode(l.Data)
			if err != nil {
				return nil, fmt.Errorf("entry %d: %w", l.Index, err)
			}
			e.Client, e.Sequence, e.Command = env.Client, env.Sequence, cmd
			key := [2]uint64{uint64(env.Client), env.Sequence}
			if e.Repeat = env.Client != 0 && executed[key]; e.Repeat {
				r.Repeats++
			}
			executed[key] = true
			r.execute(&e, batch, model, env, cmd)
		} else {
			batch.Advance(catalog.Revision(l.Index))
		}
		e.Hash = batch.View().Hash()
		r.Entries = append(r.Entries, e)
		if i%2000 == 0 {
			if err := batch.Publish().Check(); err != nil {
				r.problem("invariants after entry %d: %v", l.Index, err)
			}
		}
	}
	for _, a := range asks {
		a.do(batch.View())
	}
	r.Final = batch.Publish()
	if err := r.Final.Check(); err != nil {
		r.problem("invariants at the end: %v", err)
	}
	r.Naive = model.checked
	return r, nil
}

func (r *Replay) problem(format string, args ...any) {
	if len(r.problems) < 50 {
		r.problems = append(r.problems, fmt.Sprintf(format, args...))
	}
}

func (r *Replay) execute(e *Entry, batch *catalog.Batch, model *naive, env catalog.Envelope, cmd catalog.Command) {
	placeable := isPlaceable(batch.View())
	dead := r.leases(batch.View(), env, cmd)
	fenced := staleChanges(batch.View(), cmd)
	var event *catalog.Event
	e.Result, event = batch.Apply(catalog.Revision(e.Index), env, cmd)
	if a, known := model.apply(env, cmd, placeable); known {
		model.checked++
		if !a.agrees(e.Result) {
			r.problem("entry %d, %s %+v of client %d sequence %d: catalog says %+v, the naive model %+v", e.Index, cmd.Kind(), cmd, env.Client, env.Sequence, e.Result, a)
		}
	}
	for _, i := range fenced {
		if i < len(e.Result.Buckets) && e.Result.Buckets[i] == catalog.Done && !e.Repeat {
			r.problem("entry %d changed the ISR of bucket %d under epochs that were not the current ones", e.Index, i)
		}
	}
	for _, id := range dead {
		if v, ok := batch.View().Server(id); ok && !v.Live {
			r.problem("entry %d expired tablet server %d before its lease was over", e.Index, id)
		}
	}
	if event != nil {
		r.Events++
		e.Changes = len(event.Changes)
		for _, c := range event.Changes {
			if prefixed(c.After) || prefixed(c.Before) {
				e.Prefixed++
			}
		}
	}
}

func prefixed(o catalog.Object) bool {
	kv, ok := o.(*catalog.KeyValue)
	return ok && kv != nil && len(kv.Key) >= len(watchPrefix) && kv.Key[:len(watchPrefix)] == watchPrefix
}

// isPlaceable says whether an object with one replica can be created.
func isPlaceable(s *catalog.State) bool {
	known, live := false, false
	s.Servers(func(v *catalog.Server) bool {
		known = true
		live = live || v.Live && v.Tag == catalog.NoTag
		return !live
	})
	return live || !known
}

// leases returns the servers that an ExpireServers names although their lease
// is not over on the clock of the entry.
func (r *Replay) leases(s *catalog.State, env catalog.Envelope, cmd catalog.Command) []catalog.ServerID {
	x, ok := cmd.(catalog.ExpireServers)
	if !ok {
		return nil
	}
	now := max(s.Cluster().Lease, env.Lease)
	var out []catalog.ServerID
	for _, e := range x.Servers {
		if v, ok := s.Server(e.ID); ok && v.Live && now-v.Renewed < v.TTL {
			out = append(out, e.ID)
		}
	}
	return out
}

// staleChanges returns the changes of an AdjustISR whose epochs are not the
// bucket's.
func staleChanges(s *catalog.State, cmd catalog.Command) []int {
	c, ok := cmd.(catalog.AdjustISR)
	if !ok {
		return nil
	}
	var out []int
	for i, ch := range c.Changes {
		b, _, ok := s.Bucket(ch.Bucket)
		if ok && (b.LeaderEpoch != ch.LeaderEpoch || b.BucketEpoch != ch.BucketEpoch) {
			out = append(out, i)
		}
	}
	return out
}

// sameAnswer compares what callers may rely on.
func sameAnswer(a, b catalog.Result) bool {
	return a.Code == b.Code && a.Count == b.Count && a.Epoch == b.Epoch && a.Version == b.Version && slices.Equal(a.IDs, b.IDs) &&
		slices.Equal(a.Buckets, b.Buckets) && a.Current == b.Current
}
