package testsample

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/catalog"
)

func millis(t time.Time) catalog.Millis { return catalog.Millis(t.UnixMilli()) }

// start is before the first partition of any table.
func start() time.Time { return lastDay.AddDate(0, 0, -daily.days-7) }

// first is the day of a table's first partition.
func (s spec) first() time.Time { return lastDay.AddDate(0, 0, 1-s.shape.days) }

// epochAt returns the layout epoch on a day: the last two thirds of a table's
// life are parted evenly between its epochs. The first third is legacy.
func (s spec) epochAt(day int) (epoch int, legacy bool) {
	third := s.shape.days / 3
	if day < third {
		return 0, true
	}
	return (day - third) * len(s.buckets) / (s.shape.days - third), false
}

// rescaledAt is the day on which an epoch above 0 began.
func (s spec) rescaledAt(epoch int) int {
	day := 0
	for e := 0; e < epoch; day++ {
		e, _ = s.epochAt(day + 1)
	}
	return day
}

// table returns the row of a table; i is its id.
func (s spec) table(i int) catalog.Table {
	created := millis(start().Add(time.Duration(i) * time.Hour))
	last := len(s.buckets) - 1
	t := catalog.Table{
		ID: catalog.TableID(i), Path: s.path, PrimaryKey: s.primary, PartitionKeys: s.shape.keys, BucketKeys: s.bucketKeys(),
		Buckets: s.buckets[last], Epoch: catalog.Epoch(last), Replication: 3, Created: created, Wall: created,
		CustomProperties: []catalog.Property{{Key: "owner", Value: s.owner}},
	}
	if s.primary != nil {
		t.Properties = []catalog.Property{{Key: catalog.PropKVFormatVersion, Value: "2"}}
	}
	t.Properties = append(t.Properties, catalog.Property{Key: catalog.PropReplication, Value: "3"})
	for e, n := range s.buckets {
		at := created
		if e > 0 {
			at = millis(s.first().AddDate(0, 0, s.rescaledAt(e)))
		}
		t.History = append(t.History, catalog.LayoutEntry{Epoch: catalog.Epoch(e), Buckets: n, Wall: at})
		t.Wall = at
	}
	if last > 0 {
		t.LegacyCount = catalog.Some(s.buckets[0])
	}
	t.Schemas = []catalog.Schema{{ID: 1, Columns: s.schema()}}
	t.NextColumn = catalog.ColumnID(len(s.columns))
	return t
}

func (s spec) schema() []catalog.Column {
	out := make([]catalog.Column, len(s.columns))
	for i, c := range s.columns {
		name, typ, _ := strings.Cut(c, " ")
		if slices.Contains(s.primary, name) {
			typ += " NOT NULL"
		}
		out[i] = catalog.Column{ID: catalog.ColumnID(i), Name: name, Type: catalog.DataType(typ)}
	}
	return out
}

// bucketKeys are the primary key without partition keys, else the first column.
func (s spec) bucketKeys() []string {
	if s.primary == nil {
		name, _, _ := strings.Cut(s.columns[0], " ")
		return []string{name}
	}
	return slices.DeleteFunc(slices.Clone(s.primary), func(k string) bool { return slices.Contains(s.shape.keys, k) })
}

// partitions returns the partitions of each table in name order, and the next
// free id. Ids were given out day by day.
func partitions() (out [][]catalog.ImportPartition, next catalog.PartitionID) {
	out = make([][]catalog.ImportPartition, len(tables))
	for ago := daily.days - 1; ago >= 0; ago-- {
		for i, s := range tables {
			if ago >= s.shape.days {
				continue
			}
			for _, name := range s.names(ago) {
				p := catalog.ImportPartition{
					Table: catalog.TableID(i), ID: next, Name: name, Created: millis(lastDay.AddDate(0, 0, -ago)),
				}
				epoch, legacy := s.epochAt(s.shape.days - 1 - ago)
				if p.Legacy = legacy; !legacy {
					p.Epoch, p.Buckets = catalog.Epoch(epoch), s.buckets[epoch]
				}
				out[i] = append(out[i], p)
				next++
			}
		}
	}
	for _, list := range out {
		slices.SortFunc(list, func(a, b catalog.ImportPartition) int { return cmp.Compare(a.Name, b.Name) })
	}
	return out, next
}

// names are the partitions made on the day so many days before the last one.
func (s spec) names(ago int) []string {
	day := lastDay.AddDate(0, 0, -ago).Format("2006-01-02")
	if s.shape.slices == nil {
		return []string{day}
	}
	out := make([]string, len(s.shape.slices))
	for i, v := range s.shape.slices {
		out[i] = day + "$" + v
	}
	return out
}
