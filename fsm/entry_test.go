package fsm

import (
	"bytes"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"flag"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/stavedb/stave/catalog"
)

var update = flag.Bool("update", false, "write the golden files anew")

// exact compares unexported fields too.
var exact = cmp.Exporter(func(reflect.Type) bool { return true })

// samples makes a command of every kind from a seed.
var samples = map[catalog.Kind]func(uint64, bool) catalog.Command{
	catalog.KindNewTerm:             sample[catalog.NewTerm],
	catalog.KindActivateIncarnation: sample[catalog.ActivateIncarnation],
	catalog.KindSetLimits:           sample[catalog.SetLimits],
	catalog.KindSetFeatureLevel:     sample[catalog.SetFeatureLevel],
	catalog.KindChecksum:            sample[catalog.Checksum],
	catalog.KindAnnounceMember:      sample[catalog.AnnounceMember],
	catalog.KindForgetMember:        sample[catalog.ForgetMember],
	catalog.KindCreateDatabase:      sample[catalog.CreateDatabase],
	catalog.KindAlterDatabase:       sample[catalog.AlterDatabase],
	catalog.KindDropDatabase:        sample[catalog.DropDatabase],
	catalog.KindCreateTable:         sample[catalog.CreateTable],
	catalog.KindAlterTable:          sample[catalog.AlterTable],
	catalog.KindRescaleTable:        sample[catalog.RescaleTable],
	catalog.KindDropTable:           sample[catalog.DropTable],
	catalog.KindCreatePartitions:    sample[catalog.CreatePartitions],
	catalog.KindDropPartitions:      sample[catalog.DropPartitions],
	catalog.KindImportBatch:         sample[catalog.ImportBatch],
	catalog.KindRegisterServer:      sample[catalog.RegisterServer],
	catalog.KindRenewLeases:         sample[catalog.RenewLeases],
	catalog.KindExpireServers:       sample[catalog.ExpireServers],
	catalog.KindUnregisterServer:    sample[catalog.UnregisterServer],
	catalog.KindTagServer:           sample[catalog.TagServer],
	catalog.KindAssignPending:       sample[catalog.AssignPending],
	catalog.KindAdjustISR:           sample[catalog.AdjustISR],
	catalog.KindElectLeaders:        sample[catalog.ElectLeaders],
	catalog.KindReassign:            sample[catalog.Reassign],
	catalog.KindStartRebalance:      sample[catalog.StartRebalance],
	catalog.KindStepRebalance:       sample[catalog.StepRebalance],
	catalog.KindCancelRebalance:     sample[catalog.CancelRebalance],
	catalog.KindAckDeletion:         sample[catalog.AckDeletion],
	catalog.KindPurgeDropped:        sample[catalog.PurgeDropped],
	catalog.KindRegisterClient:      sample[catalog.RegisterClient],
	catalog.KindExpireClients:       sample[catalog.ExpireClients],
	catalog.KindPutKV:               sample[catalog.PutKV],
	catalog.KindDeleteKV:            sample[catalog.DeleteKV],
	catalog.KindTxnKV:               sample[catalog.TxnKV],
	catalog.KindAllocateIDs:         sample[catalog.AllocateIDs],
}

func sample[T catalog.Command](seed uint64, sparse bool) catalog.Command {
	return *filled[T](seed, sparse)
}

func mustEntry(t testing.TB, env catalog.Envelope, cmd catalog.Command) []byte {
	t.Helper()
	data, err := AppendEntry(nil, env, cmd)
	if err != nil {
		t.Fatalf("%s: %v", cmd.Kind(), err)
	}
	return data
}

// Every kind that the catalog knows can be written and read with all its
// fields; a field that a codec forgets is zero after decoding.
func TestEntry_EveryKindEveryField(t *testing.T) {
	for _, kind := range catalog.Kinds() {
		t.Run(kind.String(), func(t *testing.T) {
			sample, ok := samples[kind]
			if !ok {
				t.Fatal("the kind has no sample")
			}
			check := func(seed uint64, sparse bool) error {
				env, cmd := *filled[catalog.Envelope](seed, sparse), sample(seed, sparse)
				data, err := AppendEntry([]byte("before"), env, cmd)
				if err != nil {
					return err
				}
				data = data[len("before"):]
				var d Decoder
				input := bytes.Clone(data)
				gotEnv, got, err := d.Decode(input)
				if err != nil {
					return err
				}
				clear(input) // what was decoded owns its memory
				if diff := cmp.Diff(env, gotEnv) + cmp.Diff(cmd, got, exact); diff != "" {
					return fmt.Errorf("changed (-encoded +decoded):\n%s", diff)
				}
				if again, err := AppendEntry(nil, gotEnv, got); err != nil || !bytes.Equal(again, data) {
					return fmt.Errorf("encoded again: %x, %w, want %x", again, err, data)
				}
				return nil
			}
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

// Empty and nil lists are the same bytes.
func TestEntry_EmptyIsNil(t *testing.T) {
	a := mustEntry(t, catalog.Envelope{}, catalog.CreatePartitions{Table: "a.b", Specs: []catalog.PartitionSpec{{}}})
	b := mustEntry(t, catalog.Envelope{}, catalog.CreatePartitions{
		Table: "a.b", Specs: []catalog.PartitionSpec{nil}, Assignment: [][]catalog.ServerID{},
	})
	if !bytes.Equal(a, b) {
		t.Errorf("%x differs from %x", a, b)
	}
}

// A flipped bit or a cut anywhere is refused, by both doors.
func TestEntry_EveryByteCounts(t *testing.T) {
	for kind, make := range samples {
		data := mustEntry(t, *filled[catalog.Envelope](1, false), make(1, false))
		for i := range data {
			bad := bytes.Clone(data)
			bad[i] ^= 1 << (i % 8)
			var d Decoder
			if _, _, err := d.Decode(bad); !errors.Is(err, ErrCorruptEntry) || !errors.Is(VerifyEntry(bad), ErrCorruptEntry) {
				t.Fatalf("%s: byte %d changed: %v", kind, i, err)
			}
			if err := VerifyEntry(data[:i]); !errors.Is(err, ErrCorruptEntry) {
				t.Fatalf("%s: cut at %d: %v", kind, i, err)
			}
		}
	}
}

// seal gives an entry a valid checksum.
func seal(data []byte) []byte {
	return binary.BigEndian.AppendUint32(bytes.Clone(data), crc32.Checksum(data, castagnoli))
}

// Entries of another build are told from damaged ones; what is not canonical
// is refused though its checksum holds.
func TestDecode_Refusals(t *testing.T) {
	good := mustEntry(t, catalog.Envelope{}, catalog.SetFeatureLevel{Level: 5})
	body := good[:len(good)-crcBytes]
	with := func(at int, b byte) []byte {
		out := bytes.Clone(body)
		out[at] = b
		return seal(out)
	}
	tests := []struct {
		name string
		data []byte
		want error
	}{
		{"format", with(0, 2), ErrUnknownKind},
		{"kind", with(1, 0xfe), ErrUnknownKind},
		{"version", with(2, 2), ErrUnknownKind},
		{"kind 0", with(1, 0), ErrUnknownKind},
		{"trailing byte", seal(append(bytes.Clone(body), 0xc0)), ErrCorruptEntry},
		{"long number", seal(append(bytes.Clone(body[:len(body)-1]), 0xcc, 5)), ErrCorruptEntry},
		{"missing body", seal(body[:len(body)-2]), ErrCorruptEntry},
		{"other body", with(len(body)-1, 0xc3), ErrCorruptEntry},
		{"empty", nil, ErrCorruptEntry},
		{"too long", seal(make([]byte, MaxEntryBytes)), ErrCorruptEntry},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var d Decoder
			if _, _, err := d.Decode(tt.data); !errors.Is(err, tt.want) {
				t.Errorf("Decode = %v, want %v", err, tt.want)
			}
		})
	}
}

type foreign struct{}

func (foreign) Kind() catalog.Kind { return catalog.KindPutKV }

// What cannot become an entry is a refusal with the numbers, never an entry.
func TestAppendEntry_Refusals(t *testing.T) {
	tests := []struct {
		name string
		cmd  catalog.Command
		code catalog.Code
	}{
		{"too large", catalog.PutKV{Key: "k", Value: make([]byte, MaxEntryBytes)}, catalog.ErrTooLarge},
		{"not UTF-8", catalog.PutKV{Key: "\xff"}, catalog.ErrInvalidArgument},
		{"another type", foreign{}, catalog.ErrUnknownCommand},
		{"nil", nil, catalog.ErrUnknownCommand},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			buf, err := AppendEntry([]byte("x"), catalog.Envelope{}, tt.cmd)
			var e *catalog.Error
			if !errors.As(err, &e) || e.Code != tt.code || string(buf) != "x" {
				t.Fatalf("AppendEntry = %q, %v, want %v", buf, err, tt.code)
			}
			if tt.code == catalog.ErrTooLarge && (e.Limit != MaxEntryBytes || e.Size <= MaxEntryBytes) {
				t.Errorf("limit %d, size %d", e.Limit, e.Size)
			}
		})
	}
}

// VerifyEntry is on the path of every entry sent or applied.
func TestVerifyEntry_NoAllocation(t *testing.T) {
	data := mustEntry(t, catalog.Envelope{}, catalog.Checksum{})
	n := testing.AllocsPerRun(100, func() {
		if err := VerifyEntry(data); err != nil {
			t.Fatal(err)
		}
	})
	if n != 0 {
		t.Errorf("%v allocations", n)
	}
}

// The entries of every released version are read for ever.
func TestGolden_Entries(t *testing.T) {
	var text strings.Builder
	for _, kind := range catalog.Kinds() {
		for _, sparse := range []bool{false, true} {
			env, cmd := filled[catalog.Envelope](uint64(kind), sparse), samples[kind](uint64(kind), sparse)
			fmt.Fprintf(&text, "%s %s\n", kind, hex.EncodeToString(mustEntry(t, *env, cmd)))
		}
	}
	dir := filepath.Join("..", "testdata", "golden")
	file := filepath.Join(dir, "entries-v1.txt")
	if *update {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), text.String()); diff != "" {
		t.Errorf("log format v1 is frozen (-golden +got):\n%s", diff)
	}
	var d Decoder
	for line := range strings.Lines(string(want)) {
		name, digits, _ := strings.Cut(strings.TrimSpace(line), " ")
		data, err := hex.DecodeString(digits)
		if err != nil {
			t.Fatal(err)
		}
		if _, cmd, err := d.Decode(data); err != nil || cmd.Kind().String() != name {
			t.Errorf("%s: %v, %v", name, cmd, err)
		}
	}
}

// Any input is refused with a typed error, or encodes to the same bytes.
func FuzzDecode(f *testing.F) {
	for kind, make := range samples {
		data := mustEntry(f, *filled[catalog.Envelope](1, false), make(uint64(kind), false))
		f.Add(data[:len(data)-crcBytes], true)
	}
	f.Add(mustEntry(f, catalog.Envelope{}, catalog.Checksum{}), false)
	f.Fuzz(func(t *testing.T, data []byte, sealed bool) {
		if sealed {
			data = seal(data)
		}
		var d Decoder
		env, cmd, err := d.Decode(data)
		if err != nil {
			if !errors.Is(err, ErrCorruptEntry) && !errors.Is(err, ErrUnknownKind) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if again, err := AppendEntry(nil, env, cmd); err != nil || !bytes.Equal(again, data) {
			t.Fatalf("%x decodes and encodes as %x, %v", data, again, err)
		}
	})
}
