package testhistory

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
)

// opsPerObject is how many calls an object gets before a new one takes its
// place: porcupine's time grows quickly beyond it.
const opsPerObject = 220

const watchPrefix = "r/"

// keyOf names the object of a call: callers of one client share it.
func (c *caller) keyOf(of string) string {
	return fmt.Sprintf("%s%d/%d", of, c.id/8, c.seq*8/opsPerObject)
}

// kv writes and reads one key after the other.
func (c *caller) kv(ctx context.Context) {
	version := uint64(0)
	for c.next(ctx) {
		key := c.keyOf(watchPrefix)
		switch n := c.r.IntN(10); {
		case n < 4:
			c.write(ctx, "kv "+key, catalog.PutKV{Key: key, Value: []byte(fmt.Sprintf("%d.%d", c.id, c.seq))})
		case n < 5:
			c.write(ctx, "kv "+key, catalog.PutKV{Key: key, Value: []byte(fmt.Sprintf("%d.%d", c.id, c.seq)), ExpectedVersion: catalog.Some(version)})
		case n < 6 && c.seq%7 == 0:
			c.write(ctx, "kv "+key, catalog.DeleteKV{Key: key, IfExists: c.seq%2 == 0})
		default:
			seen, ok := c.readKey(key)
			if ok {
				version = seen.Version
			}
		}
	}
}

func (c *caller) readKey(key string) (Seen, bool) {
	return c.read("kv "+key, func(ctx context.Context) (Seen, client.Meta, error) {
		row, meta, err := c.c.KeyValue(ctx, key)
		if errors.Is(err, catalog.ErrKeyNotExist) {
			// A refusal has no revision: read the same as a list.
			rows, meta, err := c.c.KeyValues(ctx, key)
			if err != nil || len(rows) == 0 || rows[0].Key != key {
				return Seen{}, meta, err
			}
			return Seen{Version: rows[0].Version, Value: string(rows[0].Value)}, meta, nil
		}
		if err != nil {
			return Seen{}, meta, err
		}
		return Seen{Version: row.Version, Value: string(row.Value)}, meta, nil
	})
}

func newTable(path string, buckets int32) catalog.CreateTable {
	return catalog.CreateTable{
		Table: path, Columns: []catalog.NewColumn{{Name: "a", Type: "INT NOT NULL"}, {Name: "dt", Type: "STRING NOT NULL"}},
		PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"a"}, Buckets: catalog.Some(buckets),
	}
}

// layout rescales tables and reads their layout.
func (c *caller) layout(ctx context.Context) {
	if !c.once(ctx, "layout", catalog.CreateDatabase{Name: "layout", IfNotExists: true}) {
		return
	}
	for epoch := uint64(0); c.next(ctx); {
		path := strings.ReplaceAll(c.keyOf("layout.t"), "/", "_")
		if !c.once(ctx, path, newTable(path, 1)) {
			return
		}
		object := "layout " + path
		switch n := c.r.IntN(10); {
		case n < 4:
			c.write(ctx, object, catalog.RescaleTable{Table: path, Buckets: 1 + c.r.Int32N(64)})
		case n < 6:
			c.write(ctx, object, catalog.RescaleTable{Table: path, Buckets: 1 + c.r.Int32N(64), ExpectedEpoch: catalog.Some(catalog.Epoch(epoch))})
		default:
			seen, ok := c.read(object, func(ctx context.Context) (Seen, client.Meta, error) {
				t, meta, err := c.c.Table(ctx, path)
				if err != nil {
					return Seen{}, meta, err
				}
				return Seen{Version: uint64(t.Epoch), Value: strconv.Itoa(int(t.Buckets))}, meta, nil
			})
			if ok {
				epoch = seen.Version
			}
		}
	}
}

// ids takes ids from shared counters.
func (c *caller) ids(ctx context.Context) {
	for c.next(ctx) {
		c.write(ctx, "", catalog.AllocateIDs{Counter: fmt.Sprintf("c%d", c.id%3), Count: 1 + uint64(c.r.IntN(3))})
	}
}

func dt(i int) catalog.PartitionSpec {
	return catalog.PartitionSpec{{Key: "dt", Value: fmt.Sprintf("d%03d", i)}}
}

// partitions creates and drops partitions of tables that are rescaled, dropped
// and made again meanwhile.
func (c *caller) partitions(ctx context.Context) {
	if !c.once(ctx, "life", catalog.CreateDatabase{Name: "life", IfNotExists: true}, newTable("life.p0", 2), newTable("life.p1", 3)) {
		return
	}
	for c.next(ctx) {
		path := fmt.Sprintf("life.p%d", c.r.IntN(2))
		switch n := c.r.IntN(100); {
		case n < 45:
			cmd := catalog.CreatePartitions{Table: path, IfNotExists: c.seq%2 == 0}
			for i := range 1 + c.r.IntN(3) {
				cmd.Specs = append(cmd.Specs, dt(10*i+c.r.IntN(10)))
			}
			c.write(ctx, "", cmd)
		case n < 70:
			c.write(ctx, "", catalog.DropPartitions{Table: path, Specs: []catalog.PartitionSpec{dt(c.r.IntN(30))}, IfExists: c.seq%2 == 0})
		case n < 80:
			c.write(ctx, "", catalog.RescaleTable{Table: path, Buckets: 1 + c.r.Int32N(64)})
		case n < 82:
			c.write(ctx, "", catalog.DropTable{Table: path, IfExists: true})
			c.write(ctx, "", newTable(path, 1+c.r.Int32N(8)))
		default:
			c.readPartitions(path)
		}
	}
}

// partitionSum is a number for partitions with their counts and epochs.
func partitionSum(sum uint64, p *catalog.Partition) uint64 {
	return (sum^uint64(p.ID)*0x9e3779b97f4a7c15)*31 + uint64(p.Buckets)*7 + uint64(p.Epoch)
}

func (c *caller) readPartitions(path string) {
	c.read("", func(ctx context.Context) (Seen, client.Meta, error) {
		all, meta, err := c.c.Partitions(ctx, path)
		if errors.Is(err, catalog.ErrTableNotExist) {
			tables, meta, err := c.c.Tables(ctx, "life")
			for _, t := range tables {
				if t.Path == path {
					return Seen{}, meta, errors.New("made again meanwhile")
				}
			}
			return Seen{Value: path}, meta, err
		}
		if err != nil {
			return Seen{}, meta, err
		}
		sum := uint64(all.Table.Epoch)
		for _, p := range all.Partitions {
			sum = partitionSum(sum, p)
		}
		return Seen{Value: path, Version: uint64(all.Table.ID) + 1, Sum: sum}, meta, nil
	})
}

const accounts, deposit = 6, 100

func account(i int) string { return fmt.Sprintf("bank/%d", i) }

// bank moves money between accounts in transactions; the sum never changes.
func (c *caller) bank(ctx context.Context) {
	var open catalog.TxnKV
	for i := range accounts {
		open.Ops = append(open.Ops, catalog.OpKV{Key: account(i), Value: []byte(strconv.Itoa(deposit))})
	}
	if !c.once(ctx, "bank", open) {
		return
	}
	for c.next(ctx) {
		var rows []*catalog.KeyValue
		_, ok := c.read("", func(ctx context.Context) (Seen, client.Meta, error) {
			var meta client.Meta
			var err error
			rows, meta, err = c.c.KeyValues(ctx, "bank/")
			sum := 0
			for _, r := range rows {
				n, _ := strconv.Atoi(string(r.Value)) //nolint:errcheck // counted as 0, which is found below
				sum += n
			}
			return Seen{Value: "bank/", Sum: uint64(sum)}, meta, err
		})
		if !ok || len(rows) != accounts {
			continue
		}
		from, to := rows[c.r.IntN(accounts)], rows[c.r.IntN(accounts)]
		have, _ := strconv.Atoi(string(from.Value)) //nolint:errcheck // as above
		other, _ := strconv.Atoi(string(to.Value))  //nolint:errcheck // as above
		if from == to || have == 0 {
			continue
		}
		n := 1 + c.r.IntN(have)
		rest(ctx, time.Duration(c.r.IntN(40))*time.Millisecond) // so that others come between
		c.write(ctx, "", catalog.TxnKV{
			Compares: []catalog.CompareKV{{Key: from.Key, Version: from.Version}, {Key: to.Key, Version: to.Version}},
			Ops:      []catalog.OpKV{{Key: from.Key, Value: []byte(strconv.Itoa(have - n))}, {Key: to.Key, Value: []byte(strconv.Itoa(other + n))}},
		})
	}
}

// big makes and drops what one command can hold: 1,000 partitions, and a table
// of 4,096 buckets.
func (c *caller) big(ctx context.Context) {
	if !c.once(ctx, "big", catalog.CreateDatabase{Name: "big", IfNotExists: true}) {
		return
	}
	all := catalog.CreatePartitions{Table: fmt.Sprintf("big.t%d", c.id)}
	for i := range 1000 {
		all.Specs = append(all.Specs, dt(i))
	}
	wide := catalog.CreateTable{
		Table: fmt.Sprintf("big.wide%d", c.id), Columns: []catalog.NewColumn{{Name: "a", Type: "INT"}}, Buckets: catalog.Some[int32](4096),
	}
	for c.next(ctx) {
		c.write(ctx, "", newTable(all.Table, 1))
		c.write(ctx, "", all)
		c.readPartitions(all.Table)
		c.write(ctx, "", catalog.DropTable{Table: all.Table, IfExists: true})
		c.write(ctx, "", wide)
		c.write(ctx, "", catalog.DropTable{Table: wide.Table, IfExists: true})
		rest(ctx, 2*time.Second)
	}
}
