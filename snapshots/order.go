package snapshots

import (
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// key orders the rows of one kind: by group, by number, then by text.
type key struct {
	group uint8
	n     uint64
	text  string
}

func (k key) less(o key) bool {
	switch {
	case k.group != o.group:
		return k.group < o.group
	case k.n != o.n:
		return k.n < o.n
	default:
		return k.text < o.text
	}
}

// order refuses rows that are not where the writer puts them, so that a state
// has one file only.
type order struct {
	tag   uint8
	outer key
	// inner is the last partition of the table, or result of the client.
	inner  key
	nested bool
}

// next checks a row that belongs to no other.
func (o *order) next(tag uint8, k key) error {
	if tag < o.tag || tag == o.tag && !o.outer.less(k) {
		return fmt.Errorf("key %d %.64q with tag %d is out of order", k.n, k.text, tag)
	}
	*o = order{tag: tag, outer: k}
	return nil
}

// nest checks a row that follows the one it belongs to.
func (o *order) nest(k key) error {
	if o.nested && !o.inner.less(k) {
		return fmt.Errorf("key %d %.64q below tag %d is out of order", k.n, k.text, o.tag)
	}
	o.inner, o.nested = k, true
	return nil
}

// serverKey keeps the order of signed ids.
func serverKey(id catalog.ServerID) uint64 { return uint64(int64(id)) ^ 1<<63 }

// droppedKey puts tables before partitions, and those before buckets.
func droppedKey(d *catalog.DroppedObject) key {
	if d.Bucket.Set {
		return key{group: 2, text: catalog.BucketRef{Table: d.Table, Partition: d.Partition, Bucket: d.Bucket.V}.Key()}
	}
	if d.Partition.Set {
		return key{group: 1, n: uint64(d.Partition.V)}
	}
	return key{n: uint64(d.Table)}
}
