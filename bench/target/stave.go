package target

import (
	"context"
	"errors"
	"fmt"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/bench/load"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
)

const (
	staveDatabase = "bench"
	partitionKey  = "p"
	// staveFill is how many partitions one command makes while a table is filled,
	// and staveImport how many rows an import batch has.
	staveFill, staveImport = 1000, 1000
)

// staveSession makes one gRPC call for each operation, except those of Batcher
// and the filling of tables.
type staveSession struct {
	plain, batching *client.Client
	endpoints       []string
	kv              pb.KVClient
	catalog         pb.CatalogClient
	cluster         pb.ClusterClient
}

func openStave(endpoints []string) (Session, error) {
	plain, err := client.New(endpoints, client.WithBatching(false))
	if err != nil {
		return nil, err
	}
	batching, err := client.New(endpoints)
	if err != nil {
		return nil, errors.Join(err, plain.Close())
	}
	return &staveSession{
		plain: plain, batching: batching, endpoints: endpoints,
		kv: pb.NewKVClient(plain), catalog: pb.NewCatalogClient(plain), cluster: pb.NewClusterClient(plain),
	}, nil
}

func (s *staveSession) Close() error { return errors.Join(s.plain.Close(), s.batching.Close()) }

func (s *staveSession) Put(ctx context.Context, key string, value []byte) error {
	_, err := s.kv.Put(ctx, &pb.PutRequest{Key: key, Value: value})
	return err
}

func (s *staveSession) PutBatched(ctx context.Context, key string, value []byte) error {
	_, err := s.batching.Do(ctx, catalog.PutKV{Key: key, Value: value})
	return err
}

func (s *staveSession) Get(ctx context.Context, key string) ([]byte, error) {
	res, err := s.kv.Get(ctx, &pb.GetRequest{Key: key})
	return res.GetRow().GetValue(), err
}

func (s *staveSession) Prepare(ctx context.Context, keys []string, value []byte) error {
	return load.Each(ctx, 256, len(keys), func(ctx context.Context, i int) error {
		return s.PutBatched(ctx, keys[i], value)
	})
}

func (s *staveSession) database(ctx context.Context) error {
	_, err := s.batching.Do(ctx, catalog.CreateDatabase{Name: staveDatabase, IfNotExists: true})
	if err == nil {
		_, err = s.batching.Do(ctx, catalog.SetLimits{Limits: catalog.Limits{Partitions: catalog.MaxLimits.Partitions}})
	}
	return err
}

func stavePath(table string) string { return staveDatabase + "." + table }

func (s *staveSession) CreateTable(ctx context.Context, table string, buckets int32) error {
	if err := s.database(ctx); err != nil {
		return err
	}
	_, err := s.catalog.CreateTable(ctx, &pb.CreateTableRequest{
		Table: stavePath(table), Columns: []*pb.NewColumn{{Name: "id", Type: "INT"}, {Name: partitionKey, Type: "STRING"}},
		PartitionKeys: []string{partitionKey}, BucketKeys: []string{"id"}, Buckets: &buckets,
	})
	return err
}

func staveSpec(name string) catalog.PartitionSpec {
	return catalog.PartitionSpec{{Key: partitionKey, Value: name}}
}

func (s *staveSession) Fill(ctx context.Context, table string, from, n int) error {
	return load.Each(ctx, 4, (n+staveFill-1)/staveFill, func(ctx context.Context, i int) error {
		cmd := catalog.CreatePartitions{Table: stavePath(table)}
		for j := i * staveFill; j < min((i+1)*staveFill, n); j++ {
			cmd.Specs = append(cmd.Specs, staveSpec(PartitionName(from+j)))
		}
		_, err := s.batching.Do(ctx, cmd)
		return err
	})
}

// Import brings the partitions in as rows of an export, which is how partitions
// without a count get into Stave. The import's id is the table's.
func (s *staveSession) Import(ctx context.Context, table string, n int) error {
	if err := s.database(ctx); err != nil {
		return err
	}
	_, meta, err := s.plain.Database(ctx, staveDatabase)
	if err != nil {
		return err
	}
	id := catalog.ImportID{Incarnation: meta.Incarnation, Revision: meta.Revision}
	first := catalog.PartitionID(uint64(meta.Revision) << 24) // above all ids in use
	row, err := importedTable(table, catalog.TableID(meta.Revision)<<8)
	if err != nil {
		return err
	}
	_, err = s.batching.Do(ctx, catalog.ImportBatch{Import: id, Tables: []catalog.ImportTable{{Table: row}}})
	if err != nil {
		return fmt.Errorf("import table: %w", err)
	}
	batches := (n + staveImport - 1) / staveImport
	send := func(ctx context.Context, i int) error {
		b := catalog.ImportBatch{Import: id, Skip: uint64(1 + i*staveImport)}
		for j := i * staveImport; j < min((i+1)*staveImport, n); j++ {
			b.Partitions = append(b.Partitions, catalog.ImportPartition{Table: row.ID, ID: first + catalog.PartitionID(j), Name: PartitionName(j), Legacy: true})
		}
		_, err := s.batching.Do(ctx, b)
		return err
	}
	for i := range batches {
		if err := send(ctx, i); err != nil {
			return fmt.Errorf("import partitions: %w", err)
		}
	}
	_, err = s.batching.Do(ctx, catalog.ImportBatch{Import: id, Skip: uint64(1 + n), Last: true})
	return err
}

func importedTable(table string, id catalog.TableID) (catalog.Table, error) {
	var columns []catalog.Column
	for i, c := range [][2]string{{"id", "INT"}, {partitionKey, "STRING"}} {
		t, err := catalog.ParseDataType(c[1])
		if err != nil {
			return catalog.Table{}, err
		}
		columns = append(columns, catalog.Column{ID: catalog.ColumnID(i), Name: c[0], Type: t})
	}
	return catalog.Table{
		ID: id, Path: stavePath(table), Schemas: []catalog.Schema{{ID: 1, Columns: columns}}, NextColumn: catalog.ColumnID(len(columns)),
		PartitionKeys: []string{partitionKey}, BucketKeys: []string{"id"}, Buckets: LegacyBuckets, Replication: 1,
		History: []catalog.LayoutEntry{{Buckets: LegacyBuckets}},
	}, nil
}

func (s *staveSession) CreatePartition(ctx context.Context, table, name string) (int, error) {
	spec := &pb.PartitionSpec{Values: []*pb.Property{{Key: partitionKey, Value: name}}}
	_, err := s.catalog.CreatePartitions(ctx, &pb.CreatePartitionsRequest{Table: stavePath(table), Specs: []*pb.PartitionSpec{spec}})
	return 0, err
}

func (s *staveSession) CreatePartitionBatched(ctx context.Context, table, name string) error {
	_, err := s.batching.Do(ctx, catalog.CreatePartitions{Table: stavePath(table), Specs: []catalog.PartitionSpec{staveSpec(name)}})
	return err
}

func (s *staveSession) Partition(ctx context.Context, table, name string) error {
	_, err := s.catalog.GetPartition(ctx, &pb.GetPartitionRequest{Table: stavePath(table), Name: name})
	return err
}

func (s *staveSession) Rescale(ctx context.Context, table string, buckets int32) (int, error) {
	_, err := s.catalog.RescaleTable(ctx, &pb.RescaleTableRequest{Table: stavePath(table), Buckets: buckets})
	return 0, err
}

func (s *staveSession) RescaleImported(ctx context.Context, table string, buckets int32) error {
	_, err := s.Rescale(ctx, table, buckets)
	return err
}

func (s *staveSession) List(ctx context.Context, table string) (int, error) {
	out, _, err := s.plain.Partitions(ctx, stavePath(table))
	return len(out.Partitions), err
}

func (s *staveSession) Watch(ctx context.Context, key string, seen func()) error {
	w, err := s.plain.Watch(ctx, client.WatchOptions{
		Snapshot: true, Filter: client.WatchFilter{KeyPrefix: key, Kinds: []catalog.ObjectKind{catalog.ObjectKeyValue}},
	})
	if err != nil {
		return err
	}
	for {
		b, err := w.Next(ctx)
		if ctx.Err() != nil {
			return w.Close()
		}
		if err != nil {
			return errors.Join(err, w.Close())
		}
		if !b.Bookmark() {
			seen()
		}
	}
}

func (s *staveSession) Leader(ctx context.Context) (int, error) {
	res, err := s.cluster.Status(ctx, &pb.StatusRequest{})
	if err != nil {
		return 0, err
	}
	addr := res.GetHeader().GetLeader().GetAddress()
	for i, e := range s.endpoints {
		if e == addr {
			return i, nil
		}
	}
	return 0, fmt.Errorf("leader %q is none of %v", addr, s.endpoints)
}
