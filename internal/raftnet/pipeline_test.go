package raftnet

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// A pipeline whose answers nobody takes any more still ends its appends: raft's
// reader has ended and its sender has not noticed yet. Later all answers come in
// order.
func TestPipeline_NobodyTakesAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(t, 3, clusterOptions{})
		l := c.leader()
		to := raft.ServerAddress(c.others(l)[0].id)
		p, err := l.trans.AppendEntriesPipeline(raft.ServerID(to), to)
		if err != nil {
			t.Fatal(err)
		}
		const many = 20
		sent := make(chan error, many)
		go func() {
			for i := range uint64(many) {
				_, err := p.AppendEntries(&raft.AppendEntriesRequest{RPCHeader: from(l.id), PrevLogEntry: i}, &raft.AppendEntriesResponse{})
				sent <- err
			}
		}()
		for i := range many {
			select {
			case err := <-sent:
				if err != nil {
					t.Fatalf("append %d: %v", i, err)
				}
			case <-time.After(10 * time.Second):
				_ = p.Close()
				t.Fatalf("append %d waits", i)
			}
		}
		for i := range uint64(many) {
			if f := <-p.Consumer(); f.Request().PrevLogEntry != i {
				t.Fatalf("answer to %d, want %d", f.Request().PrevLogEntry, i)
			}
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
		c.close()
	})
}
