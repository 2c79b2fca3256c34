package fsm

import (
	"bytes"
	"errors"
	"io"
	"testing"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/snapshots"
)

// indexed is the content of a snapshot whose meta has an index.
type indexed struct {
	io.ReadCloser
	index uint64
}

func (s *indexed) SnapshotIndex() uint64 { return s.index }

// wrapped hides it as raft does.
type wrapped struct{ io.ReadCloser }

func (w wrapped) WrappedReadCloser() io.ReadCloser { return w.ReadCloser }

// badCommand panics when it is looked at.
type badCommand struct{ kind catalog.Kind }

func (b *badCommand) Kind() catalog.Kind { return b.kind }

func readCloser(data []byte) io.ReadCloser { return io.NopCloser(bytes.NewReader(data)) }

// memSink is a snapshot sink that can break after some bytes.
type memSink struct {
	bytes.Buffer
	limit            int // 0: none
	closed, canceled int
	closeErr         error
}

var errDisk = errors.New("disk is full")

func (s *memSink) Write(p []byte) (int, error) {
	if s.limit > 0 && s.Len()+len(p) > s.limit {
		return 0, errDisk
	}
	return s.Buffer.Write(p)
}
func (s *memSink) Close() error  { s.closed++; return s.closeErr }
func (s *memSink) Cancel() error { s.canceled++; return nil }
func (s *memSink) ID() string    { return "mem" }

// B11: the sink is cancelled when writing broke and never after a success.
func TestPersist_Sink(t *testing.T) {
	fd := newShop(t, Config{}, 3)
	full := len(persisted(t, fd.f))
	snap, err := fd.f.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	for _, limit := range []int{1, full / 2, full - 1} {
		sink := memSink{limit: limit}
		if err := snap.Persist(&sink); !errors.Is(err, errDisk) || sink.canceled != 1 || sink.closed != 0 {
			t.Errorf("write error after %d bytes: %v, %d cancels, %d closes", limit, err, sink.canceled, sink.closed)
		}
	}
	var good memSink
	if err := snap.Persist(&good); err != nil || good.canceled != 0 || good.closed != 1 {
		t.Errorf("success: %v, %d cancels, %d closes", err, good.canceled, good.closed)
	}
	bad := memSink{closeErr: errDisk}
	if err := snap.Persist(&bad); !errors.Is(err, errDisk) || bad.canceled != 0 {
		t.Errorf("error of Close: %v, %d cancels", err, bad.canceled)
	}
}

// B11 with raft's own store: an error in the middle of Persist leaves the older
// snapshot, and a success can be opened and restored.
func TestPersist_FileStore(t *testing.T) {
	store, err := raft.NewFileSnapshotStore(t.TempDir(), 2, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	fd := newShop(t, Config{}, 3)
	save := func(broken bool) error {
		_, trans := raft.NewInmemTransport("n")
		sink, err := store.Create(1, fd.f.Index(), 1, raft.Configuration{}, 1, trans)
		if err != nil {
			t.Fatal(err)
		}
		snap, err := fd.f.Snapshot()
		if err != nil {
			t.Fatal(err)
		}
		if broken {
			return snap.Persist(&breaking{SnapshotSink: sink})
		}
		return snap.Persist(sink)
	}
	if err := save(false); err != nil {
		t.Fatal(err)
	}
	saved := fd.f.State()
	fd.do(catalog.PutKV{Key: "later"})
	if err := save(true); !errors.Is(err, errDisk) {
		t.Fatalf("broken sink: %v", err)
	}
	list, err := store.List()
	if err != nil || len(list) != 1 {
		t.Fatalf("%d snapshots after one success and one error: %v", len(list), err)
	}
	meta, rc, err := store.Open(list[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	f := New(Config{})
	if err := f.Restore(&indexed{rc, meta.Index}); err != nil || f.State().Hash() != saved.Hash() || f.Index() != uint64(saved.Revision()) {
		t.Errorf("restore: %v, hash %016x at %d, want %016x at %d", err, f.State().Hash(), f.Index(), saved.Hash(), saved.Revision())
	}
}

// breaking fails after the head was written.
type breaking struct {
	raft.SnapshotSink
	writes int
}

func (b *breaking) Write(p []byte) (int, error) {
	if b.writes++; b.writes > 1 {
		return 0, errDisk
	}
	return b.SnapshotSink.Write(p)
}

// A restore that fails changes nothing; one that works replaces everything and
// takes the index of its meta, which may be above the content.
func TestRestore(t *testing.T) {
	src := newShop(t, Config{}, 3)
	src.do(catalog.Checksum{})
	file := persisted(t, src.f)
	content := src.f.Index()
	tests := []struct {
		name  string
		data  []byte
		meta  uint64
		level catalog.FeatureLevel
		want  error
	}{
		{"meta unknown", file, 0, 1, nil},
		{"meta equal", file, content, 1, nil},
		{"meta above", file, content + 7, 1, nil},
		{"meta below", file, content - 1, 1, ErrRestoreAhead},
		{"damaged", append(bytes.Clone(file[:len(file)-1]), file[len(file)-1]^1), 0, 1, snapshots.ErrCorrupt},
		{"cut", file[:len(file)/2], 0, 1, snapshots.ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var rec recorder
			f := New(Config{Publisher: &rec})
			f.ApplyBatch(workload(t, 1, 1))
			before, index := f.State(), f.Index()
			err := f.Restore(wrapped{&indexed{readCloser(tt.data), tt.meta}})
			if !errors.Is(err, tt.want) {
				t.Fatalf("Restore = %v, want %v", err, tt.want)
			}
			if err != nil {
				if f.State() != before || f.Index() != index || rec.resets != nil {
					t.Error("a restore that failed changed something")
				}
				return
			}
			want := max(tt.meta, content)
			if f.Index() != want || uint64(f.State().Revision()) != want || f.State().Hash() != src.f.State().Hash() {
				t.Errorf("index %d, revision %d, want %d; hash %016x, want %016x", f.Index(), f.State().Revision(), want, f.State().Hash(), src.f.State().Hash())
			}
			if len(rec.resets) != 1 || uint64(rec.resets[0]) != want {
				t.Errorf("resets %v", rec.resets)
			}
			if s, err := f.Wait(t.Context(), want); err != nil || s != f.State() {
				t.Errorf("Wait after restore: %v", err)
			}
		})
	}
}

// The number of partitions costs a rescale nothing: an entry of a few dozen
// bytes, whatever they are.
func TestRescale_EntrySize(t *testing.T) {
	data := mustEntry(t, *filled[catalog.Envelope](1, false), catalog.RescaleTable{
		Table: "a_database_with_a_long_name.a_table_with_a_long_name", TableID: catalog.Some[catalog.TableID](1 << 40),
		Buckets: 4096, ExpectedEpoch: catalog.Some[catalog.Epoch](1 << 40),
	})
	if len(data) >= 200 {
		t.Errorf("%d bytes", len(data))
	}
}
