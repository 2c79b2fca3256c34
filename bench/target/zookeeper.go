package target

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/stavedb/stave/bench/cluster"
	"github.com/stavedb/stave/bench/load"
)

const (
	// zkTimeout is the session timeout that ZooKeeper's own documentation and most
	// users choose with its default tick.
	zkTimeout = 10 * time.Second
	// zkFill is how many nodes a multi makes while data is prepared, far below 1 MB.
	zkFill = 500
	// zkReads is how many reads are under way at once while a table is listed.
	zkReads = 256
)

type quiet struct{}

func (quiet) Printf(string, ...any) {}

// zkSession is one session of the usual Go client with all endpoints. Its calls
// have no context: they end with the session.
type zkSession struct {
	*zk.Conn
	cluster *cluster.Cluster
}

func openZooKeeper(ctx context.Context, c *cluster.Cluster) (Session, error) {
	conn, events, err := zk.Connect(c.Endpoints(), zkTimeout, zk.WithLogger(quiet{}))
	if err != nil {
		return nil, fmt.Errorf("zookeeper client: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		select {
		case e := <-events:
			if e.State == zk.StateHasSession {
				return zkSession{conn, c}, nil
			}
		case <-ctx.Done():
			conn.Close()
			return nil, fmt.Errorf("zookeeper session: %w", ctx.Err())
		}
	}
}

func (s zkSession) Close() error {
	s.Conn.Close()
	return nil
}

var zkOpen = zk.WorldACL(zk.PermAll)

func zkKey(key string) string { return "/kv/" + key }

func zkTable(table string) string           { return "/tables/" + table }
func zkPartitions(table string) string      { return zkTable(table) + "/partitions" }
func zkPartition(table, name string) string { return zkPartitions(table) + "/" + name }

func (s zkSession) Put(_ context.Context, key string, value []byte) error {
	_, err := s.Set(zkKey(key), value, -1)
	return err
}

// Get brings the server it is connected to up to the leader first.
func (s zkSession) Get(_ context.Context, key string) ([]byte, error) {
	if _, err := s.Sync(zkKey(key)); err != nil {
		return nil, err
	}
	b, _, err := s.Conn.Get(zkKey(key))
	return b, err
}

// make creates a node that may be there.
func (s zkSession) make(path string, value []byte) error {
	_, err := s.Create(path, value, 0, zkOpen)
	if errors.Is(err, zk.ErrNodeExists) {
		return nil
	}
	return err
}

// makeAll creates n nodes in multis.
func (s zkSession) makeAll(ctx context.Context, n int, path func(i int) string, value []byte) error {
	return load.Each(ctx, 8, (n+zkFill-1)/zkFill, func(_ context.Context, b int) error {
		var ops []any
		for i := b * zkFill; i < min((b+1)*zkFill, n); i++ {
			ops = append(ops, &zk.CreateRequest{Path: path(i), Data: value, Acl: zkOpen})
		}
		_, err := s.Multi(ops...)
		return err
	})
}

func (s zkSession) Prepare(ctx context.Context, keys []string, value []byte) error {
	if err := s.make("/kv", nil); err != nil {
		return err
	}
	return s.makeAll(ctx, len(keys), func(i int) string { return zkKey(keys[i]) }, value)
}

func (s zkSession) CreateTable(_ context.Context, table string, buckets int32) error {
	return errors.Join(s.make("/tables", nil), s.make(zkTable(table), record{Buckets: buckets}.encode()), s.make(zkPartitions(table), nil))
}

func (s zkSession) Fill(ctx context.Context, table string, from, n int) error {
	return s.makeAll(ctx, n, func(i int) string { return zkPartition(table, PartitionName(from+i)) }, record{Buckets: LegacyBuckets}.encode())
}

func (s zkSession) Import(ctx context.Context, table string, n int) error {
	if err := s.CreateTable(ctx, table, LegacyBuckets); err != nil {
		return err
	}
	return s.makeAll(ctx, n, func(i int) string { return zkPartition(table, PartitionName(i)) }, record{}.encode())
}

// table reads a table's record and the version to check.
func (s zkSession) table(table string) (record, int32, error) {
	b, stat, err := s.Conn.Get(zkTable(table))
	if err != nil {
		return record{}, 0, err
	}
	r, err := decode(b)
	return r, stat.Version, err
}

// CreatePartition reads the table's count and makes the partition on condition
// that the table did not change.
func (s zkSession) CreatePartition(_ context.Context, table, name string) (int, error) {
	for retries := 0; ; retries++ {
		t, version, err := s.table(table)
		if err != nil {
			return retries, err
		}
		_, err = s.Multi(
			&zk.CheckVersionRequest{Path: zkTable(table), Version: version},
			&zk.CreateRequest{Path: zkPartition(table, name), Data: record{Buckets: t.Buckets, Epoch: t.Epoch}.encode(), Acl: zkOpen},
		)
		if !errors.Is(err, zk.ErrBadVersion) {
			return retries, err
		}
	}
}

func (s zkSession) Partition(_ context.Context, table, name string) error {
	if _, err := s.Sync(zkTable(table)); err != nil {
		return err
	}
	if _, _, err := s.Conn.Get(zkTable(table)); err != nil {
		return err
	}
	_, _, err := s.Conn.Get(zkPartition(table, name))
	return err
}

func (s zkSession) Rescale(_ context.Context, table string, buckets int32) (int, error) {
	for retries := 0; ; retries++ {
		t, version, err := s.table(table)
		if err != nil {
			return retries, err
		}
		_, err = s.Set(zkTable(table), record{Buckets: buckets, Epoch: t.Epoch + 1}.encode(), version)
		if !errors.Is(err, zk.ErrBadVersion) {
			return retries, err
		}
	}
}

// RescaleImported gives every partition its count in the multi that changes the
// table's. The server drops the connection of a request above 1 MB, the client
// does not encode one above 1.5 MB.
func (s zkSession) RescaleImported(_ context.Context, table string, buckets int32) error {
	t, version, err := s.table(table)
	if err != nil {
		return err
	}
	names, _, err := s.Children(zkPartitions(table))
	if err != nil {
		return err
	}
	own := record{Buckets: t.Buckets}.encode()
	ops := []any{&zk.SetDataRequest{Path: zkTable(table), Data: record{Buckets: buckets, Epoch: t.Epoch + 1}.encode(), Version: version}}
	size := 0
	for _, name := range names {
		path := zkPartition(table, name)
		size += len(path) + len(own)
		ops = append(ops, &zk.SetDataRequest{Path: path, Data: own, Version: -1})
	}
	if _, err = s.Multi(ops...); err != nil && size > 900<<10 {
		return fmt.Errorf("%w: %d bytes in one multi: %w", ErrRefused, size, err)
	}
	return err
}

// errMoved says that partitions came or went while they were read.
var errMoved = errors.New("the list changed meanwhile")

// List reads the names and then every partition, and is from one state only if
// no partition came, went or changed meanwhile. There is no single read of many
// nodes.
func (s zkSession) List(ctx context.Context, table string) (int, error) {
	if _, err := s.Sync(zkPartitions(table)); err != nil {
		return 0, err
	}
	names, before, err := s.Children(zkPartitions(table))
	if err != nil {
		return 0, err
	}
	err = load.Each(ctx, zkReads, len(names), func(_ context.Context, i int) error {
		_, _, err := s.Conn.Get(zkPartition(table, names[i]))
		return err
	})
	if err != nil {
		return 0, err
	}
	_, after, err := s.Exists(zkPartitions(table))
	if err == nil && after.Pzxid != before.Pzxid {
		err = errMoved
	}
	return len(names), err
}

// Watch sets a new watch with each read: a watch of ZooKeeper fires once.
func (s zkSession) Watch(ctx context.Context, key string, seen func()) error {
	for {
		_, _, fired, err := s.GetW(zkKey(key))
		if err != nil {
			return err
		}
		seen()
		select {
		case <-fired:
		case <-ctx.Done():
			return nil
		}
	}
}

func (s zkSession) Leader(ctx context.Context) (int, error) { return s.cluster.ZooKeeperLeader(ctx) }
