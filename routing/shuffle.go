package routing

import "fmt"

// PartitionRef is what shuffling needs of a partition: whether there is one, and the hash of its name. Make it once
// per partition. The zero value stands for a table without partitions.
type PartitionRef struct {
	named bool
	hash  int32
}

// NamedPartition returns the reference to a partition by its name, for instance "2024$01". The empty name is a name.
func NamedPartition(name string) PartitionRef {
	return PartitionRef{named: true, hash: JavaStringHash(name)}
}

// Shuffle spreads the buckets of tables over a fixed number of parallel writers, called channels or subtasks. Writing
// and recovery must agree on who owns a bucket, so both ask the same Shuffle with the same per-partition count.
type Shuffle struct{ channels int32 }

// NewShuffle returns the shuffle over channels 0..channels-1. channels < 1 is ErrParallelism.
func NewShuffle(channels int32) (Shuffle, error) {
	if channels < 1 {
		return Shuffle{}, fmt.Errorf("%w: %d channels, at least 1 is needed", ErrParallelism, channels)
	}
	return Shuffle{channels: channels}, nil
}

// Channels returns the number of channels.
func (s Shuffle) Channels() int32 { return s.channels }

// Combines reports whether the partition name takes part in the choice of the channel: for partitions whose count
// buckets do not divide evenly among the channels. count is the count of that very partition.
func (s Shuffle) Combines(p PartitionRef, count int32) bool {
	return p.named && s.channels > 0 && count%s.channels != 0
}

// Channel returns the one channel, 0..Channels()-1, that writes the given bucket of a partition with count buckets:
//
//	bucket mod channels                                        without Combines
//	((|hash of the name| mod channels) + bucket) mod channels  with Combines
//
// |h| of the smallest int32 is 0. count must be the partition's own count, never the table's current default: after a
// rescale the two differ, and two writers would share a bucket. Errors: *BucketCountError, *BucketRangeError;
// ErrParallelism for the zero Shuffle.
func (s Shuffle) Channel(p PartitionRef, bucket, count int32) (int32, error) {
	if s.channels < 1 {
		return 0, fmt.Errorf("%w: the shuffle has no channels", ErrParallelism)
	}
	if err := CheckBucket(bucket, count); err != nil {
		return 0, err
	}
	if !s.Combines(p, count) {
		return bucket % s.channels, nil
	}
	first := magnitude(p.hash) % s.channels
	return int32((int64(first) + int64(bucket)) % int64(s.channels)), nil
}

// Owns reports whether subtask writes, and after a failure recovers, the given bucket. It is Channel compared with
// subtask; a subtask outside 0..Channels()-1 is ErrParallelism.
func (s Shuffle) Owns(subtask int32, p PartitionRef, bucket, count int32) (bool, error) {
	if subtask < 0 || subtask >= s.channels {
		return false, fmt.Errorf("%w: subtask %d is not in 0..%d", ErrParallelism, subtask, s.channels-1)
	}
	channel, err := s.Channel(p, bucket, count)
	return err == nil && channel == subtask, err
}
