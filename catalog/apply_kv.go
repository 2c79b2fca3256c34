package catalog

import "math"

func checkKey(key string) *Error {
	if key == "" {
		return refuse(ErrInvalidArgument, "key is empty, want 1 to %d bytes", MaxKeyBytes)
	}
	return checkText("key", key, MaxKeyBytes)
}

func checkValue(v []byte) *Error {
	if len(v) > MaxValueBytes {
		return refuseLimit(ErrTooLarge, MaxValueBytes, uint64(len(v)), "value of %d bytes is above %d", len(v), MaxValueBytes)
	}
	return nil
}

func (b *Batch) version(key string) uint64 {
	if v, ok := b.s.kv.get(key); ok {
		return v.Version
	}
	return 0
}

func (b *Batch) expectVersion(key string, want Opt[uint64]) *Error {
	if have := b.version(key); want.Set && want.V != have {
		return conflict(have, "key %q has version %d, expected %d", key, have, want.V)
	}
	return nil
}

func (b *Batch) writeKV(key string, value []byte) uint64 {
	old, _ := b.s.kv.get(key)
	v := &KeyValue{Key: key, Value: value, Version: 1, CreatedAt: b.rev, Revision: b.rev, Wall: b.s.cluster.Wall}
	if old != nil {
		v.Version, v.CreatedAt = old.Version+1, old.CreatedAt
	}
	b.putKeyValue(old, v)
	return v.Version
}

func (b *Batch) putKV(c PutKV) (Result, *Error) {
	if err := checkKey(c.Key); err != nil {
		return Result{}, err
	}
	if err := checkValue(c.Value); err != nil {
		return Result{}, err
	}
	if err := b.expectVersion(c.Key, c.ExpectedVersion); err != nil {
		return Result{}, err
	}
	return Result{Changed: true, Version: b.writeKV(c.Key, c.Value)}, nil
}

func (b *Batch) deleteKV(c DeleteKV) (Result, *Error) {
	if err := checkKey(c.Key); err != nil {
		return Result{}, err
	}
	if err := b.expectVersion(c.Key, c.ExpectedVersion); err != nil {
		return Result{}, err
	}
	v, ok := b.s.kv.get(c.Key)
	switch {
	case ok:
		b.deleteKeyValue(v)
		return Result{Changed: true}, nil
	case c.IfExists:
		return Result{}, nil
	default:
		return Result{}, refuse(ErrKeyNotExist, "key %q does not exist", c.Key)
	}
}

func (b *Batch) txnKV(c TxnKV) (Result, *Error) {
	if n := max(len(c.Compares), len(c.Ops)); n > MaxTxn {
		return Result{}, refuseLimit(ErrTooLarge, MaxTxn, uint64(n), "transaction has %d compares and %d operations, at most %d each are allowed",
			len(c.Compares), len(c.Ops), MaxTxn)
	}
	seen := make(map[string]bool, len(c.Ops))
	for _, o := range c.Ops {
		if err := checkKey(o.Key); err != nil {
			return Result{}, err
		}
		if err := checkValue(o.Value); err != nil {
			return Result{}, err
		}
		if seen[o.Key] {
			return Result{}, refuse(ErrInvalidArgument, "key %q is written twice in one transaction", o.Key)
		}
		seen[o.Key] = true
	}
	for _, p := range c.Compares {
		if err := b.expectVersion(p.Key, Some(p.Version)); err != nil {
			return Result{}, err
		}
	}
	var r Result
	for _, o := range c.Ops {
		if !o.Delete {
			r.Version, r.Changed = b.writeKV(o.Key, o.Value), true
		} else if v, ok := b.s.kv.get(o.Key); ok {
			b.deleteKeyValue(v)
			r.Changed = true
		}
	}
	return r, nil
}

func (b *Batch) allocateIDs(c AllocateIDs) (Result, *Error) {
	if c.Counter == "" {
		return Result{}, refuse(ErrInvalidArgument, "counter name is empty")
	}
	if err := checkText("counter name", c.Counter, maxNameBytes); err != nil {
		return Result{}, err
	}
	if c.Count < 1 || c.Count > MaxAllocate {
		return Result{}, refuseLimit(ErrInvalidArgument, MaxAllocate, c.Count, "count %d is not in 1..%d", c.Count, uint64(MaxAllocate))
	}
	old, _ := b.s.counters.get(c.Counter)
	n := &Counter{Name: c.Counter, Revision: b.rev}
	if old != nil {
		n.Next = old.Next
	}
	if n.Next > math.MaxInt64-c.Count {
		return Result{}, refuseLimit(ErrTooLarge, math.MaxInt64, n.Next, "counter %s is at %d and has no %d ids left", c.Counter, n.Next, c.Count)
	}
	r := Result{Changed: true, IDs: []IDRange{{n.Next, c.Count}}}
	n.Next += c.Count
	b.putCounter(old, n)
	return r, nil
}
