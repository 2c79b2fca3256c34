package catalog

import (
	"cmp"
	"fmt"
)

// Identifiers and counters are named types so that they cannot be swapped.
type (
	// Revision is the Raft index of the command that produced a state. It never
	// goes back within an incarnation.
	Revision uint64
	// TableID numbers tables from 0; an id is never reused.
	TableID uint64
	// PartitionID numbers partitions of all tables from 0; an id is never reused.
	PartitionID uint64
	// SchemaID numbers the schema versions of one table from 1.
	SchemaID uint32
	// ColumnID numbers the columns of one table from 0, dropped ones included.
	ColumnID uint32
	// ServerID is the configured id of a tablet server, >= 0.
	ServerID int32
	// BucketID is the place of a bucket in its table or partition, from 0.
	BucketID int32
	// ClientID numbers registered clients from 1; 0 means not deduplicated.
	ClientID uint64
	// Epoch is a table's bucketLayoutEpoch: 0 at creation, + 1 per effective
	// rescale.
	Epoch uint64
	// CoordinatorEpoch counts the terms that led within an incarnation, from 0;
	// NoCoordinator before the first.
	CoordinatorEpoch int64
	// LeaderEpoch counts the leader changes of one bucket, from 0.
	LeaderEpoch int32
	// BucketEpoch counts the changes of one bucket's state, from 0.
	BucketEpoch int32
	// ServerIncarnation names one life of a tablet server. The first one after
	// the id was free is the revision of the registration, each later one is one
	// more, so that none ever comes again.
	ServerIncarnation uint64
	// Millis is a duration or a point in time in milliseconds. Wall times are
	// Unix milliseconds.
	Millis int64
	// FeatureLevel gates command kinds, versions and the snapshot format.
	FeatureLevel uint32
)

// NoCoordinator is the coordinator epoch before any term led.
const NoCoordinator CoordinatorEpoch = -1

// NoServer is the leader of a bucket that has none.
const NoServer ServerID = -1

// Incarnation names a history of the cluster: a bootstrap, a restore and a
// recovery each begin a new one. States are ordered by (Number, revision).
type Incarnation struct {
	// Number is max(previous + 1, wall milliseconds) at the beginning.
	Number uint64
	// Random tells histories apart whose numbers collide.
	Random uint64
}

// IsZero reports whether no history has begun.
func (i Incarnation) IsZero() bool { return i == Incarnation{} }

// Compare orders by Number only; equal numbers with other Random compare by it.
func (i Incarnation) Compare(o Incarnation) int {
	if c := cmp.Compare(i.Number, o.Number); c != 0 {
		return c
	}
	return cmp.Compare(i.Random, o.Random)
}

// String returns "number-random" with the random part in hex.
func (i Incarnation) String() string { return fmt.Sprintf("%d-%016x", i.Number, i.Random) }

// Opt is an optional value of a command or row. The zero Opt is unset.
type Opt[T any] struct {
	V   T
	Set bool
}

// Some returns a set Opt.
func Some[T any](v T) Opt[T] { return Opt[T]{V: v, Set: true} }

// Or returns the value, or def if unset.
func (o Opt[T]) Or(def T) T {
	if o.Set {
		return o.V
	}
	return def
}

// Property is one key with its value. Lists of properties are sorted by key
// and hold a key once.
type Property struct{ Key, Value string }
