package routing

import (
	"context"
	"errors"
	"fmt"
)

// ErrCountUnknown is returned when the bucket count of a row's partition could not be found out. The table's default is
// no substitute.
var ErrCountUnknown = errors.New("routing: bucket count not known")

// PartitionCount is the answer to the question how many buckets a partition has.
type PartitionCount struct {
	// Exists is false while nothing has created the partition; Partition is not set then.
	Exists    bool
	Partition PartitionBuckets
	// Default is the count that the table gives to partitions created now.
	Default int32
}

// CountSource answers from current metadata. Its methods return once they have an answer, and do not wait for another
// writer to create a partition: that writer may be downstream of the caller. The source waits between attempts, if
// anybody does.
type CountSource interface {
	// Lookup finds a partition by name; for a table without partitions, the whole table by the empty name.
	Lookup(ctx context.Context, partition string) (PartitionCount, error)
	// Create makes a partition if it is absent and returns it, with the count it really has. Channels calls it only in
	// strict mode.
	Create(ctx context.Context, partition string) (PartitionBuckets, error)
}

// ChannelConfig says how Channels decides.
type ChannelConfig struct {
	Keys     *TableKeys
	Channels int32
	Source   CountSource
	// Attempts is how often a failing Source is asked for one row, 3 by default.
	Attempts int
	// MaxPartitions bounds what is remembered, 100,000 by default. Beyond it everything is looked up again.
	MaxPartitions int
	// Strict creates a missing partition before its first row is sent, so that even that row goes to the channel that
	// owns its bucket for ever. Without it rows of a partition that is not there yet are spread by the table's current
	// count: should a rescale come before the creation, the same key may have used two channels.
	Strict bool
}

// Channels computes the channel, or subtask, that each row goes to, so that one bucket is written by exactly one. It
// looks up a partition once and remembers its count, which never changes. It is used by one goroutine.
type Channels struct {
	cfg     ChannelConfig
	shuffle Shuffle
	known   map[string]knownChannel
	name    []byte
	key     []byte
}

// knownChannel is a partition that exists.
type knownChannel struct {
	partition PartitionBuckets
	ref       PartitionRef
}

// NewChannels returns a channel computer. Errors: ErrParallelism for Channels < 1, ErrNoBucketKey for a table whose rows
// may go anywhere.
func NewChannels(cfg ChannelConfig) (*Channels, error) {
	s, err := NewShuffle(cfg.Channels)
	if err != nil {
		return nil, err
	}
	if cfg.Keys.bucket == nil {
		return nil, ErrNoBucketKey
	}
	if cfg.Attempts < 1 {
		cfg.Attempts = 3
	}
	if cfg.MaxPartitions < 1 {
		cfg.MaxPartitions = 100_000
	}
	return &Channels{cfg: cfg, shuffle: s, known: map[string]knownChannel{}}, nil
}

// Channel returns the channel of a row:
//
//   - The partition exists: by its own count, remembered from then on.
//   - It does not exist: by the count it would get now, not remembered; in strict mode it is created first.
//   - Neither is known after so many attempts: ErrCountUnknown with the last error. There is no silent fallback.
//
// Other errors are those of the row: a *ColumnError, ErrArity. For a partition that is known it allocates nothing.
func (c *Channels) Channel(ctx context.Context, row []Value) (int32, error) {
	c.name = c.name[:0]
	if n := c.cfg.Keys.partition; n != nil {
		var err error
		if c.name, err = n.Append(c.name, row); err != nil {
			return 0, err
		}
	}
	k, ok := c.known[string(c.name)]
	if !ok {
		var err error
		if k, err = c.find(ctx, string(c.name)); err != nil {
			return 0, err
		}
	}
	bucket, key, err := c.cfg.Keys.bucket.Bucket(c.key[:0], row, k.partition.Count)
	if c.key = key; err != nil {
		return 0, err
	}
	return c.shuffle.Channel(k.ref, bucket, k.partition.Count)
}

func (c *Channels) find(ctx context.Context, name string) (knownChannel, error) {
	var last error
	for range c.cfg.Attempts {
		if err := context.Cause(ctx); err != nil {
			return knownChannel{}, fmt.Errorf("partition '%s': %w: %w", name, ErrCountUnknown, err)
		}
		p, exists, err := c.ask(ctx, name)
		if err == nil && p.Count < 1 {
			err = &BucketCountError{Count: p.Count}
		}
		if last = err; err != nil {
			continue
		}
		p.Name = name
		k := knownChannel{partition: p}
		if c.cfg.Keys.partition != nil {
			k.ref = NamedPartition(name)
		}
		if exists {
			c.remember(k)
		}
		return k, nil
	}
	return knownChannel{}, fmt.Errorf("partition '%s': %w after %d attempts: %w", name, ErrCountUnknown, c.cfg.Attempts, last)
}

func (c *Channels) ask(ctx context.Context, name string) (PartitionBuckets, bool, error) {
	a, err := c.cfg.Source.Lookup(ctx, name)
	switch {
	case err != nil:
		return PartitionBuckets{}, false, err
	case a.Exists:
		return a.Partition, true, nil
	case c.cfg.Strict && c.cfg.Keys.partition != nil:
		p, err := c.cfg.Source.Create(ctx, name)
		return p, true, err
	default:
		return PartitionBuckets{Count: a.Default}, false, nil
	}
}

func (c *Channels) remember(k knownChannel) {
	if len(c.known) >= c.cfg.MaxPartitions {
		clear(c.known)
	}
	c.known[k.partition.Name] = k
}

// Observe tells what a partition is now. A name whose id is another one was dropped and created again: what was
// remembered of the old one goes. An older id than the known one changes nothing.
func (c *Channels) Observe(p PartitionBuckets) {
	if k, ok := c.known[p.Name]; ok && p.ID > k.partition.ID && p.Count > 0 {
		c.remember(knownChannel{partition: p, ref: p.Ref()})
	}
}

// Forget drops what is remembered of a partition, once a refusal says that it is gone.
func (c *Channels) Forget(name string) { delete(c.known, name) }
