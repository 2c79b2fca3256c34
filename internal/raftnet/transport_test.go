package raftnet

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
)

// The wrapper has exactly the optional interfaces of raft's network transport.
func TestTransport_OptionalInterfaces(t *testing.T) {
	probe := func(v any) map[string]bool {
		_, prevote := v.(raft.WithPreVote)
		_, closes := v.(raft.WithClose)
		_, peers := v.(raft.WithPeers)
		_, loop := v.(raft.LoopbackTransport)
		return map[string]bool{"prevote": prevote, "close": closes, "peers": peers, "loopback": loop}
	}
	if d := cmp.Diff(probe((*raft.NetworkTransport)(nil)), probe((*Transport)(nil))); d != "" {
		t.Error(d)
	}
}

// Three nodes elect, go on without a cut leader, and agree after the heal; a
// node that was cut off does not disturb with a higher term, because its
// pre-votes pass the wrapper and are refused.
func TestTransport_Cluster_CutLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, clusterOptions{})
		old := c.leader()
		c.isolate(old)
		l := c.leader(c.others(old)...)
		for i := range 50 {
			if err := l.raft.Apply(fmt.Appendf(nil, "w%d", i), time.Second).Error(); err != nil {
				t.Fatal(err)
			}
		}
		term := l.raft.CurrentTerm()
		time.Sleep(30 * time.Second)
		c.net.HealAll()
		await(t, "old leader follows", func() bool { return old.raft.AppliedIndex() >= l.raft.AppliedIndex() })
		if got := l.raft.CurrentTerm(); got != term || l.raft.State() != raft.Leader {
			t.Errorf("after the heal term %d state %v, want term %d and Leader", got, l.raft.State(), term)
		}
		for _, n := range c.nodes {
			await(t, n.id+" agrees", func() bool { return cmp.Equal(n.fsm.list(), l.fsm.list()) })
		}
		c.close()
	})
}

// ask695 repeats one pattern: a heartbeat of the next term reaches the leader,
// and a client write is submitted to it at once. It returns how often the
// ex-leader stored the write under a term it never won.
func ask695(t *testing.T, rounds int, unwrapped bool) (violations, tries int) {
	c := newCluster(t, 3, clusterOptions{unwrapped: unwrapped})
	probe := c.sender("probe")
	for range rounds {
		l := c.leader()
		term := l.raft.CurrentTerm()
		other := c.others(l)[0].id
		req := &raft.AppendEntriesRequest{RPCHeader: from(other), Term: term + 1, Leader: []byte(other)}
		var resp raft.AppendEntriesResponse
		if err := probe.AppendEntries(raft.ServerID(l.id), raft.ServerAddress(l.id), req, &resp); err != nil {
			t.Fatal(err)
		}
		tries++
		_ = l.raft.Apply([]byte("client-write"), time.Second).Error()
		last, _ := l.log.LastIndex()
		var e raft.Log
		if err := l.log.GetLog(last, &e); err == nil && e.Term == term+1 && string(e.Data) == "client-write" {
			violations++
		}
	}
	_ = probe.Close()
	c.close()
	return violations, tries
}

// A heartbeat of a higher term never changes term or role beside raft's main
// goroutine, so no entry is stored under a term its writer did not win. The
// library alone shows the fault in this very pattern.
func TestTransport_HeartbeatOfHigherTerm(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		v, n := ask695(t, 5, true)
		t.Logf("unwrapped: %d violations in %d tries", v, n)
		if v == 0 {
			t.Error("the unwrapped library shows no violation: the pattern no longer tests anything")
		}
	})
	synctest.Test(t, func(t *testing.T) {
		v, n := ask695(t, 100, false)
		t.Logf("wrapped: %d violations in %d tries", v, n)
		if v > 0 || n != 100 {
			t.Errorf("%d violations in %d tries, want 0 in 100", v, n)
		}
	})
}

// A follower never commits entries beyond what an append has verified. The
// library alone applies its own diverging tail.
func TestTransport_ClampsCommitIndex(t *testing.T) {
	for _, unwrapped := range []bool{true, false} {
		for _, pipelined := range []bool{false, true} {
			t.Run(fmt.Sprintf("unwrapped=%v/pipelined=%v", unwrapped, pipelined), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					applied := applyDiverging(t, unwrapped, pipelined)
					bad := 0
					for _, d := range applied {
						if d == "DIVERGED" {
							bad++
						}
					}
					if want := map[bool]int{true: 5, false: 0}[unwrapped]; bad != want {
						t.Errorf("%d never committed entries applied, want %d: %q", bad, want, applied)
					}
					if len(applied) != 9+bad {
						t.Errorf("applied %q, want the 9 common entries", applied)
					}
				})
			})
		}
	}
}

// applyDiverging gives a follower whose entries 11 to 20 diverge an append
// without entries at 10 with commit index 15, and returns what it applied.
func applyDiverging(t *testing.T, unwrapped, pipelined bool) []string {
	c := newCluster(t, 1, clusterOptions{unwrapped: unwrapped, raft: func(conf *raft.Config) {
		conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = time.Hour, time.Hour, time.Hour
	}})
	l := c.sender("l")
	send := func(q *raft.AppendEntriesRequest) {
		q.RPCHeader, q.Leader = from("l"), []byte("l")
		var resp raft.AppendEntriesResponse
		if !pipelined {
			if err := l.AppendEntries("n1", "n1", q, &resp); err != nil || !resp.Success {
				t.Fatal(err, resp)
			}
			return
		}
		p, err := l.AppendEntriesPipeline("n1", "n1")
		if err != nil {
			t.Fatal(err)
		}
		defer p.Close()
		if _, err := p.AppendEntries(q, &resp); err != nil {
			t.Fatal(err)
		}
		if f := <-p.Consumer(); f.Error() != nil || !f.Response().Success {
			t.Fatal(f.Error(), f.Response())
		}
	}
	var common, own []*raft.Log
	for i := uint64(2); i <= 20; i++ {
		e := &raft.Log{Index: i, Term: 2, Type: raft.LogCommand, Data: []byte("common")}
		if common = append(common, e); i > 10 {
			e.Term, e.Data = 3, []byte("DIVERGED")
			own, common = append(own, e), common[:9]
		}
	}
	send(&raft.AppendEntriesRequest{Term: 2, PrevLogEntry: 1, PrevLogTerm: 1, Entries: common})
	send(&raft.AppendEntriesRequest{Term: 3, PrevLogEntry: 10, PrevLogTerm: 2, Entries: own})
	send(&raft.AppendEntriesRequest{Term: 4, PrevLogEntry: 10, PrevLogTerm: 2, LeaderCommitIndex: 15})
	time.Sleep(time.Second)
	_ = l.Close()
	c.close()
	return c.nodes[0].fsm.list()
}

// An append that would stop the process or break the log is refused; the
// follower lives on.
func TestTransport_RefusesHostileAppends(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, clusterOptions{})
		l := c.sender("l")
		tests := map[string][]*raft.Log{
			"nil entry":         {nil},
			"gap":               {{Index: 3, Term: 2}},
			"bad configuration": {{Index: 2, Term: 2, Type: raft.LogConfiguration, Data: []byte("\xc1nonsense")}},
		}
		for name, entries := range tests {
			q := &raft.AppendEntriesRequest{RPCHeader: from("l"), Term: 99, PrevLogEntry: 1, PrevLogTerm: 1, Entries: entries}
			var resp raft.AppendEntriesResponse
			if err := l.AppendEntries("n1", "n1", q, &resp); err == nil {
				t.Errorf("%s: accepted: %+v", name, resp)
			}
		}
		is := &raft.InstallSnapshotRequest{
			RPCHeader: from("l"), SnapshotVersion: 1, Term: 99, LastLogIndex: 9, LastLogTerm: 9,
			Configuration: []byte("\xc1nonsense"), Size: 1,
		}
		if err := l.InstallSnapshot("n1", "n1", is, &raft.InstallSnapshotResponse{}, bytes.NewReader([]byte{1})); err == nil {
			t.Error("snapshot with a bad configuration: accepted")
		}
		if got := c.leader().raft.CurrentTerm(); got >= 99 {
			t.Errorf("term %d came from a refused message", got)
		}
		_ = l.Close()
		c.close()
	})
}

// A follower busy in an append for long keeps its leader: heartbeats are
// answered on its behalf, nobody starts an election. Without the view, the rule
// is off and the leader is lost: that is what the rule is for.
func TestTransport_BusyFollower(t *testing.T) {
	for _, on := range []bool{true, false} {
		t.Run(fmt.Sprintf("standIn=%v", on), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := newCluster(t, 3, clusterOptions{})
				l := c.leader()
				busy, gone := c.others(l)[0], c.others(l)[1]
				if !on {
					busy.trans.SetView(func() (bool, uint64, string) { return false, 0, "" })
				}
				time.Sleep(2 * time.Second)
				term := l.raft.CurrentTerm()
				c.isolate(gone)
				busy.log.setHold(20 * time.Second)
				lost := false
				f := l.raft.Apply([]byte("slow"), time.Second)
				for end := time.Now().Add(18 * time.Second); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
					lost = lost || l.raft.State() != raft.Leader
				}
				busy.log.setHold(0)
				if lost == on {
					t.Errorf("leader lost: %v, with answers on behalf of the busy follower: %v", lost, on)
				}
				if on {
					if err := f.Error(); err != nil {
						t.Errorf("slow write: %v", err)
					}
					time.Sleep(5 * time.Second)
					if got := l.raft.CurrentTerm(); got != term || l.raft.State() != raft.Leader {
						t.Errorf("term %d, state %v, want term %d and Leader", got, l.raft.State(), term)
					}
				}
				c.close()
			})
		})
	}
}

// The answer on behalf of a busy follower is given for its term and leader only.
func TestTransport_BusyFollower_OtherTermOrLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 1, clusterOptions{raft: func(conf *raft.Config) {
			conf.HeartbeatTimeout, conf.ElectionTimeout, conf.LeaderLeaseTimeout = time.Hour, time.Hour, time.Hour
		}})
		f := c.nodes[0]
		l := c.sender("l")
		heartbeat := func(term uint64, leader string) (time.Duration, raft.AppendEntriesResponse, error) {
			start := time.Now()
			q := &raft.AppendEntriesRequest{RPCHeader: from(leader), Term: term, Leader: []byte(leader)}
			var resp raft.AppendEntriesResponse
			err := l.AppendEntries("n1", "n1", q, &resp)
			return time.Since(start), resp, err
		}
		if _, resp, err := heartbeat(5, "l"); err != nil || !resp.Success {
			t.Fatal(resp, err)
		}
		f.log.setHold(1500 * time.Millisecond)
		var slow raft.AppendEntriesResponse
		done := make(chan error)
		go func() {
			done <- l.AppendEntries("n1", "n1", &raft.AppendEntriesRequest{
				RPCHeader: from("l"), Term: 5, Leader: []byte("l"), PrevLogEntry: 1, PrevLogTerm: 1,
				Entries: []*raft.Log{{Index: 2, Term: 5, Type: raft.LogCommand}},
			}, &slow)
		}()
		time.Sleep(time.Millisecond)
		before := f.raft.LastContact()
		d, resp, err := heartbeat(5, "l")
		if err != nil || !resp.Success || resp.Term != 5 || d < 15*time.Millisecond || d > 30*time.Millisecond {
			t.Errorf("own leader: %+v, %v after %v", resp, err, d)
		}
		if d, resp, err = heartbeat(5, "l"); err != nil || !resp.Success || d > time.Millisecond {
			t.Errorf("own leader, busy for long: %+v, %v after %v", resp, err, d)
		}
		if f.raft.LastContact() != before || f.raft.CurrentTerm() != 5 {
			t.Error("an answer on raft's behalf changed raft's state")
		}
		go func() {
			_, resp, err := heartbeat(4, "l")
			if err == nil && resp.Success {
				err = errors.New("older term: success")
			}
			done <- err
		}()
		go func() {
			d, resp, err := heartbeat(6, "l2")
			if err == nil && (!resp.Success || d < time.Second) {
				err = fmt.Errorf("newer term: %+v after %v", resp, d)
			}
			done <- err
		}()
		time.Sleep(500 * time.Millisecond)
		if got := f.raft.CurrentTerm(); got != 5 {
			t.Errorf("term %d while raft is busy in term 5", got)
		}
		for range 3 {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if !slow.Success || f.raft.CurrentTerm() != 6 {
			t.Errorf("append %+v, then term %d", slow, f.raft.CurrentTerm())
		}
		_ = l.Close()
		c.close()
	})
}

// With its gate closed a leader sends nothing, open pipelines included: it is
// replaced, every call fails at once, and it takes part again when it opens.
func TestTransport_Gate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, clusterOptions{})
		l := c.leader()
		to := raft.ServerAddress(c.others(l)[0].id)
		p, err := l.trans.AppendEntriesPipeline(raft.ServerID(to), to)
		if err != nil {
			t.Fatal(err)
		}
		l.trans.SetGate(true)
		start := time.Now()
		calls := map[string]func() error{
			"append":   func() error { return l.trans.AppendEntries("", to, &raft.AppendEntriesRequest{}, nil) },
			"vote":     func() error { return l.trans.RequestVote("", to, &raft.RequestVoteRequest{}, nil) },
			"pre-vote": func() error { return l.trans.RequestPreVote("", to, &raft.RequestPreVoteRequest{}, nil) },
			"timeout":  func() error { return l.trans.TimeoutNow("", to, &raft.TimeoutNowRequest{}, nil) },
			"snapshot": func() error {
				return l.trans.InstallSnapshot("", to, &raft.InstallSnapshotRequest{}, nil, bytes.NewReader(nil))
			},
			"pipeline":      func() error { _, err := l.trans.AppendEntriesPipeline("", to); return err },
			"open pipeline": func() error { _, err := p.AppendEntries(&raft.AppendEntriesRequest{}, nil); return err },
		}
		for name, call := range calls {
			if err := call(); !errors.Is(err, ErrGated) {
				t.Errorf("%s: %v", name, err)
			}
		}
		if d := time.Since(start); d != 0 {
			t.Errorf("calls took %v", d)
		}
		_ = p.Close()
		next := c.leader(c.others(l)...)
		if d := time.Since(start); d > 5*time.Second {
			t.Errorf("another leader after %v", d)
		}
		time.Sleep(10 * time.Second)
		if next.raft.State() != raft.Leader {
			t.Error("the gated node disturbed the new leader")
		}
		l.trans.SetGate(false)
		await(t, "gated node follows", func() bool { return l.raft.AppliedIndex() >= next.raft.AppliedIndex() })
		c.close()
	})
}

// A call that waits for its answer ends with ErrGated when the gate closes.
func TestTransport_Gate_CallInFlight(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, clusterOptions{})
		l := c.leader()
		o := c.others(l)[0]
		dialling := c.others(l)[1]
		c.net.Cut(o.id, l.id)
		c.net.Cut(dialling.id, l.id)
		time.AfterFunc(100*time.Millisecond, func() { l.trans.SetGate(true) })
		start := time.Now()
		done := make(chan error)
		for _, to := range []string{o.id, dialling.id} {
			go func() {
				done <- l.trans.RequestVote(raft.ServerID(to), raft.ServerAddress(to), &raft.RequestVoteRequest{}, &raft.RequestVoteResponse{})
			}()
		}
		for range 2 {
			if err := <-done; !errors.Is(err, ErrGated) || time.Since(start) != 100*time.Millisecond {
				t.Errorf("%v after %v", err, time.Since(start))
			}
		}
		c.net.HealAll()
		l.trans.SetGate(false)
		c.close()
	})
}

// The owner hears of every snapshot before and after raft installs it, and a
// long append is cut into pieces that arrive in order.
func TestTransport_SnapshotAndTrim(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		heard := make(chan string, 16)
		c := newCluster(t, 3, clusterOptions{
			raft: func(conf *raft.Config) { conf.TrailingLogs = 5 },
			transport: func(n *node, tc *TransportConfig) {
				tc.MaxAppend, tc.MaxMessage = 1000, 4096 // an append that is not cut cannot arrive
				tc.BeforeSnapshot = func(index, term uint64) { heard <- fmt.Sprint(n.id, " before ", index, " ", term) }
				tc.AfterSnapshot = func(index, term uint64, ok bool) { heard <- fmt.Sprint(n.id, " after ", index, " ", term, " ", ok) }
			},
		})
		l := c.leader()
		behind := c.others(l)[0]
		c.isolate(behind)
		write := func(k int) {
			var fs []raft.ApplyFuture
			for i := range k {
				fs = append(fs, l.raft.Apply(fmt.Appendf(nil, "%0*d", 400, i), time.Second))
			}
			for _, f := range fs {
				if err := f.Error(); err != nil {
					t.Fatal(err)
				}
			}
		}
		write(100)
		s := l.raft.Snapshot()
		if err := s.Error(); err != nil {
			t.Fatal(err)
		}
		meta, r, err := s.Open()
		if err != nil {
			t.Fatal(err)
		}
		_ = r.Close()
		write(100)
		c.net.HealAll()
		await(t, "catch up", func() bool { return behind.raft.AppliedIndex() == l.raft.AppliedIndex() })
		for _, want := range []string{
			fmt.Sprint(behind.id, " before ", meta.Index, " ", meta.Term),
			fmt.Sprint(behind.id, " after ", meta.Index, " ", meta.Term, " true"),
		} {
			select {
			case got := <-heard:
				if got != want {
					t.Errorf("heard %q, want %q", got, want)
				}
			default:
				t.Errorf("not heard: %q", want)
			}
		}
		tail := l.fsm.list()
		if got := behind.fsm.list(); len(got) < 100 || !cmp.Equal(got[len(got)-100:], tail[len(tail)-100:]) {
			t.Error("the entries after the snapshot differ")
		}
		c.close()
	})
}
