package catalog

import (
	"slices"
	"strings"
)

// MaxSpecs bounds the partitions of one CreatePartitions.
const MaxSpecs = 16_384

// partitionName checks a spec against the table's keys and joins its values in
// key order. Creation also refuses the reserved prefix.
func partitionName(t *Table, spec PartitionSpec, create bool) (string, *Error) {
	if len(spec) != len(t.PartitionKeys) {
		return "", refuse(ErrPartitionSpecInvalid, "partition spec %s has %d keys, table %s has %d partition keys [%s]",
			specText(spec), len(spec), t.Path, len(t.PartitionKeys), strings.Join(t.PartitionKeys, ", "))
	}
	if len(spec) == 1 && spec[0].Key == t.PartitionKeys[0] {
		return spec[0].Value, checkPartitionValue(spec[0].Value, create)
	}
	var name strings.Builder
	for i, key := range t.PartitionKeys {
		j := slices.IndexFunc(spec, func(p Property) bool { return p.Key == key })
		if j < 0 {
			return "", refuse(ErrPartitionSpecInvalid, "partition spec %s does not contain partition key '%s' of table %s", specText(spec), key, t.Path)
		}
		if err := checkPartitionValue(spec[j].Value, create); err != nil {
			return "", err
		}
		if i > 0 {
			name.WriteByte('$')
		}
		name.WriteString(spec[j].Value)
	}
	return name.String(), nil
}

// CheckPartitionValue returns nil if v may be one value of a partition name, or
// an *Error with ErrPartitionSpecInvalid. With create the reserved prefix "__"
// is refused as well: partitions that have it are internal, may exist and be
// dropped, but are not created by users.
func CheckPartitionValue(v string, create bool) error {
	if err := checkPartitionValue(v, create); err != nil {
		return err
	}
	return nil
}

func checkPartitionValue(v string, create bool) *Error {
	why := invalidIdentifier(v)
	if why == "" && create && strings.HasPrefix(v, reservedPrefix) {
		why = reservedReason
	}
	if why != "" {
		return refuse(ErrPartitionSpecInvalid, "partition value %s is invalid: %s", v, why)
	}
	return nil
}

func specText(spec PartitionSpec) string {
	parts := make([]string, len(spec))
	for i, p := range spec {
		parts[i] = p.Key + "=" + p.Value
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// PartitionName returns the name a spec gives in a table. For a creation the
// reserved prefix "__" is refused. The error is an *Error.
func PartitionName(t *Table, spec PartitionSpec, create bool) (string, error) {
	if !t.Partitioned() {
		return "", refuse(ErrTableNotPartitioned, "table %s is not partitioned", t.Path)
	}
	name, err := partitionName(t, spec, create)
	if err != nil {
		return "", err
	}
	return name, nil
}

// Spec returns a partition's values by key, in key order.
func (t *Table) Spec(p *Partition) PartitionSpec {
	values := strings.Split(p.Name, "$")
	spec := make(PartitionSpec, 0, len(t.PartitionKeys))
	for i, k := range t.PartitionKeys {
		if i < len(values) {
			spec = append(spec, Property{k, values[i]})
		}
	}
	return spec
}

// qualifiedName returns "k1=v1/k2=v2".
func qualifiedName(keys []string, name string) string {
	values := strings.Split(name, "$")
	parts := make([]string, 0, len(keys))
	for i, k := range keys {
		if i < len(values) {
			parts = append(parts, k+"="+values[i])
		}
	}
	return strings.Join(parts, "/")
}

// QualifiedName returns the display name "k1=v1/k2=v2" of a partition.
func (t *Table) QualifiedName(p *Partition) string { return qualifiedName(t.PartitionKeys, p.Name) }

func (b *Batch) createPartitions(c CreatePartitions) (Result, *Error) {
	t, err := b.findTable(c.Table, c.TableID)
	if err != nil {
		return Result{}, err
	}
	if err := b.mutablePartitioned(t); err != nil {
		return Result{}, err
	}
	if n := len(c.Specs); n < 1 || n > MaxSpecs {
		return Result{}, refuseLimit(ErrInvalidArgument, MaxSpecs, uint64(n), "%d partitions to create are not in 1..%d", n, MaxSpecs)
	}
	plan, err := b.planPartitions(t, c)
	if err != nil {
		return Result{}, err
	}
	r := b.createPlanned(t, plan)
	clear(plan)
	return r, nil
}

// keptPlan bounds the scratch that a batch keeps.
const keptPlan = 1024

// planned is one spec of a creation: an existing partition or the row to make.
type planned struct {
	existing *Partition
	row      *Partition
}

// planPartitions does every check and computes every row; nothing is changed.
func (b *Batch) planPartitions(t *Table, c CreatePartitions) ([]planned, *Error) {
	limits := b.s.Limits(t.Database())
	plan := b.plan[:0]
	var seen map[string]bool
	if len(c.Specs) > 1 {
		seen = make(map[string]bool, len(c.Specs))
	}
	place := b.placer(limits)
	have, fresh := b.s.PartitionCount(t.ID), 0
	for _, spec := range c.Specs {
		name, err := partitionName(t, spec, true)
		if err != nil {
			return nil, err
		}
		if p, ok := b.s.Partition(t.ID, name); ok {
			if !c.IfNotExists {
				return nil, exists(ErrPartitionAlreadyExists, uint64(p.ID), "Partition '%s' already exists for table %s with id %d",
					qualifiedName(t.PartitionKeys, name), t.Path, p.ID)
			}
			plan = append(plan, planned{existing: p})
			continue
		}
		if seen != nil {
			if seen[name] {
				return nil, refuse(ErrInvalidArgument, "partition '%s' is given twice", qualifiedName(t.PartitionKeys, name))
			}
			seen[name] = true
		}
		if err := roomFor(t, have+fresh+1, limits); err != nil {
			return nil, err
		}
		row, err := b.planPartition(t, name, c, &place, fresh)
		if err != nil {
			return nil, err
		}
		fresh++
		plan = append(plan, planned{row: row})
	}
	if cap(plan) <= keptPlan {
		b.plan = plan
	}
	return plan, nil
}

// roomFor refuses the n-th partition of a table, or one more with the table's
// bucket count, above the limits.
func roomFor(t *Table, n int, limits Limits) *Error {
	if uint64(n) > uint64(limits.Partitions) {
		return refuseLimit(ErrPartitionMaxNum, uint64(limits.Partitions), uint64(n),
			"Exceed the maximum number of partitions for table %s, only allow %d partitions.", t.Path, limits.Partitions)
	}
	if uint32(t.Buckets) > limits.Buckets {
		return tooManyBuckets(t.Buckets, limits)
	}
	return nil
}

func (b *Batch) planPartition(t *Table, name string, c CreatePartitions, place *placer, fresh int) (*Partition, *Error) {
	made := &struct { // one allocation: most partitions are placed at once
		row       Partition
		placement Placement
	}{row: Partition{
		ID: b.s.cluster.NextPartition + PartitionID(fresh), Table: t.ID, Name: name, Buckets: t.Buckets, Epoch: t.Epoch,
		Created: b.s.cluster.Wall, CreatedAt: b.rev, Revision: b.rev,
	}}
	row := &made.row
	var err *Error
	if len(c.Assignment) > 0 {
		row.Placement, err = place.supplied(&made.placement, t, c.Assignment)
	} else {
		row.Placement, err = place.place(&made.placement, uint64(row.ID), t, t.Buckets)
	}
	return row, err
}

// createPlanned writes the new rows.
func (b *Batch) createPlanned(t *Table, plan []planned) Result {
	var r Result
	for _, p := range plan {
		if p.row == nil {
			r.addID(uint64(p.existing.ID))
			// A count that is not known is reported as 0.
			r.Count, _ = EffectiveCount(t, p.existing) //nolint:errcheck // see above
			r.Epoch = uint64(p.existing.Epoch)
			continue
		}
		b.s.cluster.NextPartition++
		b.putPartition(nil, p.row)
		r.addID(uint64(p.row.ID))
		r.Count, r.Epoch, r.Changed = p.row.Buckets, uint64(p.row.Epoch), true
	}
	return r
}
