package raftnet

import (
	"context"
	"math"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// A node whose disk does not have all of its log yet acknowledges none of it to a
// leader, new entries or not; it votes and refuses at once. Its own appends tell
// no commit index beyond its disk.
func TestTransport_AcknowledgesWhatIsSynced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var limit atomic.Uint64 // what the disk of n1 has
		limit.Store(math.MaxUint64)
		synced := make(chan struct{})
		c := newCluster(t, 3, clusterOptions{transport: func(n *node, cfg *TransportConfig) {
			if n.id != "n1" {
				return
			}
			cfg.Synced = func(i uint64) uint64 { return min(i, limit.Load()) }
			cfg.AwaitSynced = func(ctx context.Context) error {
				select {
				case <-synced:
					return nil
				case <-ctx.Done():
					return ctx.Err()
				}
			}
		}})
		n1 := c.nodes[0]
		want := c.leader().raft.AppliedIndex()
		await(t, "n1 has it", func() bool { return n1.raft.AppliedIndex() >= want })
		c.isolate(n1)
		c.net.Heal("probe", "n1")
		limit.Store(1)

		last := n1.raft.LastIndex()
		var l raft.Log
		if err := n1.log.GetLog(last, &l); err != nil {
			t.Fatal(err)
		}
		probe := c.sender("probe")
		term := n1.raft.CurrentTerm() + 5
		var vote raft.RequestVoteResponse
		req := &raft.RequestVoteRequest{RPCHeader: from("n2"), Term: term, LastLogIndex: last, LastLogTerm: l.Term}
		if err := probe.RequestVote("n1", "n1", req, &vote); err != nil {
			t.Errorf("a vote waits for the disk: %v", err)
		}
		answer := make(chan error, 1)
		var resp raft.AppendEntriesResponse
		go func() {
			answer <- probe.AppendEntries("n1", "n1", &raft.AppendEntriesRequest{
				RPCHeader: from("n2"), Term: term, Leader: []byte("n2"), PrevLogEntry: last, PrevLogTerm: l.Term,
			}, &resp)
		}()
		time.Sleep(time.Second)
		if len(answer) != 0 {
			t.Error("acknowledged what is not on the disk")
		}
		var refusal raft.AppendEntriesResponse
		if err := probe.AppendEntries("n1", "n1", &raft.AppendEntriesRequest{
			RPCHeader: from("n2"), Term: term, Leader: []byte("n2"), PrevLogEntry: last + 7, PrevLogTerm: term,
		}, &refusal); err != nil || refusal.Success {
			t.Errorf("a refusal waits for the disk: %v, %v", refusal.Success, err)
		}
		close(synced)
		if err := <-answer; err != nil || !resp.Success {
			t.Errorf("after the disk has it: %v, %v", resp.Success, err)
		}
		args := &raft.AppendEntriesRequest{LeaderCommitIndex: last}
		if n1.trans.prepare(args); args.LeaderCommitIndex != 1 {
			t.Errorf("commit index %d is told, want 1", args.LeaderCommitIndex)
		}
		_ = probe.Close()
		c.close()
	})
}
