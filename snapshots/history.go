package snapshots

import (
	"fmt"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

// event states one entry of the watch history. Changes of client records never
// reach watchers and are refused.
func event(c *msgpack.Codec, e *catalog.Event) {
	c.Record(5)
	msgpack.Uint(c, &e.Revision)
	msgpack.Uint(c, &e.Kind)
	msgpack.Int(c, &e.Wall)
	c.String(&e.Actor)
	msgpack.Slice(c, &e.Changes, maxList, change)
}

// change is the kind of the row, the row before and the row after; at least one
// is there.
func change(c *msgpack.Codec, v *catalog.Change) {
	c.Record(3)
	var kind catalog.ObjectKind
	before, after := v.Before != nil, v.After != nil
	if !c.Decoding() && (before || after) {
		kind = v.Kind()
	}
	msgpack.Uint(c, &kind)
	switch kind {
	case catalog.ObjectCluster:
		sides(c, v, cluster)
	case catalog.ObjectDatabase:
		sides(c, v, DatabaseV1)
	case catalog.ObjectTable:
		sides(c, v, TableV1)
	case catalog.ObjectPartition:
		sides(c, v, partition)
	case catalog.ObjectServer:
		sides(c, v, server)
	case catalog.ObjectMember:
		sides(c, v, member)
	case catalog.ObjectKeyValue:
		sides(c, v, keyValue)
	case catalog.ObjectCounter:
		sides(c, v, counter)
	case catalog.ObjectDropped:
		sides(c, v, dropped)
	case catalog.ObjectRebalance:
		sides(c, v, rebalance)
	case catalog.ObjectImport:
		sides(c, v, importRow)
	case catalog.ObjectClient:
		fallthrough
	default:
		c.Fail(fmt.Errorf("change of object kind %d", kind))
	}
	if c.Decoding() && v.Before == nil && v.After == nil {
		c.Fail(fmt.Errorf("change of %s has no row", kind))
	}
}

// row is a pointer to a catalog row that is an Object.
type row[T any] interface {
	*T
	catalog.Object
}

func sides[T any, P row[T]](c *msgpack.Codec, v *catalog.Change, each func(*msgpack.Codec, *T)) {
	side[T, P](c, &v.Before, each)
	side[T, P](c, &v.After, each)
}

func side[T any, P row[T]](c *msgpack.Codec, o *catalog.Object, each func(*msgpack.Codec, *T)) {
	if !c.Decoding() {
		r, ok := (*o).(P)
		if *o != nil && !ok {
			c.Fail(fmt.Errorf("change holds a %s and a %s", (*o).Object(), P(new(T)).Object()))
			return
		}
		set := ok && r != nil
		msgpack.Optional(c, &set, (*T)(r), each)
		return
	}
	r, set := new(T), false
	if msgpack.Optional(c, &set, r, each); set && c.Err() == nil {
		*o = P(r)
	}
}
