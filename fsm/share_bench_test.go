package fsm

import (
	"bytes"
	"fmt"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
)

// BenchmarkPut is one put of 200 bytes per entry, with and without
// deduplication, in batches of 64; "checksum" is the check of such an entry
// alone. The differences are what each costs.
func BenchmarkPut(b *testing.B) {
	value := bytes.Repeat([]byte("v"), 200)
	for _, client := range []catalog.ClientID{0, 1} {
		b.Run(fmt.Sprintf("deduplicated=%t", client != 0), func(b *testing.B) {
			fd := newShop(b, Config{}, 0)
			var used time.Duration
			for i := 0; i < b.N; {
				b.StopTimer()
				var batches [][]*raft.Log
				for ; i < b.N && len(batches) < 500; i += benchBatch {
					logs := make([]*raft.Log, benchBatch)
					for j := range logs {
						env := catalog.Envelope{Lease: 1000, Wall: 1_700_000_000_000}
						if client != 0 {
							seq := uint64(i + j + 1)
							env.Client, env.Sequence, env.Ack = client, seq, max(seq, 32)-32
						}
						logs[j] = fd.log(env, catalog.PutKV{Key: fmt.Sprintf("k%05d", (i+j)%10_000), Value: value})
					}
					batches = append(batches, logs)
				}
				b.StartTimer()
				from := cpuTime(b)
				for _, logs := range batches {
					fd.f.ApplyBatch(logs)
				}
				used += cpuTime(b) - from
			}
			b.ReportMetric(float64(used.Nanoseconds())/float64(b.N), "cpu-ns/op")
		})
	}
	b.Run("checksum", func(b *testing.B) {
		entry := mustEntry(b, catalog.Envelope{Client: 1, Sequence: 1}, catalog.PutKV{Key: "k00001", Value: value})
		for b.Loop() {
			if err := VerifyEntry(entry); err != nil {
				b.Fatal(err)
			}
		}
	})
}
