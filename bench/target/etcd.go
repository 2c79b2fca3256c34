package target

import (
	"context"
	"errors"
	"fmt"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"

	"github.com/stavedb/stave/bench/load"
)

// etcdFill is how many operations a transaction has while data is prepared; the
// server's default limit is 128.
const etcdFill = 100

// etcdSession is the default client with all endpoints.
type etcdSession struct{ *clientv3.Client }

func openEtcd(endpoints []string) (Session, error) {
	c, err := clientv3.New(clientv3.Config{Endpoints: endpoints, Logger: zap.NewNop()})
	if err != nil {
		return nil, fmt.Errorf("etcd client: %w", err)
	}
	return etcdSession{c}, nil
}

func (s etcdSession) Put(ctx context.Context, key string, value []byte) error {
	_, err := s.Client.Put(ctx, key, string(value))
	return err
}

func (s etcdSession) Get(ctx context.Context, key string) ([]byte, error) {
	res, err := s.Client.Get(ctx, key)
	if err != nil {
		return nil, err
	}
	if len(res.Kvs) == 0 {
		return nil, fmt.Errorf("key %s is not there", key)
	}
	return res.Kvs[0].Value, nil
}

// putAll writes n pairs in transactions.
func (s etcdSession) putAll(ctx context.Context, n int, pair func(i int) (key string, value []byte)) error {
	return load.Each(ctx, 16, (n+etcdFill-1)/etcdFill, func(ctx context.Context, b int) error {
		var ops []clientv3.Op
		for i := b * etcdFill; i < min((b+1)*etcdFill, n); i++ {
			key, value := pair(i)
			ops = append(ops, clientv3.OpPut(key, string(value)))
		}
		_, err := s.Txn(ctx).Then(ops...).Commit()
		return err
	})
}

func (s etcdSession) Prepare(ctx context.Context, keys []string, value []byte) error {
	return s.putAll(ctx, len(keys), func(i int) (string, []byte) { return keys[i], value })
}

func etcdTable(table string) string           { return "tables/" + table }
func etcdPartition(table, name string) string { return "partitions/" + table + "/" + name }

func (s etcdSession) CreateTable(ctx context.Context, table string, buckets int32) error {
	return s.Put(ctx, etcdTable(table), record{Buckets: buckets}.encode())
}

func (s etcdSession) Fill(ctx context.Context, table string, from, n int) error {
	value := record{Buckets: LegacyBuckets}.encode()
	return s.putAll(ctx, n, func(i int) (string, []byte) { return etcdPartition(table, PartitionName(from+i)), value })
}

func (s etcdSession) Import(ctx context.Context, table string, n int) error {
	if err := s.CreateTable(ctx, table, LegacyBuckets); err != nil {
		return err
	}
	value := record{}.encode()
	return s.putAll(ctx, n, func(i int) (string, []byte) { return etcdPartition(table, PartitionName(i)), value })
}

// table reads a table's record and the revision to compare with.
func (s etcdSession) table(ctx context.Context, table string) (record, int64, error) {
	res, err := s.Client.Get(ctx, etcdTable(table))
	if err != nil {
		return record{}, 0, err
	}
	if len(res.Kvs) == 0 {
		return record{}, 0, fmt.Errorf("table %s is not there", table)
	}
	r, err := decode(res.Kvs[0].Value)
	return r, res.Kvs[0].ModRevision, err
}

// CreatePartition reads the table's count and writes the partition on condition
// that the table did not change.
func (s etcdSession) CreatePartition(ctx context.Context, table, name string) (int, error) {
	key := etcdPartition(table, name)
	for retries := 0; ; retries++ {
		t, rev, err := s.table(ctx, table)
		if err != nil {
			return retries, err
		}
		res, err := s.Txn(ctx).If(
			clientv3.Compare(clientv3.ModRevision(etcdTable(table)), "=", rev),
			clientv3.Compare(clientv3.CreateRevision(key), "=", 0),
		).Then(clientv3.OpPut(key, string(record{Buckets: t.Buckets, Epoch: t.Epoch}.encode()))).Commit()
		if err != nil || res.Succeeded {
			return retries, err
		}
	}
}

func (s etcdSession) Partition(ctx context.Context, table, name string) error {
	res, err := s.Txn(ctx).Then(clientv3.OpGet(etcdTable(table)), clientv3.OpGet(etcdPartition(table, name))).Commit()
	if err != nil {
		return err
	}
	for _, r := range res.Responses {
		if len(r.GetResponseRange().Kvs) == 0 {
			return fmt.Errorf("partition %s of %s is not there", name, table)
		}
	}
	return nil
}

func (s etcdSession) Rescale(ctx context.Context, table string, buckets int32) (int, error) {
	for retries := 0; ; retries++ {
		t, rev, err := s.table(ctx, table)
		if err != nil {
			return retries, err
		}
		res, err := s.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(etcdTable(table)), "=", rev)).
			Then(clientv3.OpPut(etcdTable(table), string(record{Buckets: buckets, Epoch: t.Epoch + 1}.encode()))).Commit()
		if err != nil || res.Succeeded {
			return retries, err
		}
	}
}

// RescaleImported gives every partition its count in the transaction that
// changes the table's: otherwise a reader could see the new count with
// partitions that were written under the old one.
func (s etcdSession) RescaleImported(ctx context.Context, table string, buckets int32) error {
	t, rev, err := s.table(ctx, table)
	if err != nil {
		return err
	}
	res, err := s.Client.Get(ctx, etcdPartition(table, ""), clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		return err
	}
	ops := []clientv3.Op{clientv3.OpPut(etcdTable(table), string(record{Buckets: buckets, Epoch: t.Epoch + 1}.encode()))}
	own := string(record{Buckets: t.Buckets}.encode())
	for _, kv := range res.Kvs {
		ops = append(ops, clientv3.OpPut(string(kv.Key), own))
	}
	done, err := s.Txn(ctx).If(clientv3.Compare(clientv3.ModRevision(etcdTable(table)), "=", rev)).Then(ops...).Commit()
	switch {
	case errors.Is(err, rpctypes.ErrTooManyOps), errors.Is(err, rpctypes.ErrRequestTooLarge):
		return fmt.Errorf("%w: %w", ErrRefused, err)
	case err != nil:
		return err
	case !done.Succeeded:
		return errors.New("the table changed meanwhile")
	}
	return nil
}

func (s etcdSession) List(ctx context.Context, table string) (int, error) {
	res, err := s.Client.Get(ctx, etcdPartition(table, ""), clientv3.WithPrefix())
	if err != nil {
		return 0, err
	}
	return len(res.Kvs), nil
}

func (s etcdSession) Watch(ctx context.Context, key string, seen func()) error {
	res, err := s.Client.Get(ctx, key)
	if err != nil {
		return err
	}
	seen()
	for w := range s.Client.Watch(ctx, key, clientv3.WithRev(res.Header.Revision+1)) {
		if err := w.Err(); err != nil && ctx.Err() == nil {
			return err
		}
		for range w.Events {
			seen()
		}
	}
	return nil
}

func (s etcdSession) Leader(ctx context.Context) (int, error) {
	for i, e := range s.Endpoints() {
		st, err := s.Status(ctx, e)
		if err == nil && st.Leader == st.Header.MemberId {
			return i, nil
		}
	}
	return 0, errors.New("no etcd node leads")
}
