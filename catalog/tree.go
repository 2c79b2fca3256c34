package catalog

import (
	"cmp"

	"github.com/tidwall/btree"
)

// tree is an ordered map that a state shares with its successors. A batch
// copies it, in constant time, before its first write: gen is the generation of
// the batch that owns the nodes, and any other batch copies first. Reading is
// safe for any number of goroutines.
type tree[K cmp.Ordered, V any] struct {
	m   *btree.Map[K, V]
	gen uint64
}

func (t *tree[K, V]) own(gen uint64) *btree.Map[K, V] {
	switch {
	case t.m == nil:
		t.m = new(btree.Map[K, V])
	case t.gen != gen:
		t.m = t.m.Copy()
	}
	t.gen = gen
	return t.m
}

func (t *tree[K, V]) get(k K) (V, bool) {
	if t.m == nil {
		var zero V
		return zero, false
	}
	return t.m.Get(k)
}

func (t *tree[K, V]) has(k K) bool {
	_, ok := t.get(k)
	return ok
}

func (t *tree[K, V]) len() int {
	if t.m == nil {
		return 0
	}
	return t.m.Len()
}

func (t *tree[K, V]) set(gen uint64, k K, v V) { t.own(gen).Set(k, v) }

// load is set, faster if k is above every key.
func (t *tree[K, V]) load(gen uint64, k K, v V) { t.own(gen).Load(k, v) }

func (t *tree[K, V]) delete(gen uint64, k K) {
	if t.has(k) {
		t.own(gen).Delete(k)
	}
}

// ascend calls f in key order from the first key >= from until it says false.
func (t *tree[K, V]) ascend(from K, f func(K, V) bool) {
	if t.m != nil {
		t.m.Ascend(from, f)
	}
}

// all is an iterator in key order.
func (t *tree[K, V]) all(f func(K, V) bool) {
	if t.m != nil {
		t.m.Scan(f)
	}
}

// last returns the greatest key with its value.
func (t *tree[K, V]) last() (K, V, bool) {
	if t.m == nil {
		var k K
		var v V
		return k, v, false
	}
	return t.m.Max()
}

// first returns the smallest key with its value.
func (t *tree[K, V]) first() (K, V, bool) {
	if t.m == nil {
		var k K
		var v V
		return k, v, false
	}
	return t.m.Min()
}
