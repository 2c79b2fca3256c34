// Package target does the same work on every system, each as its users would.
//
// Stave keeps tables and partitions as such. On etcd and ZooKeeper they are
// records of RecordBytes bytes under one key or node each, as systems that keep
// their metadata there do; the record of a partition holds its bucket count. No
// ids are allocated on the peers, which real systems would also have to do.
package target

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/stavedb/stave/bench/cluster"
)

// RecordBytes is the size of every value that is written.
const RecordBytes = 200

// LegacyBuckets is the count that partitions without one are served with.
const LegacyBuckets = 4

// ErrRefused is wrapped by a failure that says the system cannot do it at that
// size, whatever the retries.
var ErrRefused = errors.New("refused")

// Session is one client process of a system. It may be used by any number of
// goroutines.
type Session interface {
	// Put writes durably.
	Put(ctx context.Context, key string, value []byte) error
	// Get reads the newest acknowledged value.
	Get(ctx context.Context, key string) ([]byte, error)
	// Prepare makes all keys with the value, as fast as the system allows.
	Prepare(ctx context.Context, keys []string, value []byte) error

	// CreateTable makes a partitioned table.
	CreateTable(ctx context.Context, table string, buckets int32) error
	// Fill makes partitions from..from+n-1 of a table with the count 4, as fast as
	// the system allows.
	Fill(ctx context.Context, table string, from, n int) error
	// Import makes a table with n partitions that have no bucket count.
	Import(ctx context.Context, table string, n int) error
	// CreatePartition makes a partition with the table's count as it is when the
	// partition appears, and returns how often it had to begin anew.
	CreatePartition(ctx context.Context, table, name string) (retries int, err error)
	// Partition reads the newest state of a partition and its table's count.
	Partition(ctx context.Context, table, name string) error
	// Rescale sets the table's count.
	Rescale(ctx context.Context, table string, buckets int32) (retries int, err error)
	// RescaleImported sets the count of a table made by Import so that its
	// partitions keep the count they were served with; all or nothing.
	RescaleImported(ctx context.Context, table string, buckets int32) error
	// List reads all partitions of a table from one state and counts them.
	List(ctx context.Context, table string) (int, error)

	// Watch calls seen once for the value at the begin and then for every change
	// of the key that the system delivers, until ctx ends.
	Watch(ctx context.Context, key string, seen func()) error
	// Leader returns the index of the endpoint that leads.
	Leader(ctx context.Context) (int, error)
	Close() error
}

// Batcher is a session whose client sends what many goroutines ask for
// together.
type Batcher interface {
	PutBatched(ctx context.Context, key string, value []byte) error
	CreatePartitionBatched(ctx context.Context, table, name string) error
}

// Open makes a session of a cluster. It is the caller's to close.
func Open(ctx context.Context, c *cluster.Cluster) (Session, error) {
	switch c.Kind {
	case cluster.Stave, cluster.StaveBolt:
		return openStave(c.Endpoints())
	case cluster.Etcd:
		return openEtcd(c.Endpoints())
	case cluster.ZooKeeper:
		return openZooKeeper(ctx, c)
	}
	return nil, fmt.Errorf("system %q has no client here", c.Kind)
}

// PartitionName names the nth partition of any table.
func PartitionName(n int) string { return fmt.Sprintf("p%07d", n) }

// record is what the peers keep of a table or a partition.
type record struct {
	Buckets int32  `json:"buckets,omitempty"`
	Epoch   uint64 `json:"epoch"`
	Padding string `json:"padding,omitempty"`
}

// encode makes a record of RecordBytes bytes.
func (r record) encode() []byte {
	b, err := json.Marshal(r)
	if err != nil {
		panic(err) // a struct of numbers and text always has a form
	}
	if space := RecordBytes - len(b) - len(`,"padding":""`); space > 0 {
		r.Padding = strings.Repeat("x", space)
		if b, err = json.Marshal(r); err != nil {
			panic(err)
		}
	}
	return b
}

func decode(b []byte) (record, error) {
	var r record
	if err := json.Unmarshal(b, &r); err != nil {
		return record{}, fmt.Errorf("record: %w", err)
	}
	return r, nil
}
