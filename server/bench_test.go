package server

import (
	"fmt"
	"testing"

	pb "github.com/stavedb/stave/api/stave/v1"
)

// BenchmarkUnary is one call over the loopback to a cluster of one node whose
// log is on a real disk.
func BenchmarkUnary(b *testing.B) {
	_, conn := loopbackNode(b)
	kv := pb.NewKVClient(conn)
	if _, err := kv.Put(b.Context(), &pb.PutRequest{Key: "k", Value: make([]byte, 100)}); err != nil {
		b.Fatal(err)
	}
	put := func(ctx *testing.PB, i int) error {
		for ctx.Next() {
			if _, err := kv.Put(b.Context(), &pb.PutRequest{Key: fmt.Sprintf("k%d", i), Value: make([]byte, 100)}); err != nil {
				return err
			}
		}
		return nil
	}
	get := func(ctx *testing.PB, _ int) error {
		for ctx.Next() {
			if _, err := kv.Get(b.Context(), &pb.GetRequest{Key: "k"}); err != nil {
				return err
			}
		}
		return nil
	}
	for _, bb := range []struct {
		name    string
		callers int
		call    func(*testing.PB, int) error
	}{{"put/1", 1, put}, {"put/256", 128, put}, {"get/1", 1, get}, {"get/256", 128, get}} {
		b.Run(bb.name, func(b *testing.B) {
			if bb.callers == 1 {
				for b.Loop() {
					one(b, kv, bb.name)
				}
				return
			}
			b.SetParallelism(bb.callers) // times the number of processors
			b.RunParallel(func(p *testing.PB) {
				if err := bb.call(p, 1); err != nil {
					b.Error(err)
				}
			})
		})
	}
}

func one(b *testing.B, kv pb.KVClient, name string) {
	b.Helper()
	var err error
	if name == "put/1" {
		_, err = kv.Put(b.Context(), &pb.PutRequest{Key: "k", Value: make([]byte, 100)})
	} else {
		_, err = kv.Get(b.Context(), &pb.GetRequest{Key: "k"})
	}
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkCommands is one batch stream with 1,024 puts on the way: what arrives
// while a batch is under way leaves with the next.
func BenchmarkCommands(b *testing.B) {
	_, conn := loopbackNode(b)
	cluster := pb.NewClusterClient(conn)
	reg, err := cluster.RegisterClient(b.Context(), &pb.RegisterClientRequest{})
	if err != nil {
		b.Fatal(err)
	}
	stream, err := cluster.Commands(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	const window = 1024
	value := make([]byte, 100)
	sent, answered := uint64(0), uint64(0)
	send := func(n int) {
		m := &pb.CommandsRequest{ClientId: reg.GetClientId(), Ack: answered}
		for range n {
			sent++
			m.Commands = append(m.Commands, &pb.SequencedCommand{Sequence: sent, Command: &pb.Command{Command: &pb.Command_Put{
				Put: &pb.PutRequest{Key: fmt.Sprintf("key-%06d", sent%100_000), Value: value},
			}}})
		}
		if err := stream.Send(m); err != nil {
			b.Fatal(err)
		}
	}
	b.ResetTimer()
	send(window)
	for answered < uint64(b.N) {
		m, err := stream.Recv()
		if err != nil {
			b.Fatal(err)
		}
		for _, o := range m.GetOutcomes() {
			if o.GetResult().GetVersion() == 0 {
				b.Fatalf("outcome %v", o)
			}
		}
		answered += uint64(len(m.GetOutcomes()))
		send(len(m.GetOutcomes()))
	}
	b.ReportMetric(float64(answered)/b.Elapsed().Seconds(), "puts/s")
}
