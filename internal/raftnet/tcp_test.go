package raftnet

import (
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/hashicorp/raft"
	"go.uber.org/goleak"
)

// Over real sockets raft messages and calls pass, and closing leaves no
// goroutine behind.
func TestTCP_LeavesNothing(t *testing.T) {
	defer goleak.VerifyNone(t, goleak.IgnoreCurrent())
	addrs := Static{}
	var ms []*Mux
	for _, id := range []string{"a", "b"} {
		m, err := Listen(MuxConfig{Addr: "127.0.0.1:0", NodeID: id, Resolver: addrs})
		if err != nil {
			t.Fatal(err)
		}
		addrs[id] = m.Addr().String()
		m.SetIdentity(testCluster, dirOf(id))
		ms = append(ms, m)
	}
	ta, tb := NewTransport(TransportConfig{Mux: ms[0]}), NewTransport(TransportConfig{Mux: ms[1]})
	pa, pb := OpenPeers(ms[0]), OpenPeers(ms[1])
	served := make(chan struct{})
	go func() {
		defer close(served)
		for range 3 {
			rpc := <-tb.Consumer()
			rpc.Respond(&raft.AppendEntriesResponse{Term: rpc.Command.(*raft.AppendEntriesRequest).Term, Success: true}, nil)
		}
	}()
	for term := range uint64(3) {
		var resp raft.AppendEntriesResponse
		err := ta.AppendEntries("b", "b", &raft.AppendEntriesRequest{RPCHeader: from("a"), Term: term + 1}, &resp)
		if err != nil || resp.Term != term+1 {
			t.Errorf("term %d: %+v, %v", term, resp, err)
		}
	}
	<-served
	var r *RemoteError
	if _, err := pa.Call(t.Context(), "b", 1, nil); !errors.As(err, &r) || r.Status != StatusNoMethod {
		t.Errorf("call: %v", err)
	}
	for _, c := range []interface{ Close() error }{ta, tb, pa, pb, ms[0], ms[1]} {
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	}
}

// A transport can be closed and opened again over the same port, as a restart of
// raft within a process does; meanwhile raft connections are refused and calls
// go on.
func TestTransport_Reopen(t *testing.T) {
	a, b := tcpPair(t)
	ta := NewTransport(TransportConfig{Mux: a.m})
	defer ta.Close()
	send := func() error {
		return ta.AppendEntries("b", "b", &raft.AppendEntriesRequest{RPCHeader: from("a"), Term: 1}, &raft.AppendEntriesResponse{})
	}
	for range 3 {
		var refused *RefusedError
		if err := send(); !errors.As(err, &refused) || refused.Code != RefusedNotReady {
			t.Fatalf("raft closed: %v", err)
		}
		if _, err := a.Call(t.Context(), "b", methodEcho, nil); err != nil {
			t.Errorf("call: %v", err)
		}
		tb := NewTransport(TransportConfig{Mux: b.m})
		go func() { rpc := <-tb.Consumer(); rpc.Respond(&raft.AppendEntriesResponse{}, nil) }()
		if err := send(); err != nil {
			t.Errorf("raft open: %v", err)
		}
		_ = tb.Close()
		_ = send() // finds the pooled connection broken
	}
}

// An append is cut behind the entry that passes the bound, never to nothing.
func TestTrim(t *testing.T) {
	entry := func(i, size int) *raft.Log { return &raft.Log{Index: uint64(i), Data: make([]byte, size)} }
	tests := []struct {
		sizes []int
		want  int
	}{
		{nil, 0},
		{[]int{5000}, 1},
		{[]int{100, 100}, 2},
		{[]int{5000, 1}, 1},
		{[]int{1000 - entryOverhead}, 1},
		{[]int{500 - entryOverhead, 500 - entryOverhead, 0}, 2},
		{[]int{0, 0, 900}, 2},
	}
	for _, tt := range tests {
		t.Run(fmt.Sprint(tt.sizes), func(t *testing.T) {
			var a raft.AppendEntriesRequest
			for i, s := range tt.sizes {
				a.Entries = append(a.Entries, entry(i, s))
			}
			all := a.Entries
			trim(&a, 1000)
			if d := cmp.Diff(all[:tt.want], a.Entries); d != "" {
				t.Error(d)
			}
		})
	}
}
