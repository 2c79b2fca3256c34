package routing

import (
	"fmt"
	"slices"
	"strings"
)

// PartitionSpec is the value of every partition key of a table, in the table's key order.
type PartitionSpec struct {
	Keys   []string
	Values []string
}

// ResolvePartitionSpec orders a user's spec by the table's partition keys and checks it. create forbids the reserved
// prefix, see CheckPartitionValue. Errors: ErrPartitionSpec if the spec does not name exactly the partition keys;
// ErrPartitionValue for the first bad value in key order.
func ResolvePartitionSpec(keys []string, spec map[string]string, create bool) (PartitionSpec, error) {
	if len(spec) != len(keys) {
		return PartitionSpec{}, fmt.Errorf("%w: %d keys are given, the table has %d partition keys: %s",
			ErrPartitionSpec, len(spec), len(keys), strings.Join(keys, ", "))
	}
	values := make([]string, len(keys))
	for i, key := range keys {
		value, ok := spec[key]
		if !ok {
			return PartitionSpec{}, fmt.Errorf("%w: the spec does not contain partition key '%s'", ErrPartitionSpec, key)
		}
		values[i] = value
	}
	for _, value := range values {
		if err := CheckPartitionValue(value, create); err != nil {
			return PartitionSpec{}, err
		}
	}
	return PartitionSpec{Keys: slices.Clone(keys), Values: values}, nil
}

// ParsePartitionName splits a partition name into the values of keys. Errors: ErrPartitionSpec if the number of values
// differs from the number of keys, ErrPartitionValue for a value that cannot be part of a name.
func ParsePartitionName(keys []string, name string) (PartitionSpec, error) {
	values := strings.Split(name, string(partitionSeparator))
	if len(values) != len(keys) {
		return PartitionSpec{}, fmt.Errorf("%w: the name '%s' has %d values, the table has %d partition keys: %s",
			ErrPartitionSpec, name, len(values), len(keys), strings.Join(keys, ", "))
	}
	for _, value := range values {
		if err := CheckPartitionValue(value, false); err != nil {
			return PartitionSpec{}, err
		}
	}
	return PartitionSpec{Keys: slices.Clone(keys), Values: values}, nil
}

// Name returns the partition name: the values joined by "$".
func (s PartitionSpec) Name() string { return strings.Join(s.Values, string(partitionSeparator)) }

// String returns the form for people, "k1=v1/k2=v2".
func (s PartitionSpec) String() string {
	var b strings.Builder
	for i, key := range s.Keys {
		if i > 0 {
			b.WriteByte('/')
		}
		b.WriteString(key + "=" + s.Values[i])
	}
	return b.String()
}

// Matches reports whether the spec has all the given values; it is how a partial spec selects partitions. A key the
// table does not have is ErrPartitionSpec, since it would otherwise silently select nothing.
func (s PartitionSpec) Matches(partial map[string]string) (bool, error) {
	for key := range partial {
		if !slices.Contains(s.Keys, key) {
			return false, fmt.Errorf("%w: '%s' is no partition key: %s", ErrPartitionSpec, key, strings.Join(s.Keys, ", "))
		}
	}
	for i, key := range s.Keys {
		if want, ok := partial[key]; ok && want != s.Values[i] {
			return false, nil
		}
	}
	return true, nil
}
