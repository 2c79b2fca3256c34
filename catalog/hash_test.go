package catalog

import (
	"fmt"
	"reflect"
	"testing"
)

// unhashed are fields that take no part in a hash, with the reason.
var unhashed = map[string]string{
	"Database.hash":      "the hash itself",
	"Table.hash":         "the hash itself",
	"Partition.hash":     "the hash itself",
	"Table.sum":          "remembers a part of the hash",
	"Partition.sum":      "remembers a part of the hash",
	"Server.hash":        "the hash itself",
	"Member.hash":        "the hash itself",
	"KeyValue.hash":      "the hash itself",
	"Counter.hash":       "the hash itself",
	"Import.hash":        "the hash itself",
	"DroppedObject.hash": "the hash itself",
	"Rebalance.hash":     "the hash itself",
	"Client.hash":        "the hash itself",
	"Client.gen":         "who owns the record in memory",
	"Client.results":     "hashed one by one, see Result",
}

// TestHash_EveryField: changing any one field of any row changes its hash, also
// within lists, and a row and its copy have the same.
func TestHash_EveryField(t *testing.T) {
	b := &Batch{}
	full := func(v any) any {
		fillValue(reflect.ValueOf(v).Elem(), new(int))
		return v
	}
	for _, c := range []struct {
		row  any
		hash func(any) uint64
	}{
		{&Cluster{}, func(v any) uint64 { return hashCluster(v.(*Cluster)) }},
		{&Database{}, func(v any) uint64 { return b.hashDatabase(v.(*Database)) }},
		{&Table{}, func(v any) uint64 { return b.hashTable(v.(*Table)) }},
		{&Partition{}, func(v any) uint64 { return b.hashPartition(v.(*Partition)) }},
		{&Server{}, func(v any) uint64 { return b.hashServer(v.(*Server)) }},
		{&Member{}, func(v any) uint64 { return b.hashMember(v.(*Member)) }},
		{&KeyValue{}, func(v any) uint64 { return b.hashKeyValue(v.(*KeyValue)) }},
		{&Counter{}, func(v any) uint64 { return b.hashCounter(v.(*Counter)) }},
		{&Import{}, func(v any) uint64 { return b.hashImport(v.(*Import)) }},
		{&Rebalance{}, func(v any) uint64 { return b.hashRebalance(v.(*Rebalance)) }},
		{&DroppedObject{}, func(v any) uint64 { return b.hashDropped(v.(*DroppedObject)) }},
		{&Client{}, func(v any) uint64 { return b.hashClient(v.(*Client)) }},
		{&Result{}, func(v any) uint64 { return b.hashResult(1, 1, v.(*Result)) }},
	} {
		name := reflect.TypeOf(c.row).Elem().Name()
		row := full(c.row)
		want := c.hash(row)
		if got := c.hash(row); got != want {
			t.Errorf("%s: hash %x, then %x", name, want, got)
		}
		n := 0
		eachLeaf(reflect.ValueOf(row).Elem(), name, func(path string, leaf reflect.Value) {
			n++
			undo := bump(leaf)
			if c.hash(row) == want {
				t.Errorf("%s takes no part in the hash", path)
			}
			undo()
		})
		if c.hash(row) != want || n < 3 {
			t.Errorf("%s: %d fields visited, hash not restored", name, n)
		}
	}
	r := &Result{}
	if b.hashResult(1, 2, r) == b.hashResult(2, 1, r) || b.hashResult(1, 2, r) == b.hashResult(1, 3, r) {
		t.Error("client and sequence take no part in a result's hash")
	}
}

// fillValue gives every field a value of its own, lists two elements.
func fillValue(v reflect.Value, n *int) {
	*n++
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).IsExported() {
				fillValue(v.Field(i), n)
			}
		}
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillValue(v.Elem(), n)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 2, 2))
		fillValue(v.Index(0), n)
		fillValue(v.Index(1), n)
	case reflect.String:
		v.SetString(fmt.Sprint("s", *n))
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Int32, reflect.Int64:
		v.SetInt(int64(*n))
	case reflect.Uint8, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(*n))
	default:
		panic("kind " + v.Kind().String())
	}
}

func eachLeaf(v reflect.Value, path string, f func(string, reflect.Value)) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Type().Field(i)
			name := path + "." + field.Name
			if _, ok := unhashed[name]; ok {
				continue
			}
			if !field.IsExported() {
				panic("unexported field " + name + " is neither hashed nor excused")
			}
			eachLeaf(v.Field(i), name, f)
		}
	case reflect.Pointer:
		f(path, v) // set to nil
		eachLeaf(v.Elem(), path, f)
	case reflect.Slice:
		f(path, v) // one element less
		for i := range v.Len() {
			eachLeaf(v.Index(i), fmt.Sprintf("%s[%d]", path, i), f)
		}
	default:
		f(path, v)
	}
}

// bump changes a value and returns what undoes it.
func bump(v reflect.Value) (undo func()) {
	old := reflect.New(v.Type()).Elem()
	old.Set(v)
	switch v.Kind() {
	case reflect.Pointer:
		v.SetZero()
	case reflect.Slice:
		v.Set(v.Slice(0, 1))
	case reflect.String:
		v.SetString(v.String() + "'")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Int32, reflect.Int64:
		v.SetInt(v.Int() + 1)
	default:
		v.SetUint(v.Uint() + 1)
	}
	return func() { v.Set(old) }
}

// TestHash_EnvelopeData: what an envelope says of times and of its client is in
// the hash, and nothing else of it.
func TestHash_EnvelopeData(t *testing.T) {
	base := NewState().Begin()
	base.Apply(1, Envelope{}, RegisterClient{Name: "c"})
	s := base.Publish()
	hash := func(env Envelope) uint64 {
		b := s.Begin()
		b.Apply(2, env, Checksum{})
		return b.Publish().Hash()
	}
	want := hash(Envelope{Client: 1, Sequence: 2})
	for name, env := range map[string]Envelope{
		"lease":    {Client: 1, Sequence: 2, Lease: 1},
		"wall":     {Client: 1, Sequence: 2, Wall: 1},
		"sequence": {Client: 1, Sequence: 3},
		"ack":      {Client: 1, Sequence: 2, Ack: 1},
		"client":   {},
	} {
		if hash(env) == want {
			t.Errorf("%s takes no part in the hash", name)
		}
	}
	// The actor is in the event, not in the state.
	if hash(Envelope{Client: 1, Sequence: 2, Actor: "me"}) != want {
		t.Error("the actor takes part in the hash")
	}
}
