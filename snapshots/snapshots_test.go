package snapshots

import (
	"bytes"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/internal/msgpack"
)

var update = flag.Bool("update", false, "write the golden files anew")

// exact compares unexported fields too.
var exact = cmp.Exporter(func(reflect.Type) bool { return true })

func roundTrip[T any](each func(*msgpack.Codec, *T)) func(uint64, bool) error {
	return func(seed uint64, sparse bool) error {
		in := filled[T](seed, sparse)
		c := msgpack.NewEncoder(nil)
		each(c, in)
		if err := c.Finish(); err != nil || c.Values() != 1 {
			return fmt.Errorf("encode %T: %w, %d values", in, err, c.Values())
		}
		data := c.Bytes()
		var out T
		d := msgpack.NewDecoder(data)
		each(d, &out)
		if err := d.Finish(); err != nil {
			return fmt.Errorf("decode %T: %w", in, err)
		}
		if diff := cmp.Diff(in, &out, exact); diff != "" {
			return fmt.Errorf("%T changed (-encoded +decoded):\n%s", in, diff)
		}
		c = msgpack.NewEncoder(nil)
		if each(c, &out); !bytes.Equal(c.Bytes(), data) {
			return fmt.Errorf("%T encodes differently after decoding", in)
		}
		return nil
	}
}

var rowCodecs = map[string]func(uint64, bool) error{
	"cluster":   roundTrip(cluster),
	"database":  roundTrip(DatabaseV1),
	"table":     roundTrip(TableV1),
	"partition": roundTrip(partition),
	"server":    roundTrip(server),
	"member":    roundTrip(member),
	"kv":        roundTrip(keyValue),
	"counter":   roundTrip(counter),
	"import":    roundTrip(importRow),
	"dropped":   roundTrip(dropped),
	"rebalance": roundTrip(rebalance),
	"client":    roundTrip(client),
	"header": roundTrip(func(c *msgpack.Codec, h *Header) {
		if c.Decoding() {
			h.Version = filled[Header](1, false).Version // it is in the head
		}
		h.Version = 1
		headerRecord(c, h)
	}),
	"trailer": roundTrip(func(c *msgpack.Codec, t *struct{ Rows, Blocks, Hash uint64 }) {
		v := trailer{t.Rows, t.Blocks, t.Hash}
		trailerRecord(c, &v)
		t.Rows, t.Blocks, t.Hash = v.rows, v.blocks, v.hash
	}),
	"result": roundTrip(func(c *msgpack.Codec, r *struct {
		Client   catalog.ClientID
		Sequence uint64
		Result   catalog.Result
	},
	) {
		v := storedResult{r.Client, r.Sequence, r.Result}
		result(c, &v)
		r.Client, r.Sequence, r.Result = v.client, v.sequence, v.result
	}),
}

// Every field of every row survives: a field that a codec forgets is zero after
// decoding.
func TestRecords_EveryField(t *testing.T) {
	for name, check := range rowCodecs {
		t.Run(name, func(t *testing.T) {
			if err := check(1, false); err != nil {
				t.Fatal(err)
			}
			rapid.Check(t, func(rt *rapid.T) {
				if err := check(rapid.Uint64().Draw(rt, "seed"), rapid.Bool().Draw(rt, "sparse")); err != nil {
					rt.Fatal(err)
				}
			})
		})
	}
}

// Every object kind that an event can hold has a codec.
func TestHistory_EveryKind(t *testing.T) {
	seen := map[catalog.ObjectKind]bool{}
	for _, e := range richHistory() {
		for _, c := range e.Changes {
			seen[c.Kind()] = true
		}
	}
	for k := catalog.ObjectCluster; k < catalog.ObjectClient; k++ {
		if !seen[k] {
			t.Errorf("the test history has no change of %s", k)
		}
	}
	err := Write(io.Discard, catalog.NewState(), []*catalog.Event{{Changes: []catalog.Change{{After: &catalog.Client{}}}}})
	if err == nil {
		t.Error("a change of a client record was written")
	}
}

// What was written is read back: state, hash, history, and the same bytes again.
func TestRead_RoundTrip(t *testing.T) {
	states := map[string]*catalog.State{"empty": catalog.NewState(), "rich": richState(t)}
	for name, s := range states {
		for _, history := range [][]*catalog.Event{nil, richHistory()} {
			if name == "empty" && history != nil {
				continue
			}
			data := mustWrite(t, s, history)
			got, err := Read(iotest.OneByteReader(bytes.NewReader(data)), catalog.CurrentLevel)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			if got.State.Hash() != s.Hash() || got.State.Revision() != s.Revision() {
				t.Errorf("%s: hash %016x at %d, want %016x at %d", name, got.State.Hash(), got.State.Revision(), s.Hash(), s.Revision())
			}
			ignoreHash := cmp.FilterPath(func(p cmp.Path) bool { return p.Last().String() == ".hash" }, cmp.Ignore())
			if diff := cmp.Diff(history, got.History, exact, ignoreHash); diff != "" {
				t.Errorf("%s: history changed:\n%s", name, diff)
			}
			if again := mustWrite(t, got.State, got.History); !bytes.Equal(again, data) {
				t.Errorf("%s: written again it is %d bytes that differ from %d", name, len(again), len(data))
			}
			h, err := Inspect(bytes.NewReader(data))
			if err != nil || h != got.Header {
				t.Errorf("%s: Inspect = %+v, %v, want %+v", name, h, err, got.Header)
			}
		}
	}
}

// No byte can be changed and no tail cut off without being noticed.
func TestRead_EveryByteCounts(t *testing.T) {
	data := mustWrite(t, richState(t), richHistory())
	for i := range data {
		bad := bytes.Clone(data)
		bad[i] ^= byte(1 << (i % 8))
		if _, err := Read(bytes.NewReader(bad), catalog.CurrentLevel); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) {
			t.Fatalf("byte %d of %d changed: %v", i, len(data), err)
		}
		if _, err := Read(bytes.NewReader(data[:i]), catalog.CurrentLevel); !errors.Is(err, ErrTruncated) {
			t.Fatalf("cut at %d of %d: %v", i, len(data), err)
		}
	}
	if _, err := Read(bytes.NewReader(append(data, 0)), catalog.CurrentLevel); !errors.Is(err, ErrCorrupt) {
		t.Errorf("a byte after the trailer: %v", err)
	}
}

// A snapshot of a newer level or version is refused by name, not as damage.
func TestRead_NewerLevel(t *testing.T) {
	data := mustWrite(t, richState(t), nil)
	_, err := Read(bytes.NewReader(data), catalog.CurrentLevel-1)
	var level *LevelError
	if !errors.As(err, &level) || level.Have != 0 || level.Need != catalog.CurrentLevel || !errors.Is(err, ErrLevel) {
		t.Errorf("level below the snapshot's: %v", err)
	}
	newer := rehead(data, Version+1)
	if _, err := Read(bytes.NewReader(newer), catalog.CurrentLevel); !errors.As(err, &level) || level.Version != Version+1 {
		t.Errorf("newer version: %v", err)
	}
}

// rehead returns the file with another version and a valid head checksum.
func rehead(data []byte, version byte) []byte {
	n := headFixed + int(data[headFixed-1]) + int(data[headFixed-2])<<8
	out := bytes.Clone(data[:n])
	out[len(magic)] = version
	var b bytes.Buffer
	w := writer{w: &b, sum: newInput(nil).sum}
	if err := w.emit(out, "head"); err != nil {
		panic(err)
	}
	return append(b.Bytes(), data[n+crcBytes:]...)
}

// The error of the writer comes back, wherever it happens.
func TestWrite_Error(t *testing.T) {
	s := richState(t)
	full := len(mustWrite(t, s, nil))
	broken := errors.New("disk on fire")
	for limit := range full {
		if limit%97 != 0 && limit < full-20 {
			continue
		}
		if err := Write(&limitedWriter{limit, broken}, s, nil); !errors.Is(err, broken) {
			t.Fatalf("error after %d of %d bytes: %v", limit, full, err)
		}
	}
}

type limitedWriter struct {
	left int
	err  error
}

func (w *limitedWriter) Write(p []byte) (int, error) {
	if len(p) > w.left {
		return w.left, w.err
	}
	w.left -= len(p)
	return len(p), nil
}

// Blocks can be neither swapped nor left out nor repeated, though each of them
// is whole; a row longer than a block is one block.
func TestRead_Blocks(t *testing.T) {
	l := catalog.NewLoader()
	for i := range 40 {
		size := 10_000
		if i == 20 {
			size = catalog.MaxValueBytes
		}
		if err := l.Add(&catalog.KeyValue{Key: fmt.Sprintf("k%02d", i), Value: make([]byte, size), Version: 1}); err != nil {
			t.Fatal(err)
		}
	}
	s, err := l.Finish(7)
	if err != nil {
		t.Fatal(err)
	}
	data := mustWrite(t, s, nil)
	if got, err := Read(bytes.NewReader(data), catalog.CurrentLevel); err != nil || got.State.Hash() != s.Hash() {
		t.Fatalf("undamaged: %v", err)
	}
	parts := split(data)
	if len(parts) < 6 {
		t.Fatalf("%d parts", len(parts))
	}
	for i := 1; i < len(parts)-1; i++ {
		swapped := append([][]byte(nil), parts...)
		swapped[i], swapped[i-1] = swapped[i-1], swapped[i]
		without := append(append([][]byte(nil), parts[:i]...), parts[i+1:]...)
		twice := append(append([][]byte(nil), parts[:i+1]...), parts[i:]...)
		for name, p := range map[string][][]byte{"swapped": swapped, "left out": without, "repeated": twice} {
			if _, err := Read(bytes.NewReader(bytes.Join(p, nil)), catalog.CurrentLevel); !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) {
				t.Errorf("part %d %s: %v", i, name, err)
			}
		}
	}
}

// split cuts a file into head, blocks, trailer and sum.
func split(data []byte) (parts [][]byte) {
	for at := headFixed; len(data) > sumBytes; at = frameBytes {
		n := at + crcBytes + int(data[at-3])<<16 + int(data[at-2])<<8 + int(data[at-1])
		parts = append(parts, data[:n])
		data = data[n:]
	}
	return append(parts, data)
}

// Files of every released version are read for ever. The file is hexadecimal.
func TestGolden(t *testing.T) {
	dir := filepath.Join("..", "testdata", "golden")
	file := filepath.Join(dir, "snapshot-v1.txt")
	s := richState(t)
	data := mustWrite(t, s, richHistory())
	text := fmt.Sprintf("state hash %016x\n%s", s.Hash(), hex.Dump(data))
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text); diff != "" {
		t.Errorf("snapshot format v1 is frozen (-golden +got):\n%s", diff)
	}
	head, dump, _ := strings.Cut(string(want), "\n")
	var old []byte
	for line := range strings.Lines(dump) {
		if len(line) > 60 {
			b, err := hex.DecodeString(strings.ReplaceAll(line[10:58], " ", ""))
			if err != nil {
				t.Fatal(err)
			}
			old = append(old, b...)
		}
	}
	got, err := Read(bytes.NewReader(old), catalog.CurrentLevel)
	if err != nil {
		t.Fatalf("golden file: %v", err)
	}
	if h := fmt.Sprintf("state hash %016x", got.State.Hash()); h != head {
		t.Errorf("golden file has %s, its state %s", head, h)
	}
}

// Any input is refused with a typed error or is exactly what Write makes.
func FuzzRead(f *testing.F) {
	f.Add(mustWrite(f, catalog.NewState(), nil), true)
	f.Add(mustWrite(f, richState(f), richHistory()), true)
	f.Fuzz(func(t *testing.T, data []byte, repair bool) {
		if repair {
			data = repaired(data)
		}
		s, err := Read(bytes.NewReader(data), catalog.CurrentLevel)
		switch {
		case err == nil:
			var b bytes.Buffer
			if err := Write(&b, s.State, s.History); err != nil {
				t.Fatalf("what was read cannot be written: %v", err)
			}
			again, err := Read(&b, catalog.CurrentLevel)
			if err != nil || again.Header != s.Header {
				t.Fatalf("written again: %v", err)
			}
		case !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrLevel):
			t.Fatalf("untyped error %v", err)
		}
	})
}

// repaired sets every checksum right, so that a fuzzer reaches the rows.
func repaired(data []byte) []byte {
	if len(data) < headFixed {
		return data
	}
	var b bytes.Buffer
	w := writer{w: &b, sum: newInput(nil).sum}
	rest := data
	for at := headFixed; len(rest) >= at; at = frameBytes {
		n := at + int(rest[at-2])<<8 + int(rest[at-1])
		if at == frameBytes {
			n += int(rest[at-3]) << 16
		}
		if n+crcBytes > len(rest) {
			return append(b.Bytes(), rest...)
		}
		trailer := at == frameBytes && rest[0] == kindTrailer
		if err := w.emit(bytes.Clone(rest[:n]), "part"); err != nil {
			panic(err)
		}
		if rest = rest[n+crcBytes:]; trailer {
			sum := w.sum.Sum64()
			for i := 7; i >= 0; i-- {
				b.WriteByte(byte(sum >> (8 * i)))
			}
			break
		}
	}
	return b.Bytes()
}
