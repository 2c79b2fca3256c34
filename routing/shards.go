package routing

import (
	"hash/maphash"
	"maps"

	"github.com/stavedb/stave/catalog"
)

// shardCount is how many ways a shardMap is split: a change copies one part in so many.
const shardCount = 256

// shardMap is a map of which changed copies are cheap: they share every shard that did not change. It is immutable
// except through the edit that made it. Readers index m by themselves, with the shard of the key first.
type shardMap[K comparable, V any] struct {
	m [shardCount]map[K]V
	n int
}

// shardEdit makes a changed copy of a shardMap. It is used by one goroutine and ends when its map is published.
type shardEdit[K comparable, V any] struct {
	to  *shardMap[K, V]
	own [shardCount / 64]uint64 // shards that were copied already
}

func (s *shardMap[K, V]) edit() shardEdit[K, V] {
	c := *s
	return shardEdit[K, V]{to: &c}
}

// shard returns a shard that may be changed.
func (e *shardEdit[K, V]) shard(h uint8) map[K]V {
	if bit := uint64(1) << (h % 64); e.own[h/64]&bit == 0 {
		e.own[h/64] |= bit
		if e.to.m[h] = maps.Clone(e.to.m[h]); e.to.m[h] == nil {
			e.to.m[h] = map[K]V{}
		}
	}
	return e.to.m[h]
}

func (e *shardEdit[K, V]) set(h uint8, k K, v V) {
	m := e.shard(h)
	before := len(m)
	m[k] = v
	e.to.n += len(m) - before
}

func (e *shardEdit[K, V]) delete(h uint8, k K) {
	if _, ok := e.to.m[h][k]; ok {
		delete(e.shard(h), k)
		e.to.n--
	}
}

// each calls f for every entry, in no order.
func (s *shardMap[K, V]) each(f func(K, V)) {
	for _, m := range s.m {
		for k, v := range m {
			f(k, v)
		}
	}
}

// shardSeed keeps names chosen by others from filling one shard.
var shardSeed = maphash.MakeSeed()

func nameShard(name string) uint8  { return uint8(maphash.String(shardSeed, name)) }
func bytesShard(name []byte) uint8 { return uint8(maphash.Bytes(shardSeed, name)) }

// Ids are dense, so their low bits spread them.
func partitionShard(id catalog.PartitionID) uint8 { return uint8(id) }
func tableShard(id catalog.TableID) uint8         { return uint8(id) }
