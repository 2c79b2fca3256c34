package catalog

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ageTable(path string, buckets int32) CreateTable {
	return CreateTable{
		Table: path, Columns: []NewColumn{{Name: "id", Type: "INT"}, {Name: "age", Type: "STRING"}},
		PartitionKeys: []string{"age"}, Buckets: Some(buckets),
	}
}

func age(v string) []PartitionSpec { return []PartitionSpec{{{"age", v}}} }

func names(s *State, id TableID, from string) []string {
	var out []string
	s.Partitions(id, from, func(p *Partition) bool {
		out = append(out, p.Name)
		return true
	})
	return out
}

// TestS20_CreateListDrop: the life of partitions, with and without the flags.
func TestS20_CreateListDrop(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	h.must(ageTable("d.t", 3))
	id := h.table("d.t").ID
	h.must(CreatePartitions{Table: "d.t", Specs: age("10")})
	eleven := h.must(CreatePartitions{Table: "d.t", Specs: age("11")})
	if d := cmp.Diff([]string{"10", "11"}, names(h.last, id, "")); d != "" {
		t.Error(d)
	}
	h.must(DropPartitions{Table: "d.t", Specs: age("10")})
	res := h.refused(ErrPartitionAlreadyExists, CreatePartitions{Table: "d.t", Specs: age("11")}, "Partition 'age=11' already exists for table d.t")
	if first, _ := eleven.FirstID(); res.Current != first {
		t.Errorf("the loser learns id %d, want %d", res.Current, first)
	}
	h.refused(ErrPartitionNotExists, DropPartitions{Table: "d.t", Specs: age("13")}, "Partition 'age=13' does not exist for table d.t")
	again := h.unchanged(CreatePartitions{Table: "d.t", Specs: age("11"), IfNotExists: true})
	if !cmp.Equal(again.IDs, eleven.IDs) || again.Count != 3 {
		t.Errorf("again: %+v, want ids %v and 3 buckets", again, eleven.IDs)
	}
	h.unchanged(DropPartitions{Table: "d.t", Specs: age("13"), IfExists: true})
	if d := cmp.Diff([]string{"11"}, names(h.last, id, "")); d != "" {
		t.Error(d)
	}
	d, ok := h.last.DroppedPartition(0)
	if !ok || d.Name != "10" || d.Buckets != 3 || d.Dropped != h.env.Wall || len(d.Pending) != 0 {
		t.Errorf("drop record: %+v, %v", d, ok)
	}
}

// TestS20_AllOrNothing: one bad spec refuses all of a command.
func TestS20_AllOrNothing(t *testing.T) {
	h := newHistory(t)
	h.orders(2)
	h.create("shop.orders", "b")
	h.refused(ErrPartitionAlreadyExists, CreatePartitions{Table: "shop.orders", Specs: dt("a", "b", "c")})
	h.refused(ErrPartitionSpecInvalid, CreatePartitions{Table: "shop.orders", Specs: dt("a", "$")})
	h.refused(ErrInvalidArgument, CreatePartitions{Table: "shop.orders", Specs: dt("a", "a")}, "given twice")
	h.refused(ErrInvalidArgument, CreatePartitions{Table: "shop.orders"}, "0 partitions")
	h.refused(ErrPartitionNotExists, DropPartitions{Table: "shop.orders", Specs: dt("b", "z")})
	if next := h.last.Cluster().NextPartition; next != 1 {
		t.Errorf("refused creations took ids up to %d", next)
	}
	res := h.must(CreatePartitions{Table: "shop.orders", Specs: dt("a", "b", "c"), IfNotExists: true})
	if d := cmp.Diff([]IDRange{{1, 1}, {0, 1}, {2, 1}}, res.IDs); d != "" {
		t.Errorf("ids in the order of the specs: -want +got\n%s", d)
	}
}

// TestS21_BadSpecs: each has the upstream code.
func TestS21_BadSpecs(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	h.must(ageTable("d.t", 1))
	h.must(plainTable("d.plain", 1))
	h.refused(ErrPartitionSpecInvalid, CreatePartitions{Table: "d.t", Specs: age("$10")}, "$10", "ASCII alphanumerics")
	h.refused(ErrPartitionSpecInvalid, CreatePartitions{Table: "d.t", Specs: age("__18")}, "__18", "reserved")
	h.refused(ErrPartitionSpecInvalid, CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{{"name", "1"}}}}, "does not contain partition key 'age'")
	h.refused(ErrPartitionSpecInvalid, CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{}}})
	h.refused(ErrTableNotPartitioned, CreatePartitions{Table: "d.plain", Specs: age("1")}, "d.plain")
	h.refused(ErrTableNotPartitioned, DropPartitions{Table: "d.plain", Specs: age("1")})
	h.refused(ErrTableNotExist, CreatePartitions{Table: "d.none", Specs: age("1")}, "d.none")
	h.refused(ErrTableNotExist, DropPartitions{Table: "d.none", Specs: age("1"), IfExists: true})
}

// TestS22_PartitionLimit: the eleventh of ten is refused, also among many
// creators, and a drop makes room.
func TestS22_PartitionLimit(t *testing.T) {
	h := newHistory(t)
	h.must(SetLimits{Limits: Limits{Partitions: 10}})
	h.orders(1)
	ok := 0
	for i := range 20 {
		if res, _ := h.try(CreatePartitions{Table: "shop.orders", Specs: dt(itoa(int64(i)))}); res.Code == Done {
			ok++
		}
	}
	if ok != 10 {
		t.Errorf("%d of 20 creators succeeded, want 10", ok)
	}
	h.refused(ErrPartitionMaxNum, CreatePartitions{Table: "shop.orders", Specs: dt("11")}, "only allow 10 partitions.")
	h.must(DropPartitions{Table: "shop.orders", Specs: dt("0")})
	h.refused(ErrPartitionMaxNum, CreatePartitions{Table: "shop.orders", Specs: dt("11", "12")})
	h.create("shop.orders", "11")
	h.unchanged(CreatePartitions{Table: "shop.orders", Specs: dt("11"), IfNotExists: true})
}

// TestS23_MultiKeyNames: values are joined in the table's key order.
func TestS23_MultiKeyNames(t *testing.T) {
	h := newHistory(t)
	h.must(CreateDatabase{Name: "d"})
	h.must(CreateTable{
		Table: "d.t", Columns: []NewColumn{{Name: "id", Type: "INT"}, {Name: "pt", Type: "STRING"}, {Name: "hour", Type: "STRING"}},
		PartitionKeys: []string{"pt", "hour"},
	})
	for _, s := range [][2]string{{"2024", "11"}, {"2025", "11"}, {"2025", "10"}, {"2026", "11"}} {
		h.must(CreatePartitions{Table: "d.t", Specs: []PartitionSpec{{{"hour", s[1]}, {"pt", s[0]}}}})
	}
	p := h.partition("d.t", "2025$11")
	if got := h.table("d.t").QualifiedName(p); got != "pt=2025/hour=11" {
		t.Errorf("display name %q", got)
	}
	if d := cmp.Diff(PartitionSpec{{"pt", "2025"}, {"hour", "11"}}, h.table("d.t").Spec(p)); d != "" {
		t.Error(d)
	}
	got := names(h.last, h.table("d.t").ID, "2025$")
	if i := slices.Index(got, "2026$11"); i != 2 {
		t.Errorf("from 2025$ on: %v", got)
	}
}

// TestS24_TypedValues: the text forms of typed values are valid names.
func TestS24_TypedValues(t *testing.T) {
	h := newHistory(t)
	h.orders(1)
	h.create("shop.orders", "2024-01-05", "03-25-45_678", "1020304050ff", "5_73", "1_0E10", "NaN", "2025-05-31-03-42-35_", "2025-05-31-03-42-35_4")
	h.refused(ErrPartitionSpecInvalid, CreatePartitions{Table: "shop.orders", Specs: dt("")}, "empty string")
}

// TestDropPartitions_IDs: an id that is not the current one of its name is as
// good as none.
func TestDropPartitions_IDs(t *testing.T) {
	h := newHistory(t)
	h.orders(1)
	h.create("shop.orders", "a", "b")
	h.must(ordersTable("shop.other", 1))
	h.create("shop.other", "x")
	h.refused(ErrPartitionNotExists, DropPartitions{Table: "shop.orders", Specs: dt("a"), IDs: []PartitionID{1}}, "dt=a", "id 1")
	h.refused(ErrPartitionNotExists, DropPartitions{Table: "shop.orders", IDs: []PartitionID{2}})
	h.refused(ErrInvalidArgument, DropPartitions{Table: "shop.orders", Specs: dt("a", "b"), IDs: []PartitionID{0}})
	h.refused(ErrInvalidArgument, DropPartitions{Table: "shop.orders"})
	h.unchanged(DropPartitions{Table: "shop.orders", Specs: dt("a"), IDs: []PartitionID{7}, IfExists: true})
	res := h.must(DropPartitions{Table: "shop.orders", IDs: []PartitionID{1, 0, 1}})
	if d := cmp.Diff([]IDRange{{1, 1}, {0, 1}}, res.IDs); d != "" {
		t.Error(d)
	}
	h.create("shop.orders", "a")
	h.refused(ErrPartitionNotExists, DropPartitions{Table: "shop.orders", Specs: dt("a"), IDs: []PartitionID{0}})
	h.must(DropPartitions{Table: "shop.orders", Specs: dt("a"), IDs: []PartitionID{3}})
}
