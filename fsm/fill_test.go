package fsm

import (
	"fmt"
	"reflect"

	"github.com/stavedb/stave/catalog"
)

// filler gives every exported field below a value something that is not zero,
// the same for the same seed on every machine.
type filler struct {
	n uint64
	// sparse leaves about every third field zero.
	sparse bool
}

func (f *filler) next() uint64 {
	f.n = f.n*6364136223846793005 + 1442695040888963407
	x := f.n ^ f.n>>29
	return x>>uint(x%48) | 1 // all widths, never 0
}

func (f *filler) fill(v reflect.Value) {
	if f.sparse && f.next()%6 < 2 {
		return
	}
	switch v.Kind() {
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		x := int64(f.next()) >> (64 - v.Type().Bits())
		v.SetInt(x | 1)
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(f.next()<<(64-v.Type().Bits())>>(64-v.Type().Bits()) | 1)
	case reflect.String:
		v.SetString(fmt.Sprintf("é%x", f.next()))
	case reflect.Slice:
		s := reflect.MakeSlice(v.Type(), int(1+f.next()%3), 3)
		for i := range s.Len() {
			f.fill(s.Index(i))
		}
		v.Set(s.Slice3(0, s.Len(), s.Len()))
	case reflect.Pointer:
		if p, ok := v.Addr().Interface().(**catalog.Placement); ok {
			*p = f.placement()
			return
		}
		v.Set(reflect.New(v.Type().Elem()))
		f.fill(v.Elem())
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				f.fill(v.Field(i))
			}
		}
		// An unset optional value is zero: what is in it has no bytes.
		if set := v.FieldByName("Set"); v.NumField() == 2 && set.IsValid() && set.Kind() == reflect.Bool && !set.Bool() {
			v.SetZero()
		}
	default:
		panic(fmt.Sprintf("no value for a %s", v.Type()))
	}
}

// placement has as many replica lists as buckets, one ISR like its replicas.
func (f *filler) placement() *catalog.Placement {
	p := &catalog.Placement{Replicas: make([][]catalog.ServerID, 3), Buckets: make([]catalog.BucketState, 3)}
	for i := range p.Buckets {
		p.Replicas[i] = []catalog.ServerID{catalog.ServerID(i), 7, catalog.ServerID(10 + i)}
		f.fill(reflect.ValueOf(&p.Buckets[i]).Elem())
	}
	p.Buckets[1].ISR = p.Replicas[1]
	return p
}

func filled[T any](seed uint64, sparse bool) *T {
	v := new(T)
	(&filler{n: seed, sparse: sparse}).fill(reflect.ValueOf(v).Elem())
	return v
}
