package raftlog

import (
	"bytes"
	"io"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
)

// noFSM restores anything; the tests here are about the log.
type noFSM struct{}

func (noFSM) Apply(*raft.Log) any                 { return nil }
func (noFSM) Snapshot() (raft.FSMSnapshot, error) { return noFSM{}, nil }
func (noFSM) Restore(r io.ReadCloser) error       { return r.Close() }
func (noFSM) Persist(k raft.SnapshotSink) error   { return k.Close() }
func (noFSM) Release()                            {}

// follower is one raft node that a test leads by hand.
type follower struct {
	t      testing.TB
	log    raft.LogStore
	stable raft.StableStore
	snaps  *raft.InmemSnapshotStore
	lead   *raft.InmemTransport
	raft   *raft.Raft
}

var testHeader = raft.RPCHeader{ProtocolVersion: 3, ID: []byte("lead"), Addr: []byte("lead")}

func testVoters() raft.Configuration {
	return raft.Configuration{Servers: []raft.Server{{ID: "f", Address: "f"}, {ID: "lead", Address: "lead"}, {ID: "g", Address: "g"}}}
}

func (f *follower) open() {
	f.t.Helper()
	c := raft.DefaultConfig()
	c.LocalID = "f"
	c.Logger = hclog.NewNullLogger()
	c.HeartbeatTimeout, c.ElectionTimeout = time.Hour, time.Hour
	_, own := raft.NewInmemTransport("f")
	_, f.lead = raft.NewInmemTransport("lead")
	f.lead.Connect("f", own)
	own.Connect("lead", f.lead)
	r, err := raft.NewRaft(c, noFSM{}, f.log, f.stable, f.snaps, own)
	if err != nil {
		f.t.Fatal(err)
	}
	f.raft = r
}

func (f *follower) close() {
	f.t.Helper()
	if err := f.raft.Shutdown().Error(); err != nil {
		f.t.Error(err)
	}
}

func (f *follower) install(k uint64) {
	f.t.Helper()
	var resp raft.InstallSnapshotResponse
	err := f.lead.InstallSnapshot("f", "f", &raft.InstallSnapshotRequest{
		RPCHeader: testHeader, SnapshotVersion: 1, Term: 2, Leader: []byte("lead"), LastLogIndex: k, LastLogTerm: 2,
		Configuration: raft.EncodeConfiguration(testVoters()), ConfigurationIndex: 1, Size: 1,
	}, &resp, bytes.NewReader([]byte("x")))
	if err != nil || !resp.Success {
		f.t.Fatalf("install: %v, %+v", err, resp)
	}
}

// accepts sends the entry that follows the snapshot.
func (f *follower) accepts(k uint64) bool {
	f.t.Helper()
	var resp raft.AppendEntriesResponse
	err := f.lead.AppendEntries("f", "f", &raft.AppendEntriesRequest{
		RPCHeader: testHeader, Term: 2, Leader: []byte("lead"), PrevLogEntry: k, PrevLogTerm: 2,
		Entries: []*raft.Log{{Index: k + 1, Term: 2, Data: []byte("good")}},
	}, &resp)
	if err != nil {
		f.t.Fatal(err)
	}
	return resp.Success
}

var installCases = []struct {
	name      string
	own, snap uint64 // end of the follower's own, never committed log; end of the snapshot
}{{"beyond", 20, 10}, {"at", 10, 10}, {"below", 5, 100}}

// After a snapshot install over its own tail a follower accepts appends, at the latest when raft was re-opened; a kill
// between the install and the removal of the old log changes nothing.
func TestInstall_OverOwnTail(t *testing.T) {
	onBoth(t, func(t *testing.T, kind Kind) {
		for _, tt := range installCases {
			for _, killed := range []bool{false, true} {
				name := tt.name
				if killed {
					name += ", killed before removal"
				}
				t.Run(name, func(t *testing.T) {
					c := Config{Dir: t.TempDir(), Kind: kind}
					s := mustOpen(t, c)
					mustStore(t, s, entries(1, tt.own, 1))
					before := copyDir(t, c.Dir)
					f := &follower{t: t, log: s.Log(), stable: s.Stable(), snaps: raft.NewInmemSnapshotStore()}
					if err := f.stable.SetUint64([]byte("CurrentTerm"), 1); err != nil {
						t.Fatal(err)
					}
					seedConfiguration(t, s, tt.own)
					f.open()
					f.install(tt.snap)
					if killed {
						f.close()
						mustClose(t, s)
						s = mustOpen(t, Config{Dir: before, Kind: kind})
						f.log, f.stable = s.Log(), s.Stable()
					} else if !f.accepts(tt.snap) {
						f.close()
					} else {
						f.close()
						return
					}
					if err := s.AlignWithSnapshot(tt.snap, 2); err != nil {
						t.Fatal(err)
					}
					f.open()
					defer f.close()
					if !f.accepts(tt.snap) {
						t.Fatal("append refused after re-open")
					}
					if l, err := s.Get(tt.snap + 1); err != nil || string(l.Data) != "good" || l.Term != 2 {
						t.Errorf("stored %+v, %v", l, err)
					}
				})
			}
		}
	})
}

// seedConfiguration makes entry 1 the voters, so that raft knows a cluster.
func seedConfiguration(t testing.TB, s *Stores, last uint64) {
	t.Helper()
	if err := s.Log().DeleteRange(1, last); err != nil {
		t.Fatal(err)
	}
	logs := entries(1, last, 1)
	logs[0].Type, logs[0].Data = raft.LogConfiguration, raft.EncodeConfiguration(testVoters())
	mustStore(t, s, logs)
}

// The bare library stays wedged when the follower's own log reached the snapshot: the reason for IsMonotonic.
func TestInstall_BareLibraryStaysWedged(t *testing.T) {
	for _, tt := range installCases[:2] {
		t.Run(tt.name, func(t *testing.T) {
			bare, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(t.TempDir(), "bare.db")})
			if err != nil {
				t.Fatal(err)
			}
			defer func() {
				if err := bare.Close(); err != nil {
					t.Error(err)
				}
			}()
			logs := entries(1, tt.own, 1)
			logs[0].Type, logs[0].Data = raft.LogConfiguration, raft.EncodeConfiguration(testVoters())
			if err := bare.StoreLogs(logs); err != nil {
				t.Fatal(err)
			}
			f := &follower{t: t, log: bare, stable: bare, snaps: raft.NewInmemSnapshotStore()}
			f.open()
			f.install(tt.snap)
			if f.accepts(tt.snap) {
				t.Error("the bare library accepts at once: the wrapper may no longer be needed")
			}
			f.close()
			f.open()
			if f.accepts(tt.snap) {
				t.Error("a re-open alone cures the bare library: the wrapper may no longer be needed")
			}
			f.close()
		})
	}
}
