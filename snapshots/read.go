package snapshots

import (
	"fmt"
	"io"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

// Snapshot is what a file held. It is the caller's.
type Snapshot struct {
	Header Header
	State  *catalog.State
	// History are the last events before Header.Revision, oldest first.
	History []*catalog.Event
}

// Inspect reads the head only: its checksum holds, the rows were not looked at.
// Errors are as those of Read; a newer version or level is none.
func Inspect(r io.Reader) (Header, error) {
	in := newInput(r)
	return in.head()
}

// Verify reads everything as Read does and returns only the header.
func Verify(r io.Reader, maxLevel catalog.FeatureLevel) (Header, error) {
	s, err := Read(r, maxLevel)
	if err != nil {
		return Header{}, err
	}
	return s.Header, nil
}

// Read reads a snapshot up to the end of the input. It returns nothing before
// version, level, every checksum and count, the order of the rows, the state
// hash and every invariant of the catalog were verified. The error is a
// *CorruptError (ErrCorrupt, ErrTruncated), a *LevelError, or the reader's,
// wrapped. Memory is bounded by a multiple of the input.
func Read(r io.Reader, maxLevel catalog.FeatureLevel) (*Snapshot, error) {
	in := newInput(r)
	h, err := in.head()
	if err != nil {
		return nil, err
	}
	if h.Version != Version || h.Level > maxLevel {
		return nil, &LevelError{Have: maxLevel, Need: h.Level, Version: h.Version}
	}
	ld := loading{want: &h, loader: catalog.NewLoader(), c: msgpack.NewDecoder(nil)}
	for {
		kind, body, err := in.block()
		if err != nil {
			return nil, err
		}
		if kind == kindTrailer {
			if err := in.end(body, ld.rows, &h); err != nil {
				return nil, err
			}
			break
		}
		if err := ld.block(body); err != nil {
			return nil, in.corrupt("a row is wrong", err)
		}
	}
	if ld.got != h.Rows {
		return nil, in.corrupt(fmt.Sprintf("rows %+v differ from the header's %+v", ld.got, h.Rows), nil)
	}
	s, err := ld.loader.Finish(h.Revision)
	if err != nil {
		return nil, in.corrupt("the state breaks a rule", err)
	}
	if got := headerOf(s, ld.history); got != h {
		return nil, in.corrupt(fmt.Sprintf("the rows give header %+v, the file says %+v", got, h), nil)
	}
	return &Snapshot{Header: h, State: s, History: ld.history}, nil
}

// loading puts rows into a loader.
type loading struct {
	want    *Header
	loader  *catalog.Loader
	c       *msgpack.Codec
	order   order
	got     RowCounts
	rows    uint64
	history []*catalog.Event
	client  catalog.ClientID
	table   catalog.TableID
}

// block decodes the rows of one block.
func (l *loading) block(body []byte) error {
	l.c.Reset(body)
	for len(l.c.Bytes()) > 0 {
		var tag uint8
		l.c.Uint8(&tag)
		if err := l.c.Err(); err != nil {
			return err
		}
		values := l.c.Values()
		if err := l.row(tag); err != nil {
			return fmt.Errorf("row %d with tag %d: %w", l.rows, tag, err)
		}
		if got := l.c.Values() - values; got != 1 {
			return fmt.Errorf("row %d with tag %d: %d values instead of 1", l.rows, tag, got)
		}
		l.rows++
	}
	return l.c.Finish()
}

// decode reads one record into a new row, which from then on is the caller's.
func decode[T any](c *msgpack.Codec, each func(*msgpack.Codec, *T)) (*T, error) {
	v := new(T)
	each(c, v)
	return v, c.Err()
}

func (l *loading) row(tag uint8) error {
	if (tag == tagCluster) != (l.rows == 0) {
		return fmt.Errorf("the cluster's row must be the first and only one")
	}
	switch tag {
	case tagCluster:
		v, err := decode(l.c, cluster)
		if err == nil {
			l.loader.Cluster(*v)
		}
		return err
	case tagDatabase:
		return load(l, tag, &l.got.Databases, DatabaseV1, func(d *catalog.Database) key { return key{text: d.Name} })
	case tagTable:
		return l.tableRow()
	case tagPartition:
		return l.partitionRow()
	case tagServer:
		return load(l, tag, &l.got.Servers, server, func(v *catalog.Server) key { return key{n: serverKey(v.ID)} })
	case tagMember:
		return load(l, tag, &l.got.Members, member, func(v *catalog.Member) key { return key{text: v.NodeID} })
	case tagKeyValue:
		return load(l, tag, &l.got.Keys, keyValue, func(v *catalog.KeyValue) key { return key{text: v.Key} })
	case tagCounter:
		return load(l, tag, &l.got.Counters, counter, func(v *catalog.Counter) key { return key{text: v.Name} })
	case tagImport:
		return load(l, tag, &l.got.Imports, importRow, func(v *catalog.Import) key { return key{text: v.ID.String()} })
	case tagDropped:
		return load(l, tag, &l.got.Dropped, dropped, droppedKey)
	case tagRebalance:
		return load(l, tag, &l.got.Rebalances, rebalance, func(*catalog.Rebalance) key { return key{} })
	case tagClient:
		return l.clientRow()
	case tagResult:
		return l.resultRow()
	case tagEvent:
		return l.eventRow()
	default:
		return fmt.Errorf("unknown tag")
	}
}

// load decodes a row, checks its place and adds it.
func load[T any, P row[T]](l *loading, tag uint8, n *uint64, each func(*msgpack.Codec, *T), keyOf func(*T) key) error {
	v, err := decode(l.c, each)
	if err != nil {
		return err
	}
	if err := l.order.next(tag, keyOf(v)); err != nil {
		return err
	}
	*n++
	return l.loader.Add(P(v))
}

func (l *loading) tableRow() error {
	v, err := decode(l.c, TableV1)
	if err != nil {
		return err
	}
	if err := l.order.next(tagTable, key{n: uint64(v.ID)}); err != nil {
		return err
	}
	l.got.Tables++
	l.table = v.ID
	return l.loader.Add(v)
}

func (l *loading) partitionRow() error {
	v, err := decode(l.c, partition)
	if err != nil {
		return err
	}
	if l.order.tag != tagTable || v.Table != l.table {
		return fmt.Errorf("partition %d of table %d does not follow its table", v.ID, v.Table)
	}
	if err := l.order.nest(key{text: v.Name}); err != nil {
		return err
	}
	l.got.Partitions++
	return l.loader.Add(v)
}

func (l *loading) clientRow() error {
	v, err := decode(l.c, client)
	if err != nil {
		return err
	}
	if err := l.order.next(tagClient, key{n: uint64(v.ID)}); err != nil {
		return err
	}
	l.got.Clients++
	l.client = v.ID
	return l.loader.AddClient(v)
}

func (l *loading) resultRow() error {
	v, err := decode(l.c, result)
	if err != nil {
		return err
	}
	if l.order.tag != tagClient || v.client != l.client {
		return fmt.Errorf("result %d of client %d does not follow its client", v.sequence, v.client)
	}
	if err := l.order.nest(key{n: v.sequence}); err != nil {
		return err
	}
	l.got.Results++
	return l.loader.AddResult(v.client, v.sequence, v.result)
}

func (l *loading) eventRow() error {
	v, err := decode(l.c, event)
	if err != nil {
		return err
	}
	if err := l.order.next(tagEvent, key{n: uint64(v.Revision)}); err != nil {
		return err
	}
	if v.Revision > l.want.Revision {
		return fmt.Errorf("event of revision %d is after the state's %d", v.Revision, l.want.Revision)
	}
	l.got.Events++
	l.history = append(l.history, v)
	return nil
}
