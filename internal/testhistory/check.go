package testhistory

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/fsm"
	"github.com/stavedb/stave/internal/testcluster"
	"github.com/stavedb/stave/snapshots"
)

// Report is what the judges say.
type Report struct {
	// Problems are violations, at most a few of each kind.
	Problems []string
	Calls, Acked, Refused,
	Unknown, Failed, Reads int
	Entries, Naive, Repeats, Resent int
	Events, WatchSteps, Watches     int
	Compacted                       int
	Hashes                          int // state hashes compared
	LogEntries                      int // entries of nodes compared with the archive's
	Snapshots                       int // snapshot files compared with the replay
	Objects, Undecided              int // porcupine
	Counts                          map[string]int
	Meters                          testcluster.Meters
}

func (r *Report) problem(format string, args ...any) {
	if len(r.Problems) < 60 {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// judge is one pass over a history.
type judge struct {
	*Report
	c    *testcluster.Cluster
	h    *History
	logs []*raft.Log
	r    *Replay
	seqs map[[2]uint64]uint64 // first entry by (client, sequence)
}

// Check judges a history. The load must have ended; the cluster is finished
// first. The error says that there was nothing to judge by.
func Check(c *testcluster.Cluster, h *History) (*Report, error) {
	if err := c.Finish(); err != nil {
		return nil, fmt.Errorf("finish cluster: %w", err)
	}
	j := &judge{Report: &Report{Counts: c.Counts(), Meters: c.Meters()}, c: c, h: h, seqs: map[[2]uint64]uint64{}}
	j.Problems = append(j.Problems, h.Errors...)
	for _, line := range c.Complaints() {
		j.problem("a node said: %s", line)
	}
	logs, err := testcluster.ReadLog(c.LogDir(testcluster.ArchiveHost), c.LogStore())
	if err != nil {
		return nil, err
	}
	j.logs = logs[:min(uint64(len(logs)), c.Applied())]
	if j.r, err = replay(j.logs, j.asks()); err != nil {
		return nil, err
	}
	j.Problems = append(j.Problems, j.r.problems...)
	j.Entries, j.Naive, j.Repeats, j.Events = len(j.r.Entries)-1, j.r.Naive, j.r.Repeats, j.r.Events
	j.Resent = h.Resent
	for i := range j.r.Entries {
		if e := &j.r.Entries[i]; e.Client != 0 {
			key := [2]uint64{uint64(e.Client), e.Sequence}
			if j.seqs[key] == 0 {
				j.seqs[key] = e.Index
			}
		}
	}
	for _, check := range []func(){j.calls, j.realTime, j.ids, j.terms, j.hashes, j.nodeLogs, j.snapshots, j.watches, j.objects} {
		check()
	}
	return j.Report, nil
}

// asks are the reads, to be compared with the state at their revision.
func (j *judge) asks() []ask {
	var out []ask
	for i := range j.h.Ops {
		op := &j.h.Ops[i]
		if op.Read == nil {
			continue
		}
		j.Reads++
		out = append(out, ask{op.Revision, func(s *catalog.State) {
			if want := look(s, op); want != *op.Read {
				j.problem("caller %d read %q at revision %d: saw %+v, the log says %+v", op.Caller, op.Object+" "+op.Read.Value, op.Revision, *op.Read, want)
			}
		}})
	}
	slices.SortStableFunc(out, func(a, b ask) int { return int(int64(a.at) - int64(b.at)) })
	return out
}

// look is what a read should have seen.
func look(s *catalog.State, op *Op) Seen {
	switch kind, name, _ := strings.Cut(op.Object, " "); {
	case kind == "kv":
		if v, ok := s.KeyValue(name); ok {
			return Seen{Version: v.Version, Value: string(v.Value)}
		}
		return Seen{}
	case kind == "layout":
		if t, ok := s.Table(name); ok {
			return Seen{Version: uint64(t.Epoch), Value: strconv.Itoa(int(t.Buckets))}
		}
		return Seen{}
	case op.Read.Value == "bank/":
		return Seen{Value: "bank/", Sum: bankSum(s)}
	}
	t, ok := s.Table(op.Read.Value)
	if !ok {
		return Seen{Value: op.Read.Value}
	}
	sum := uint64(t.Epoch)
	s.Partitions(t.ID, "", func(p *catalog.Partition) bool {
		sum = partitionSum(sum, p)
		return true
	})
	return Seen{Value: t.Path, Version: uint64(t.ID) + 1, Sum: sum}
}

// bankSum is what is in all accounts: all or nothing.
func bankSum(s *catalog.State) uint64 {
	if _, open := s.KeyValue(account(0)); open {
		return accounts * deposit
	}
	return 0
}

// calls holds every answer against its entry.
func (j *judge) calls() {
	for i := range j.h.Ops {
		op := &j.h.Ops[i]
		j.Calls++
		switch op.Fate {
		case Unknown:
			j.Unknown++
			continue
		case Failed:
			j.Failed++
			continue
		case Acked:
			j.Acked++
		}
		if op.Command == nil || op.Result.Revision == 0 {
			continue
		}
		if op.Result.Code != catalog.Done {
			j.Refused++
		}
		if uint64(op.Result.Revision) >= uint64(len(j.r.Entries)) {
			j.problem("caller %d was answered %s at revision %d, the log ends at %d: an acknowledged command is lost", op.Caller, op.Command.Kind(), op.Result.Revision, len(j.r.Entries)-1)
			continue
		}
		e := &j.r.Entries[op.Result.Revision]
		if !sameCommand(e.Command, op.Command) {
			j.problem("caller %d was answered for %+v with revision %d, where the log has %+v", op.Caller, op.Command, op.Result.Revision, e.Command)
		} else if !sameAnswer(e.Result, op.Result) {
			j.problem("caller %d was answered %+v for %s at revision %d, the log gives %+v", op.Caller, op.Result, op.Command.Kind(), e.Index, e.Result)
		}
	}
}

func sameCommand(a, b catalog.Command) bool {
	if a == nil || b == nil || a.Kind() != b.Kind() {
		return false
	}
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, errX := fsm.AppendEntry(nil, catalog.Envelope{}, a)
	y, errY := fsm.AppendEntry(nil, catalog.Envelope{}, b)
	return errX == nil && errY == nil && bytes.Equal(x, y)
}

// realTime wants revisions to follow the order in which calls did not overlap.
func (j *judge) realTime() {
	type edge struct {
		at  time.Duration
		op  *Op
		rev catalog.Revision
		end bool
	}
	var edges []edge
	for i := range j.h.Ops {
		op := &j.h.Ops[i]
		rev := op.Revision
		if op.Command != nil {
			rev = op.Result.Revision
		}
		if op.Fate == Unknown {
			rev = catalog.Revision(j.seqs[[2]uint64{uint64(op.Client), op.Sequence}])
		}
		if rev == 0 || op.Fate == Failed {
			continue
		}
		edges = append(edges, edge{op.Call, op, rev, false})
		if op.Fate == Acked {
			edges = append(edges, edge{op.Return, op, rev, true})
		}
	}
	slices.SortStableFunc(edges, func(a, b edge) int {
		if a.at != b.at {
			return int(int64(a.at) - int64(b.at))
		}
		if a.end == b.end {
			return 0
		} else if b.end { // at one moment, beginnings come first: they overlap
			return -1
		}
		return 1
	})
	floor := catalog.Revision(0)
	var by *Op
	for _, e := range edges {
		switch {
		case e.end && e.rev > floor:
			floor, by = e.rev, e.op
		case !e.end && (e.rev < floor || e.rev == floor && e.op.Command != nil):
			what := "read"
			if e.op.Command != nil {
				what = e.op.Command.Kind().String()
			}
			j.problem("caller %d began a %s at %s and got revision %d, but caller %d had been answered with %d at %s",
				e.op.Caller, what, e.at, e.rev, by.Caller, floor, by.Return)
		}
	}
}

// ids wants that no id was given to two callers, and that the log executed no
// allocation that nobody made: a write that failed changed nothing, and one that
// was sent again was executed once.
func (j *judge) ids() {
	given := map[string]map[uint64]bool{}
	made := 0
	for i := range j.h.Ops {
		op := &j.h.Ops[i]
		if _, ok := op.Command.(catalog.AllocateIDs); ok && (op.Fate == Acked ||
			op.Fate == Unknown && j.seqs[[2]uint64{uint64(op.Client), op.Sequence}] != 0) {
			made++
		}
	}
	for i := range j.r.Entries {
		if _, ok := j.r.Entries[i].Command.(catalog.AllocateIDs); ok && !j.r.Entries[i].Repeat {
			made--
		}
	}
	if made < 0 {
		j.problem("the log executed %d allocations that no caller knows of", -made)
	}
	for i := range j.h.Ops {
		op := &j.h.Ops[i]
		c, ok := op.Command.(catalog.AllocateIDs)
		if !ok || op.Fate != Acked {
			continue
		}
		if given[c.Counter] == nil {
			given[c.Counter] = map[uint64]bool{}
		}
		for _, run := range op.Result.IDs {
			for k := range run.Count {
				if given[c.Counter][run.First+k] {
					j.problem("id %d of counter %s was given twice", run.First+k, c.Counter)
				}
				given[c.Counter][run.First+k] = true
			}
		}
	}
}

// terms never fall along the log.
func (j *judge) terms() {
	for i := 2; i < len(j.r.Entries); i++ {
		if j.r.Entries[i].Term < j.r.Entries[i-1].Term {
			j.problem("entry %d has term %d, the one before %d", i, j.r.Entries[i].Term, j.r.Entries[i-1].Term)
		}
	}
}

// hashes holds what nodes reported about their states against the replay.
func (j *judge) hashes() {
	last := map[string]uint64{}
	for _, s := range j.h.Samples {
		if uint64(s.Revision) >= uint64(len(j.r.Entries)) {
			j.problem("%s was at revision %d, the log ends at %d", s.Node, s.Revision, len(j.r.Entries)-1)
			continue
		}
		j.Hashes++
		if want := j.r.Entries[s.Revision].Hash; want != s.Hash {
			j.problem("%s had hash %016x at revision %d, the log gives %016x", s.Node, s.Hash, s.Revision, want)
		}
		if s.Term < last[s.Node] {
			j.problem("%s went from term %d back to %d", s.Node, last[s.Node], s.Term)
		}
		last[s.Node] = s.Term
	}
}

// nodeLogs holds what nodes have on disk against the archive.
func (j *judge) nodeLogs() {
	for _, id := range j.c.Nodes() {
		logs, err := testcluster.ReadLog(j.c.LogDir(id), j.c.LogStore())
		if err != nil {
			j.problem("log of %s: %v", id, err)
			continue
		}
		for i, l := range logs {
			if i > 0 && l.Index != logs[i-1].Index+1 {
				j.problem("log of %s: entry %d follows %d", id, l.Index, logs[i-1].Index)
			}
			if l.Index > uint64(len(j.logs)) {
				break
			}
			j.LogEntries++
			if a := j.logs[l.Index-1]; a.Term != l.Term || a.Type != l.Type || !bytes.Equal(a.Data, l.Data) {
				j.problem("log of %s has another entry %d: term %d, the archive has term %d", id, l.Index, l.Term, a.Term)
			}
		}
	}
}

// snapshots holds the snapshot files of nodes against the replay.
func (j *judge) snapshots() {
	for _, id := range j.c.Nodes() {
		files, err := filepath.Glob(filepath.Join(j.c.SnapshotDir(id), "*", "state.bin"))
		if err != nil {
			j.problem("snapshots of %s: %v", id, err)
		}
		for _, name := range files {
			if strings.HasSuffix(filepath.Dir(name), ".tmp") {
				continue
			}
			h, err := inspect(name)
			if err != nil {
				j.problem("snapshot %s: %v", name, err)
				continue
			}
			j.Snapshots++
			if rev := uint64(h.Revision); rev < uint64(len(j.r.Entries)) && j.r.Entries[rev].Hash != h.Hash {
				j.problem("snapshot %s has hash %016x at revision %d, the log gives %016x", name, h.Hash, rev, j.r.Entries[rev].Hash)
			}
		}
	}
}

func inspect(name string) (snapshots.Header, error) {
	f, err := os.Open(name)
	if err != nil {
		return snapshots.Header{}, err
	}
	defer func() { _ = f.Close() }()
	return snapshots.Verify(f, catalog.CurrentLevel)
}

// watches holds what watchers saw against the events of the log.
func (j *judge) watches() {
	for i := range j.h.Watches {
		w := &j.h.Watches[i]
		j.Watches++
		if w.Compacted {
			j.Compacted++
		}
		next := uint64(w.From) + 1
		changes := func(k uint64) int {
			if w.Prefix {
				return j.r.Entries[k].Prefixed
			}
			return j.r.Entries[k].Changes
		}
		for _, s := range w.Steps {
			if uint64(s.Revision) >= uint64(len(j.r.Entries)) {
				j.problem("watcher %d saw revision %d, the log ends at %d", w.Watcher, s.Revision, len(j.r.Entries)-1)
				break
			}
			if uint64(s.Revision) < next && !(s.Bookmark && uint64(s.Revision) == next-1) {
				j.problem("watcher %d saw revision %d after %d", w.Watcher, s.Revision, next-1)
				break
			}
			for ; next < uint64(s.Revision); next++ {
				if changes(next) > 0 {
					j.problem("watcher %d, from %d, was not shown revision %d, and then %d", w.Watcher, w.From, next, s.Revision)
				}
			}
			want := changes(uint64(s.Revision))
			if !s.Bookmark {
				j.WatchSteps++
			}
			if !s.Bookmark && s.Changes != want || s.Bookmark && uint64(s.Revision) >= next && want > 0 {
				j.problem("watcher %d saw %d changes at revision %d, the log gives %d", w.Watcher, s.Changes, s.Revision, want)
			}
			next = max(next, uint64(s.Revision)+1)
		}
	}
}
