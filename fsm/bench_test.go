package fsm

import (
	"bytes"
	"fmt"
	"io"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/snapshots"
)

// feed applies commands one after another.
type feed struct {
	t     testing.TB
	f     *FSM
	index uint64
}

func (fd *feed) log(env catalog.Envelope, cmd catalog.Command) *raft.Log {
	fd.t.Helper()
	fd.index++
	return &raft.Log{Index: fd.index, Type: raft.LogCommand, Data: mustEntry(fd.t, env, cmd)}
}

func (fd *feed) do(cmd catalog.Command) *catalog.Result {
	fd.t.Helper()
	res, ok := fd.f.Apply(fd.log(catalog.Envelope{Wall: 1_700_000_000_000, Lease: catalog.Millis(fd.index)}, cmd)).(*catalog.Result)
	if !ok {
		fd.t.Fatalf("%s has no result", cmd.Kind())
	}
	if err := res.Err(); err != nil {
		fd.t.Fatalf("%s: %v", cmd.Kind(), err)
	}
	return res
}

func spec(value string) []catalog.PartitionSpec {
	return []catalog.PartitionSpec{{{Key: "dt", Value: value}}}
}

// newShop returns a machine with a partitioned table of 4 buckets, three
// servers if asked for, and client 1.
func newShop(t testing.TB, cfg Config, servers int) *feed {
	t.Helper()
	fd := &feed{t: t, f: New(cfg)}
	fd.do(catalog.ActivateIncarnation{ClusterID: "c", Incarnation: catalog.Incarnation{Number: 1, Random: 2}, Level: 1})
	fd.do(catalog.NewTerm{Term: 1, Leader: "n1"})
	fd.do(catalog.SetLimits{Limits: catalog.Limits{Partitions: 10_000_000}})
	for i := range servers {
		fd.do(catalog.RegisterServer{ID: catalog.ServerID(i), DirectoryID: fmt.Sprint(i), Listeners: []string{fmt.Sprintf("h%d:1", i)}, TTL: 10_000})
	}
	fd.do(catalog.RegisterClient{Name: "bench"})
	fd.do(catalog.CreateDatabase{Name: "shop"})
	replication := catalog.Property{Key: "table.replication.factor", Value: "3"}
	if servers < 3 {
		replication.Value = "1"
	}
	fd.do(catalog.CreateTable{
		Table: "shop.orders", Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, Buckets: catalog.Some[int32](4), Properties: []catalog.Property{replication},
	})
	return fd
}

const benchBatch = 64

// BenchmarkApply is one CreatePartitions of one spec per entry: checksum,
// decoding, deduplication, placement, hash, event, in batches of 64.
func BenchmarkApply(b *testing.B) {
	fd := newShop(b, Config{}, 3)
	var used time.Duration
	for i := 0; i < b.N; {
		b.StopTimer()
		var batches [][]*raft.Log
		for ; i < b.N && len(batches) < 500; i += benchBatch {
			logs := make([]*raft.Log, benchBatch)
			for j := range logs {
				seq := uint64(i + j + 1)
				env := catalog.Envelope{Client: 1, Sequence: seq, Ack: max(seq, 32) - 32, Lease: 1000, Wall: 1_700_000_000_000, Actor: "bench"}
				logs[j] = fd.log(env, catalog.CreatePartitions{Table: "shop.orders", TableID: catalog.Some[catalog.TableID](0), Specs: spec(fmt.Sprintf("p%09d", i+j))})
			}
			batches = append(batches, logs)
		}
		b.StartTimer()
		from := cpuTime(b)
		for _, logs := range batches {
			out := fd.f.ApplyBatch(logs)
			if res, _ := out[0].(*catalog.Result); res.Code != catalog.Done {
				b.Fatal(res.Err())
			}
		}
		used += cpuTime(b) - from
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "entries/s")
	b.ReportMetric(float64(b.N)/used.Seconds(), "entries/cpu-s")
}

// cpuTime is what the process used of the processors, which other processes on
// the machine do not distort as they do the time on the wall.
func cpuTime(b *testing.B) time.Duration {
	b.Helper()
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}

const million = 1_000_000

// newMillion returns a machine with a million partitions of 4 buckets and how
// many bytes each of them keeps alive.
func newMillion(b *testing.B, servers int) (*feed, float64) {
	b.Helper()
	fd := newShop(b, Config{}, servers)
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	const perCommand = 1000
	for i := 0; i < million; i += perCommand {
		specs := make([]catalog.PartitionSpec, perCommand)
		for j := range specs {
			specs[j] = spec(fmt.Sprintf("p%09d", i+j))[0]
		}
		fd.do(catalog.CreatePartitions{Table: "shop.orders", Specs: specs})
	}
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&after)
	return fd, float64(after.HeapAlloc-before.HeapAlloc) / million
}

// BenchmarkMillion measures heap, snapshot, restore and point reads at a million
// partitions, not placed and placed.
func BenchmarkMillion(b *testing.B) {
	for _, tt := range []struct {
		name    string
		servers int
	}{{"unplaced", 0}, {"placed", 3}} {
		fd, perPartition := newMillion(b, tt.servers)
		s := fd.f.State()
		var file bytes.Buffer
		if err := snapshots.Write(&file, s, nil); err != nil {
			b.Fatal(err)
		}
		b.Run(tt.name+"/write", func(b *testing.B) {
			b.ReportMetric(perPartition, "heap-B/partition")
			b.ReportMetric(float64(file.Len())/million, "file-B/partition")
			for range b.N {
				if err := snapshots.Write(io.Discard, s, nil); err != nil {
					b.Fatal(err)
				}
			}
		})
		b.Run(tt.name+"/get", func(b *testing.B) {
			names := make([]string, 1024)
			for i := range names {
				names[i] = fmt.Sprintf("p%09d", i*977)
			}
			b.ReportAllocs()
			b.ResetTimer()
			from := cpuTime(b)
			for i := range b.N {
				if _, ok := s.Partition(0, names[i%len(names)]); !ok {
					b.Fatal("missing")
				}
			}
			b.ReportMetric(float64((cpuTime(b)-from).Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
		// A node restores before it has a state.
		fd, s = nil, nil
		runtime.GC()
		b.Run(tt.name+"/restore", func(b *testing.B) {
			from := cpuTime(b)
			for range b.N {
				if _, err := snapshots.Read(bytes.NewReader(file.Bytes()), catalog.CurrentLevel); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric((cpuTime(b)-from).Seconds()/float64(b.N), "cpu-s/op")
		})
	}
}

// BenchmarkRescale is RescaleTable through the machine on a table with a million
// legacy partitions.
func BenchmarkRescale(b *testing.B) {
	fd := newShop(b, Config{}, 0)
	s := fd.f.State()
	l := catalog.NewLoader()
	cl := s.Cluster()
	cl.NextPartition, cl.NextClient = million, 1
	l.Cluster(cl)
	db, _ := s.Database("shop")
	t, _ := s.Table("shop.orders")
	for _, row := range []catalog.Object{db, t} {
		if err := l.Add(row); err != nil {
			b.Fatal(err)
		}
	}
	for i := range million {
		p := &catalog.Partition{ID: catalog.PartitionID(i), Table: t.ID, Name: fmt.Sprintf("p%09d", i), Legacy: true, Imported: true}
		if err := l.Add(p); err != nil {
			b.Fatal(err)
		}
	}
	legacy, err := l.Finish(s.Revision())
	if err != nil {
		b.Fatal(err)
	}
	fd.f.state.Store(legacy)
	data := mustEntry(b, catalog.Envelope{}, catalog.RescaleTable{Table: "shop.orders", TableID: catalog.Some(t.ID), Buckets: 1})
	entries := make([]*raft.Log, b.N)
	for i := range entries {
		entries[i] = fd.log(catalog.Envelope{}, catalog.RescaleTable{Table: "shop.orders", TableID: catalog.Some(t.ID), Buckets: int32(5 + i%2)})
	}
	b.ResetTimer()
	for i, e := range entries {
		if i%64 == 0 { // a table's history is short
			fd.f.state.Store(legacy)
		}
		if res, _ := fd.f.Apply(e).(*catalog.Result); !res.Changed {
			b.Fatal(res.Err())
		}
	}
	b.ReportMetric(float64(len(data)), "entry-B")
}
