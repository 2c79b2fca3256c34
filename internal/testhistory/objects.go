package testhistory

import (
	"slices"
	"strconv"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/stavedb/stave/catalog"
)

// step is one call as porcupine sees it: a read or a write of one object.
type step struct {
	read *Seen
	cmd  catalog.Command
}

// outcome is what came of it.
type outcome struct {
	code    catalog.Code
	version uint64 // or epoch
	count   int32
}

// objectModel is a key, or the layout of a table: a version and a value.
var objectModel = porcupine.Model{
	Init: func() any { return Seen{} },
	Step: func(state, in, out any) (bool, any) {
		s, i, o := state.(Seen), in.(step), out.(outcome)
		if i.read != nil {
			return *i.read == s, s
		}
		return write(s, i.cmd, o)
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return describe(in.(step), out.(outcome)) },
}

// write is one step of the model; it reports whether the outcome fits.
func write(s Seen, cmd catalog.Command, o outcome) (bool, Seen) {
	conflict := func(e catalog.Opt[uint64]) bool { return e.Set && e.V != s.Version }
	switch c := cmd.(type) {
	case catalog.PutKV:
		if conflict(c.ExpectedVersion) {
			return o.code == catalog.ErrVersionConflict, s
		}
		s = Seen{Version: s.Version + 1, Value: string(c.Value)}
		return o.code == catalog.Done && o.version == s.Version, s
	case catalog.DeleteKV:
		if s.Version == 0 && !c.IfExists {
			return o.code == catalog.ErrKeyNotExist, s
		}
		return o.code == catalog.Done, Seen{}
	case catalog.RescaleTable:
		if c.ExpectedEpoch.Set && uint64(c.ExpectedEpoch.V) != s.Version {
			return o.code == catalog.ErrVersionConflict, s
		}
		made := s == Seen{} // with one bucket
		if n := strconv.Itoa(int(c.Buckets)); n != s.Value && !(made && n == "1") {
			s = Seen{Version: s.Version + 1, Value: n}
		}
		return o.code == catalog.Done && o.version == s.Version && o.count == c.Buckets, s
	}
	return false, s
}

// objects asks porcupine about each object. A call whose fate was unknown took
// effect if the log has it, and then may have done so at any time.
func (j *judge) objects() {
	byObject := map[string][]porcupine.Operation{}
	end := int64(0)
	for i := range j.h.Ops {
		end = max(end, int64(j.h.Ops[i].Return)+1)
	}
	for i := range j.h.Ops {
		op := &j.h.Ops[i]
		if op.Object == "" || op.Fate == Failed {
			continue
		}
		res, back := op.Result, int64(op.Return)
		if op.Fate == Unknown {
			at := j.seqs[[2]uint64{uint64(op.Client), op.Sequence}]
			if at == 0 {
				continue
			}
			res, back = j.r.Entries[at].Result, end
		}
		o := outcome{code: res.Code, version: res.Version, count: res.Count}
		if _, ok := op.Command.(catalog.RescaleTable); ok {
			o.version = res.Epoch
		}
		in := step{read: op.Read, cmd: op.Command}
		if in.read != nil && op.Object[0] == 'l' && in.read.Version == 0 && in.read.Value == "1" {
			in.read = &Seen{} // a table as it is made
		}
		byObject[op.Object] = append(byObject[op.Object], porcupine.Operation{ClientId: op.Caller, Input: in, Call: int64(op.Call), Output: o, Return: back})
	}
	var names []string
	for name := range byObject {
		names = append(names, name)
	}
	slices.Sort(names)
	for _, name := range names {
		j.Objects++
		res, info := porcupine.CheckOperationsVerbose(objectModel, byObject[name], 30*time.Second)
		switch res {
		case porcupine.Ok:
		case porcupine.Illegal:
			j.problem("the calls on %s are not linearizable: %s", name, j.keepObject(name, info))
		case porcupine.Unknown:
			j.Undecided++
			j.problem("the calls on %s took too long to judge", name)
		}
	}
}
