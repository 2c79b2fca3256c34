package api

import (
	"github.com/stavedb/stave/catalog"
)

// The records of export lines. Frozen: export format 1.

type clusterLine struct {
	Kind            string          `json:"kind"`
	Format          uint32          `json:"format"`
	Incarnation     IncarnationText `json:"incarnation"`
	Revision        uint64          `json:"revision"`
	NextTableID     uint64          `json:"next_table_id"`
	NextPartitionID uint64          `json:"next_partition_id"`
}

type databaseLine struct {
	Kind       string     `json:"kind"`
	Name       string     `json:"name"`
	Comment    string     `json:"comment"`
	Properties Properties `json:"properties"`
	Limits     Limits     `json:"limits"`
	CreatedMS  int64      `json:"created_ms"`
	ModifiedMS int64      `json:"modified_ms"`
}

type schemaLine struct {
	ID      uint32   `json:"id"`
	Columns []Column `json:"columns"`
}

type layoutLine struct {
	Epoch  uint64 `json:"epoch"`
	Count  int32  `json:"count"`
	WallMS int64  `json:"wall_ms"`
}

type tableLine struct {
	Kind              string       `json:"kind"`
	Table             string       `json:"table"`
	TableID           uint64       `json:"table_id"`
	BucketCount       int32        `json:"bucket_count"`
	LayoutEpoch       uint64       `json:"layout_epoch"`
	LegacyCount       *int32       `json:"legacy_count,omitempty"`
	History           []layoutLine `json:"history"`
	Schemas           []schemaLine `json:"schemas"`
	NextColumnID      uint32       `json:"next_column_id"`
	PrimaryKey        []string     `json:"primary_key"`
	BucketKeys        []string     `json:"bucket_keys"`
	PartitionKeys     []string     `json:"partition_keys"`
	ReplicationFactor int32        `json:"replication_factor"`
	Comment           string       `json:"comment"`
	Properties        Properties   `json:"properties"`
	CustomProperties  Properties   `json:"custom_properties"`
	CreatedMS         int64        `json:"created_ms"`
	ModifiedMS        int64        `json:"modified_ms"`
	Finished          bool         `json:"finished"`
}

type partitionLine struct {
	Kind        string  `json:"kind"`
	TableID     uint64  `json:"table_id"`
	PartitionID uint64  `json:"partition_id"`
	Name        string  `json:"name"`
	BucketCount *int32  `json:"bucket_count,omitempty"`
	Legacy      bool    `json:"legacy"`
	LayoutEpoch *uint64 `json:"layout_epoch,omitempty"`
	CreatedMS   int64   `json:"created_ms"`
}

type kvLine struct {
	Kind        string  `json:"kind"`
	Key         string  `json:"key"`
	Value       *string `json:"value,omitempty"`
	ValueBase64 *string `json:"value_base64,omitempty"`
	Version     uint64  `json:"version"`
}

type counterLine struct {
	Kind string `json:"kind"`
	Name string `json:"name"`
	Next uint64 `json:"next"`
}

// lineOf returns the record of a row, or nil if none is set.
func lineOf(r ExportRow) any {
	kind := r.Kind()
	switch {
	case r.Cluster != nil:
		c := r.Cluster
		return clusterLine{
			Kind: kind, Format: c.Format, Incarnation: IncarnationText(c.Incarnation), Revision: uint64(c.Revision),
			NextTableID: uint64(c.Counters.NextTable), NextPartitionID: uint64(c.Counters.NextPartition),
		}
	case r.Database != nil:
		d := r.Database
		return databaseLine{
			Kind: kind, Name: d.Name, Comment: d.Comment, Properties: Properties(d.Properties), Limits: Limits(d.Limits),
			CreatedMS: int64(d.Created), ModifiedMS: int64(d.Wall),
		}
	case r.Table != nil:
		return tableLineOf(kind, r.Table)
	case r.Partition != nil:
		p := r.Partition
		out := partitionLine{
			Kind: kind, TableID: uint64(p.Table), PartitionID: uint64(p.ID), Name: p.Name, Legacy: p.Legacy, CreatedMS: int64(p.Created),
		}
		epoch := uint64(p.Epoch)
		if !p.Legacy || p.Buckets != 0 {
			out.BucketCount = &p.Buckets
		}
		if !p.Legacy || epoch != 0 {
			out.LayoutEpoch = &epoch
		}
		return out
	case r.KeyValue != nil:
		out := kvLine{Kind: kind, Key: r.KeyValue.Key, Version: r.KeyValue.Version}
		out.Value, out.ValueBase64 = splitValue(r.KeyValue.Value)
		return out
	case r.Counter != nil:
		return counterLine{Kind: kind, Name: r.Counter.Name, Next: r.Counter.Next}
	}
	return nil
}

func tableLineOf(kind string, row *catalog.ImportTable) tableLine {
	t := &row.Table
	out := tableLine{
		Kind: kind, Table: t.Path, TableID: uint64(t.ID), BucketCount: t.Buckets, LayoutEpoch: uint64(t.Epoch), LegacyCount: optTo[int32](t.LegacyCount),
		NextColumnID: uint32(t.NextColumn), PrimaryKey: list(t.PrimaryKey), BucketKeys: list(t.BucketKeys), PartitionKeys: list(t.PartitionKeys),
		ReplicationFactor: t.Replication, Comment: t.Comment, Properties: Properties(t.Properties), CustomProperties: Properties(t.CustomProperties),
		CreatedMS: int64(t.Created), ModifiedMS: int64(t.Wall), Finished: row.Finished,
	}
	out.History = list(each(t.History, func(e catalog.LayoutEntry) layoutLine {
		return layoutLine{Epoch: uint64(e.Epoch), Count: e.Buckets, WallMS: int64(e.Wall)}
	}))
	out.Schemas = list(each(t.Schemas, func(s catalog.Schema) schemaLine {
		return schemaLine{ID: uint32(s.ID), Columns: list(each(s.Columns, func(c catalog.Column) Column {
			return Column{ID: uint32(c.ID), Name: c.Name, Type: string(c.Type), Comment: c.Comment}
		}))}
	}))
	return out
}

func (l *clusterLine) row() (ExportRow, error) {
	if l.Format != ExportFormat {
		return ExportRow{}, &catalog.Error{
			Code:    catalog.ErrUnsupportedVersion,
			Message: invalidText("format", l.Format, "1"),
		}
	}
	return ExportRow{Cluster: &ExportCluster{
		Format: l.Format, Incarnation: catalog.Incarnation(l.Incarnation), Revision: catalog.Revision(l.Revision),
		Counters: catalog.ImportCounters{NextTable: catalog.TableID(l.NextTableID), NextPartition: catalog.PartitionID(l.NextPartitionID)},
	}}, nil
}

func (l *databaseLine) row() (ExportRow, error) {
	return ExportRow{Database: &catalog.Database{
		Name: l.Name, Comment: l.Comment, Properties: l.Properties, Limits: catalog.Limits(l.Limits),
		Created: catalog.Millis(l.CreatedMS), Wall: catalog.Millis(l.ModifiedMS),
	}}, nil
}

func (l *tableLine) row() (ExportRow, error) {
	t := catalog.Table{
		ID: catalog.TableID(l.TableID), Path: l.Table, Comment: l.Comment, NextColumn: catalog.ColumnID(l.NextColumnID),
		PrimaryKey: l.PrimaryKey, PartitionKeys: l.PartitionKeys, BucketKeys: l.BucketKeys, Buckets: l.BucketCount,
		Epoch: catalog.Epoch(l.LayoutEpoch), LegacyCount: optFrom[int32](l.LegacyCount), Replication: l.ReplicationFactor,
		Properties: l.Properties, CustomProperties: l.CustomProperties, Created: catalog.Millis(l.CreatedMS), Wall: catalog.Millis(l.ModifiedMS),
	}
	t.History = each(l.History, func(e layoutLine) catalog.LayoutEntry {
		return catalog.LayoutEntry{Epoch: catalog.Epoch(e.Epoch), Buckets: e.Count, Wall: catalog.Millis(e.WallMS)}
	})
	t.Schemas = each(l.Schemas, func(s schemaLine) catalog.Schema {
		return catalog.Schema{ID: catalog.SchemaID(s.ID), Columns: each(s.Columns, func(c Column) catalog.Column {
			return catalog.Column{ID: catalog.ColumnID(c.ID), Name: c.Name, Type: catalog.DataType(c.Type), Comment: c.Comment}
		})}
	})
	return ExportRow{Table: &catalog.ImportTable{Table: t, Finished: l.Finished}}, nil
}

func (l *partitionLine) row() (ExportRow, error) {
	switch {
	case l.BucketCount == nil && !l.Legacy:
		return ExportRow{}, invalid("bucket_count", "missing", "a value unless legacy is true")
	case l.LayoutEpoch == nil && !l.Legacy:
		return ExportRow{}, invalid("layout_epoch", "missing", "a value unless legacy is true")
	}
	p := &catalog.ImportPartition{
		Table: catalog.TableID(l.TableID), ID: catalog.PartitionID(l.PartitionID), Name: l.Name, Legacy: l.Legacy, Created: catalog.Millis(l.CreatedMS),
	}
	if l.BucketCount != nil {
		p.Buckets = *l.BucketCount
	}
	if l.LayoutEpoch != nil {
		p.Epoch = catalog.Epoch(*l.LayoutEpoch)
	}
	return ExportRow{Partition: p}, nil
}

func (l *kvLine) row() (ExportRow, error) {
	v, err := joinValue(l.Value, l.ValueBase64)
	if err != nil {
		return ExportRow{}, err
	}
	return ExportRow{KeyValue: &catalog.ImportKeyValue{Key: l.Key, Value: v, Version: l.Version}}, nil
}

func (l *counterLine) row() (ExportRow, error) {
	return ExportRow{Counter: &catalog.ImportCounter{Name: l.Name, Next: l.Next}}, nil
}
