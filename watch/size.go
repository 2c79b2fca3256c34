package watch

import "github.com/stavedb/stave/catalog"

// Bytes that a value costs without its texts and lists. They are rounded
// figures of a 64-bit build and the same on every node.
const (
	recordBytes   = 320
	changeBytes   = 32
	rowBytes      = 192
	tableBytes    = 448
	columnBytes   = 128
	propertyBytes = 32
	textBytes     = 16
	entryBytes    = 32
	bucketBytes   = 112
	serverBytes   = 8
	moveBytes     = 96
)

// eventSize estimates the memory that an event keeps alive. It depends on the
// values alone and looks at no bucket one by one.
func eventSize(ev *catalog.Event) int64 {
	n := recordBytes + len(ev.Actor)
	for _, c := range ev.Changes {
		n += changeBytes
		if c.After != nil {
			n += rowSize(c.After, true)
		}
		if c.Before != nil {
			// The row before a change shares the schemas with the row after it.
			n += rowSize(c.Before, c.After == nil)
		}
	}
	return int64(n)
}

func rowSize(o catalog.Object, schemas bool) int {
	switch r := o.(type) {
	case *catalog.Database:
		return rowBytes + len(r.Name) + len(r.Comment) + propertiesSize(r.Properties)
	case *catalog.Table:
		return tableSize(r, schemas)
	case *catalog.Partition:
		return rowBytes + len(r.Name) + placementSize(r.Placement)
	case *catalog.Server:
		return rowBytes + len(r.DirectoryID) + len(r.Rack) + textsSize(r.Listeners)
	case *catalog.Member:
		return rowBytes + len(r.NodeID) + len(r.DirectoryID) + len(r.RaftAddr) + len(r.APIAddr) + len(r.HTTPAddr) + len(r.Build)
	case *catalog.KeyValue:
		return rowBytes + len(r.Key) + len(r.Value)
	case *catalog.Counter:
		return rowBytes + len(r.Name)
	case *catalog.DroppedObject:
		return rowBytes + len(r.Path) + len(r.Name) + len(r.Pending)*serverBytes
	case *catalog.Rebalance:
		return rebalanceSize(r)
	case *catalog.Import:
		return rowBytes + len(r.Tables)*serverBytes
	case *catalog.Cluster:
		return rowBytes + len(r.ID) + len(r.Leader)
	default:
		return rowBytes
	}
}

func tableSize(t *catalog.Table, schemas bool) int {
	n := tableBytes + len(t.Path) + len(t.Comment) + textsSize(t.PrimaryKey) + textsSize(t.PartitionKeys) + textsSize(t.BucketKeys) +
		len(t.History)*entryBytes + propertiesSize(t.Properties) + propertiesSize(t.CustomProperties) + placementSize(t.Placement)
	if !schemas {
		return n
	}
	for i := range t.Schemas {
		for j := range t.Schemas[i].Columns {
			c := &t.Schemas[i].Columns[j]
			n += columnBytes + len(c.Name) + len(c.Comment)
		}
	}
	return n
}

// placementSize takes the first bucket's replicas for all, which have the
// replication factor in common.
func placementSize(p *catalog.Placement) int {
	if p == nil || len(p.Replicas) == 0 {
		return 0
	}
	return len(p.Replicas) * (bucketBytes + serverBytes*len(p.Replicas[0]))
}

func rebalanceSize(r *catalog.Rebalance) int {
	n := rowBytes + len(r.ID)
	for i := range r.Moves {
		n += moveBytes + serverBytes*(len(r.Moves[i].From)+len(r.Moves[i].To))
	}
	return n
}

func propertiesSize(list []catalog.Property) int {
	n := 0
	for _, p := range list {
		n += propertyBytes + len(p.Key) + len(p.Value)
	}
	return n
}

func textsSize(list []string) int {
	n := 0
	for _, s := range list {
		n += textBytes + len(s)
	}
	return n
}
