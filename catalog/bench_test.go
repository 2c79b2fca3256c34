package catalog

import "testing"

// BenchmarkApplyCreatePartitions is the path of every new partition: one spec a
// command, 4 buckets on 3 replicas, a registered client, published each 64.
func BenchmarkApplyCreatePartitions(b *testing.B) {
	s := NewState().Begin()
	rev := Revision(0)
	do := func(c Command) {
		rev++
		if r, _ := s.Apply(rev, Envelope{}, c); r.Code != Done {
			b.Fatal(r.Err())
		}
	}
	do(SetLimits{Limits: Limits{Partitions: 10_000_000}})
	do(CreateDatabase{Name: "shop"})
	for i := range ServerID(5) {
		do(RegisterServer{ID: i, DirectoryID: "d", Listeners: []string{"h:1"}, TTL: 10_000})
	}
	c := ordersTable("shop.orders", 4)
	c.Properties = []Property{replication(3)}
	do(c)
	do(RegisterClient{})
	cmds := make([]CreatePartitions, b.N)
	for i := range cmds {
		cmds[i] = CreatePartitions{Table: "shop.orders", Specs: []PartitionSpec{{{"dt", utoa(uint64(100_000_000 + i))}}}}
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range cmds {
		rev++
		r, _ := s.Apply(rev, Envelope{Client: 1, Sequence: uint64(i + 1), Ack: uint64(max(0, i-64))}, cmds[i])
		if r.Code != Done {
			b.Fatal(r.Err())
		}
		if i%64 == 63 {
			s.Publish()
		}
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "commands/s")
}

// BenchmarkRescale costs the same with a million legacy partitions as with none.
func BenchmarkRescale(b *testing.B) {
	none := NewState().Begin()
	none.Apply(1, Envelope{}, CreateDatabase{Name: "shop"})
	none.Apply(2, Envelope{}, ordersTable("shop.orders", 4))
	for name, s := range map[string]*State{"none": none.Publish(), "million": millionPartitions(b, true)} {
		b.Run(name, func(b *testing.B) {
			for i := range b.N {
				batch := s.Begin()
				r, _ := batch.Apply(s.Revision()+1, Envelope{}, RescaleTable{Table: "shop.orders", Buckets: int32(5 + i%2)})
				if r.Epoch != 1 {
					b.Fatal(r.Err())
				}
			}
		})
	}
}

// BenchmarkPartition is a point read among a million.
func BenchmarkPartition(b *testing.B) {
	s := millionPartitions(b, false)
	t, _ := s.Table("shop.orders")
	names := make([]string, 4096)
	for i := range names {
		names[i] = utoa(uint64(1_000_000 + i*7919%1_000_000))
	}
	b.ReportAllocs()
	b.ResetTimer()
	for i := range b.N {
		if _, ok := s.Partition(t.ID, names[i%len(names)]); !ok {
			b.Fatal(names[i%len(names)])
		}
	}
}

// BenchmarkCheck scans a million partitions.
func BenchmarkCheck(b *testing.B) {
	s := millionPartitions(b, false)
	b.ResetTimer()
	for range b.N {
		if err := s.Check(); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkHash is what hashing adds to a put of 200 bytes by a registered client:
// the row, the client's record and the result that is kept for it.
func BenchmarkHash(b *testing.B) {
	h := &Batch{}
	kv := &KeyValue{Key: "k00001", Value: make([]byte, 200), Version: 7, CreatedAt: 1 << 20, Revision: 1 << 21, Wall: 1_700_000_000_000}
	client := &Client{ID: 1 << 10, Name: "loader", Watermark: 1 << 20, Active: 1 << 30, ActiveAt: 1 << 21}
	result := &Result{Code: Done, Revision: 1 << 21}
	var sum uint64
	for b.Loop() {
		kv.Revision++
		sum += h.hashKeyValue(kv) + h.hashClient(client) + h.hashResult(client.ID, uint64(kv.Revision), result)
	}
	if sum == 0 {
		b.Error("no hash")
	}
}
