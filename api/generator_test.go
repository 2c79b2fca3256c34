package api

import (
	"reflect"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/stavedb/stave/catalog"
)

// same compares catalog values: an empty list is a nil one, and hashes belong
// to the state that holds a row.
var same = cmp.Options{
	cmpopts.EquateEmpty(),
	cmpopts.IgnoreUnexported(
		catalog.Database{}, catalog.Table{}, catalog.Partition{}, catalog.Server{}, catalog.Member{}, catalog.KeyValue{},
		catalog.Counter{}, catalog.DroppedObject{}, catalog.Rebalance{}, catalog.Import{}, catalog.Client{},
	),
}

// filler sets every exported field of a value: at random, or, if t is nil, to
// something that is not zero, so that a forgotten field shows.
type filler struct {
	t *rapid.T
	n int64
}

func (f *filler) number(lowest, highest int64) int64 {
	if f.t == nil {
		f.n++
		return 1 + f.n%highest
	}
	return rapid.Int64Range(lowest, highest).Draw(f.t, "int")
}

func (f *filler) length() int {
	if f.t == nil {
		return 2
	}
	return rapid.IntRange(0, 3).Draw(f.t, "len")
}

func (f *filler) flag() bool { return f.t == nil || rapid.Bool().Draw(f.t, "bool") }

func (f *filler) text() string {
	if f.t == nil {
		f.n++
		return "text" + string(rune('a'+f.n%26))
	}
	return rapid.String().Draw(f.t, "text")
}

var ranges = map[reflect.Type]int64{
	reflect.TypeFor[catalog.ServerTag]():       int64(catalog.TemporaryOffline),
	reflect.TypeFor[catalog.RebalanceStatus](): int64(catalog.RebalanceTimedOut),
}

func (f *filler) fill(v reflect.Value) {
	if p, ok := v.Addr().Interface().(*catalog.Placement); ok {
		f.placement(p)
		return
	}
	switch v.Kind() {
	case reflect.String:
		v.SetString(f.text())
	case reflect.Bool:
		v.SetBool(f.flag())
	case reflect.Int32, reflect.Int64, reflect.Int:
		bits := v.Type().Bits()
		v.SetInt(f.number(-1<<(bits-1), 1<<(bits-1)-1))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32:
		highest, ok := ranges[v.Type()]
		if !ok {
			highest = 1<<v.Type().Bits() - 1
		}
		v.SetUint(uint64(f.number(0, highest)))
	case reflect.Uint64:
		v.SetUint(uint64(f.number(-1<<63, 1<<63-1)))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), f.length(), 3))
		for i := range v.Len() {
			f.fill(v.Index(i))
		}
	case reflect.Pointer:
		if f.flag() {
			v.Set(reflect.New(v.Type().Elem()))
			f.fill(v.Elem())
		}
	case reflect.Struct:
		f.fields(v)
	default:
		panic("no way to fill " + v.Type().String())
	}
}

func (f *filler) fields(v reflect.Value) {
	if set := v.FieldByName("Set"); v.NumField() == 2 && set.IsValid() && set.Kind() == reflect.Bool {
		if set.SetBool(f.flag()); set.Bool() {
			f.fill(v.FieldByName("V"))
		}
		return
	}
	for i := range v.NumField() {
		if v.Type().Field(i).IsExported() {
			f.fill(v.Field(i))
		}
	}
}

// placement keeps the invariant that replicas and states have one length.
func (f *filler) placement(p *catalog.Placement) {
	n := f.length()
	p.Replicas, p.Buckets = make([][]catalog.ServerID, n), make([]catalog.BucketState, n)
	for i := range n {
		f.fill(reflect.ValueOf(&p.Replicas[i]).Elem())
		f.fill(reflect.ValueOf(&p.Buckets[i]).Elem())
	}
}

// filled returns a value of type T; a nil t sets every field.
func filled[T any](t *rapid.T) T {
	var v T
	f := filler{t: t}
	f.fill(reflect.ValueOf(&v).Elem())
	return v
}

// checkFilled runs a property on a value with every field set, then on random ones.
func checkFilled[T any](t *testing.T, check func(t rapid.TB, v T)) {
	t.Helper()
	full := filled[T](nil)
	check(t, full)
	rapid.Check(t, func(rt *rapid.T) { check(rt, filled[T](rt)) })
}

// The filler leaves no field of a command at zero.
func TestFiller_Full(t *testing.T) {
	c := filled[catalog.ImportBatch](nil)
	var walk func(path string, v reflect.Value)
	walk = func(path string, v reflect.Value) {
		if v.Kind() == reflect.Struct {
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(path+"."+v.Type().Field(i).Name, v.Field(i))
				}
			}
			return
		}
		if v.IsZero() {
			t.Errorf("%s is zero", path)
		}
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				walk(path, v.Index(i))
			}
		}
	}
	walk("ImportBatch", reflect.ValueOf(c))
}
