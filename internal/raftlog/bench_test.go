package raftlog

import (
	"fmt"
	"testing"

	"github.com/hashicorp/raft"
)

func BenchmarkStoreLogs(b *testing.B) {
	for _, kind := range kinds {
		for _, n := range []int{1, 64} {
			b.Run(fmt.Sprintf("%s/batch=%d", kind, n), func(b *testing.B) {
				s := mustOpen(b, Config{Dir: b.TempDir(), Kind: kind})
				data := make([]byte, 200)
				b.SetBytes(int64(n * len(data)))
				next := uint64(1)
				for b.Loop() {
					logs := make([]*raft.Log, n)
					for i := range logs {
						logs[i] = &raft.Log{Index: next, Term: 1, Data: data}
						next++
					}
					if err := s.Log().StoreLogs(logs); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(next-1)/b.Elapsed().Seconds(), "entries/s")
			})
		}
	}
}
