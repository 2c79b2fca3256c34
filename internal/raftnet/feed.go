package raftnet

import (
	"io"
	"math"
	"time"

	"github.com/hashicorp/raft"
)

// feed hands received messages to raft's main goroutine one at a time and so
// knows whether that goroutine is at work on one, and since when. It is the only
// reader of the inner transport's consumer channel. It never blocks on raft: a
// message waits in a queue, which holds at most one per connection because the
// inner transport waits for the answer before it reads on.
type feed struct {
	t       *Transport
	waiting []*message
	current *message // raft works on it; nil: raft is free, as far as messages go
	since   time.Time
	done    chan raft.RPCResponse // raft's answer to current
	timer   *time.Timer
}

// message is a received RPC on its way to raft.
type message struct {
	rpc       raft.RPC // as the inner transport gave it
	heartbeat *raft.AppendEntriesRequest
	snapshot  *raft.InstallSnapshotRequest
	announced bool // BeforeSnapshot was called
}

func newFeed(t *Transport) *feed {
	f := &feed{t: t, done: make(chan raft.RPCResponse, 1), timer: time.NewTimer(time.Hour)}
	f.timer.Stop()
	return f
}

func (f *feed) run() {
	defer f.timer.Stop()
	for {
		f.skipCovered()
		var out chan<- raft.RPC
		var next raft.RPC
		if f.current == nil && len(f.waiting) > 0 && !f.t.held.Load() {
			out, next = f.t.toRaft, f.offer(f.waiting[0])
		}
		select {
		case rpc := <-f.t.inner.Consumer():
			f.admit(rpc)
		case out <- next:
			f.current, f.waiting = f.waiting[0], f.waiting[1:]
			f.since = time.Now()
			f.arm()
		case resp := <-f.done:
			f.finish(resp)
		case <-f.timer.C:
			f.standIn()
			f.arm()
		case <-f.t.ctx.Done():
			return
		}
	}
}

// admit queues a message, or refuses one that must not reach raft.
func (f *feed) admit(rpc raft.RPC) {
	m := &message{rpc: rpc}
	switch req := rpc.Command.(type) {
	case *raft.AppendEntriesRequest:
		if isHeartbeat(req) {
			m.heartbeat = req
		}
		if err := vetAppend(req); err != nil {
			rpc.Respond(nil, err)
			return
		}
	case *raft.InstallSnapshotRequest:
		m.snapshot = req
	case *raft.TimeoutNowRequest:
		// Raft would skip the pre-vote and raise its term at once, although not
		// one of its requests for votes can leave.
		if f.t.silent() {
			rpc.Respond(nil, ErrNoCandidate)
			return
		}
	}
	f.waiting = append(f.waiting, m)
	if f.current != nil && time.Since(f.since) >= f.t.cfg.BusyAfter {
		f.standIn()
	}
	f.arm()
}

// skipCovered acknowledges snapshots at the head of the queue that raft is
// past.
func (f *feed) skipCovered() {
	for f.current == nil && len(f.waiting) > 0 && f.waiting[0].snapshot != nil && !f.waiting[0].announced {
		m := f.waiting[0]
		view := f.t.view.Load()
		if view == nil {
			return
		}
		follower, term, leader := (*view)()
		if !follower || term != m.snapshot.Term || leader == "" || leader != string(m.snapshot.ID) ||
			!f.t.cfg.Covered(m.snapshot.LastLogIndex, m.snapshot.LastLogTerm) {
			return
		}
		f.waiting = f.waiting[1:]
		id := []byte(f.t.LocalAddr())
		f.t.wg.Add(1)
		go func() {
			defer f.t.wg.Done()
			_, err := io.Copy(io.Discard, m.rpc.Reader) // ends with the connection, and when nothing comes
			if err == nil {
				err = f.t.cfg.AwaitSynced(f.t.ctx)
			}
			m.rpc.Respond(&raft.InstallSnapshotResponse{
				RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: id, Addr: id}, Term: term, Success: err == nil,
			}, err)
		}()
	}
}

// offer returns the message as raft gets it: answered to the feed.
func (f *feed) offer(m *message) raft.RPC {
	if m.snapshot != nil && !m.announced {
		m.announced = true
		f.t.cfg.BeforeSnapshot(m.snapshot.LastLogIndex, m.snapshot.LastLogTerm)
	}
	rpc := m.rpc
	rpc.RespChan = f.done
	return rpc
}

// finish passes raft's answer on; raft is free again.
func (f *feed) finish(resp raft.RPCResponse) {
	m := f.current
	f.current = nil
	if m.snapshot != nil {
		r, ok := resp.Response.(*raft.InstallSnapshotResponse)
		f.t.cfg.AfterSnapshot(m.snapshot.LastLogIndex, m.snapshot.LastLogTerm, ok && resp.Error == nil && r.Success)
	}
	f.respond(m, resp)
}

// respond sends raft's answer. A leader that was deposed may have entries in its
// log that its disk does not have yet. Raft takes them for stored, so an answer
// that acknowledges what the log holds waits for them.
func (f *feed) respond(m *message, resp raft.RPCResponse) {
	acknowledges := false
	switch r := resp.Response.(type) {
	case *raft.AppendEntriesResponse:
		acknowledges = r.Success
	case *raft.InstallSnapshotResponse:
		acknowledges = r.Success
	}
	if all := uint64(math.MaxUint64); !acknowledges || f.t.cfg.Synced(all) == all {
		m.rpc.Respond(resp.Response, resp.Error)
		return
	}
	f.t.wg.Add(1)
	go func() {
		defer f.t.wg.Done()
		if err := f.t.cfg.AwaitSynced(f.t.ctx); err != nil {
			resp = raft.RPCResponse{Error: err}
		}
		m.rpc.Respond(resp.Response, resp.Error)
	}()
}

// arm sets the timer if raft is busy and a heartbeat waits: for the moment raft
// has been busy long enough, and from then on at the same interval, because the
// work itself may bring raft to the heartbeat's term.
func (f *feed) arm() {
	f.timer.Stop()
	if f.current == nil {
		return
	}
	for _, m := range f.waiting {
		if m.heartbeat != nil {
			late := time.Until(f.since.Add(f.t.cfg.BusyAfter))
			if late <= 0 {
				late = f.t.cfg.BusyAfter
			}
			f.timer.Reset(late)
			return
		}
	}
}

// standIn answers the heartbeats that wait while raft is busy, if they come from
// the leader that raft follows, in its term. The answer says only that, and
// nothing of raft's state is touched: raft cannot start an election while it is
// busy, and when its work succeeds it renews its own last contact.
func (f *feed) standIn() {
	view := f.t.view.Load()
	if f.current == nil || view == nil {
		return
	}
	follower, term, leader := (*view)()
	if !follower || leader == "" {
		return
	}
	kept := f.waiting[:0]
	for _, m := range f.waiting {
		if m.heartbeat == nil || m.heartbeat.Term != term || sender(m.heartbeat) != leader || !speaksV3(m.heartbeat) {
			kept = append(kept, m)
			continue
		}
		id := []byte(f.t.LocalAddr())
		m.rpc.Respond(&raft.AppendEntriesResponse{
			RPCHeader: raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: id, Addr: id},
			Term:      term,
			Success:   true,
		}, nil)
	}
	clear(f.waiting[len(kept):])
	f.waiting = kept
}

// sender returns the node id of the leader that sent an append.
func sender(a *raft.AppendEntriesRequest) string {
	if len(a.ID) > 0 {
		return string(a.ID)
	}
	return string(a.Leader)
}

// speaksV3 reports whether raft would not refuse the append for its version.
func speaksV3(a *raft.AppendEntriesRequest) bool {
	return a.ProtocolVersion == raft.ProtocolVersionMax
}
