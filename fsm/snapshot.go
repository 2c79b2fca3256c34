package fsm

import (
	"fmt"
	"io"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/snapshots"
)

// capture is a state with its history; both are immutable.
type capture struct {
	state   *catalog.State
	history []*catalog.Event
}

// Snapshot captures the state, whose revision is the machine's index. A stopped
// machine gives its *StopError. While raft repeats a log that the state has
// already, it is ErrRepeating: raft would write the snapshot under an index
// below its content.
func (f *FSM) Snapshot() (raft.FSMSnapshot, error) {
	if err := f.Err(); err != nil {
		return nil, err
	}
	if index := f.index.Load(); f.handed < index {
		return nil, fmt.Errorf("%w: at %d of %d", ErrRepeating, f.handed, index)
	}
	c := &capture{state: f.State()}
	if f.cfg.Publisher != nil {
		c.history = f.cfg.Publisher.Tail(HistoryRevisions, HistoryBytes)
	}
	return c, nil
}

// Persist writes the snapshot and closes the sink. It cancels the sink only
// when it returns the error of writing: a cancelled sink deletes what was
// written, and raft compacts its log after a success.
func (c *capture) Persist(sink raft.SnapshotSink) error {
	if err := snapshots.Write(sink, c.state, c.history); err != nil {
		if cancel := sink.Cancel(); cancel != nil {
			return fmt.Errorf("persist snapshot: %w, cancel: %w", err, cancel)
		}
		return fmt.Errorf("persist snapshot: %w", err)
	}
	if err := sink.Close(); err != nil {
		return fmt.Errorf("close snapshot: %w", err)
	}
	return nil
}

// Release implements raft.FSMSnapshot.
func (c *capture) Release() {}

// Restore replaces state and index by those of a snapshot. Nothing is changed
// before all of it was read and verified, and nothing if it returns an error:
// one of snapshots.Read, or ErrRestoreAhead. It does not return on a machine
// that stopped.
//
// A source that has SnapshotIndex() uint64, itself or inside what raft wraps it
// in, tells the index of the snapshot's meta, which becomes the machine's index;
// otherwise the content's revision does. A machine that is there already, in
// the same incarnation, stays as it is: raft restores its newest
// snapshot whenever it opens, and neither readers nor watchers may go back.
func (f *FSM) Restore(source io.ReadCloser) error {
	if f.stopped.Load() != nil {
		f.hold()
	}
	s, err := snapshots.Read(source, f.cfg.MaxLevel)
	if err != nil {
		return fmt.Errorf("restore snapshot: %w", err)
	}
	state := s.State
	if meta := catalog.Revision(metaIndex(source)); meta != 0 && meta < s.Header.Revision {
		return fmt.Errorf("restore snapshot: %w: revision %d above index %d", ErrRestoreAhead, s.Header.Revision, meta)
	} else if meta > s.Header.Revision {
		b := state.Begin()
		b.Advance(meta)
		state = b.Publish()
	}
	f.handed = uint64(state.Revision())
	own := f.State().Incarnation()
	if f.Index() >= f.handed && own == state.Incarnation() {
		return nil
	}
	if state.Incarnation() != own {
		f.forgetMarkers()
	}
	f.state.Store(state)
	f.index.Store(f.handed)
	f.waiters.publish(f.handed)
	if f.cfg.Publisher != nil {
		f.cfg.Publisher.Reset(state.Incarnation(), state.Revision(), s.History)
	}
	return nil
}

// metaIndex finds the index of a snapshot's meta behind raft's wrappers, 0 if
// nobody tells.
func metaIndex(source io.ReadCloser) uint64 {
	for source != nil {
		if s, ok := source.(interface{ SnapshotIndex() uint64 }); ok {
			return s.SnapshotIndex()
		}
		w, ok := source.(raft.ReadCloserWrapper)
		if !ok {
			return 0
		}
		source = w.WrappedReadCloser()
	}
	return 0
}

func (f *FSM) forgetMarkers() {
	f.markers.Lock()
	defer f.markers.Unlock()
	f.markers.ring = [keptMarkers]marker{}
	f.markers.next = 0
}
