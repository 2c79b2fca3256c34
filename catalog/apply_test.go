package catalog

import "testing"

// TestApply_RescaleThenCreate proves the one sentence everything else serves.
func TestApply_RescaleThenCreate(t *testing.T) {
	b := NewState().Begin()
	rev := Revision(0)
	do := func(c Command) Result {
		t.Helper()
		rev++
		r, _ := b.Apply(rev, Envelope{Wall: 1000}, c)
		if err := r.Err(); err != nil {
			t.Fatalf("%s: %v", c.Kind(), err)
		}
		if err := b.Publish().Check(); err != nil {
			t.Fatalf("after %s: %v", c.Kind(), err)
		}
		return r
	}
	do(CreateDatabase{Name: "shop"})
	do(CreateTable{
		Table: "shop.orders", Columns: []NewColumn{{Name: "a", Type: "INT"}, {Name: "dt", Type: "STRING"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, Buckets: Some[int32](2),
	})
	spec := func(v string) []PartitionSpec { return []PartitionSpec{{{"dt", v}}} }
	do(CreatePartitions{Table: "shop.orders", Specs: spec("p1")})
	do(RescaleTable{Table: "shop.orders", Buckets: 4})
	do(CreatePartitions{Table: "shop.orders", Specs: spec("p2")})
	if r := do(RescaleTable{Table: "shop.orders", Buckets: 3}); r.Epoch != 2 {
		t.Errorf("epoch after two rescales = %d, want 2", r.Epoch)
	}
	do(CreatePartitions{Table: "shop.orders", Specs: spec("p3")})
	s := b.Publish()
	table, _ := s.Table("shop.orders")
	for name, want := range map[string]int32{"p1": 2, "p2": 4, "p3": 3} {
		p, ok := s.Partition(table.ID, name)
		if !ok {
			t.Fatalf("partition %s is missing", name)
		}
		if got, err := EffectiveCount(table, p); got != want || err != nil {
			t.Errorf("effective count of %s = %d, %v, want %d", name, got, err, want)
		}
	}
}
