package autopartition

import (
	"strings"
	"time"

	"github.com/stavedb/stave/catalog"
)

// MaxSteps bounds the drops and, by itself, the creations of one plan.
const MaxSteps = 1024

// Steps is what is due for one table: the drops first, as they may make room
// for the creations.
type Steps struct {
	// Drop are rows of the state the plan was made from.
	Drop []*catalog.Partition
	// Create are values of the table's only partition key, in order of time.
	Create []string
	// Held says that creations are due that do not fit into the table's limit of
	// partitions.
	Held bool
	// More says that a bound cut the plan: with the steps done, plan again.
	More bool
}

// Empty reports whether nothing is to be done.
func (s Steps) Empty() bool { return len(s.Drop) == 0 && len(s.Create) == 0 }

// Plan returns what is due for a table of a state at a wall time. A table that
// is not partitioned automatically, is dropped or is still being imported has
// nothing due. The plan is the same for everyone who makes it, and empty once it
// was carried out, unless the time or the table changed.
func (s *Strategy) Plan(st *catalog.State, t *catalog.Table, wall catalog.Millis) Steps {
	var out Steps
	if !s.Enabled || t.Dropped || t.Importing() {
		return out
	}
	earliest, bounded := s.Earliest(wall)
	if bounded {
		s.planDrops(st, t, earliest, &out)
	}
	room := int(st.Limits(t.Database()).Partitions) - st.PartitionCount(t.ID) + len(out.Drop)
	s.planCreates(st, t, s.creationTime(t, wall), earliest, room, &out)
	return out
}

// planDrops walks the names below the bound. Names begin with the value of the
// first key, so that the walk can end early if that is the one with the time.
func (s *Strategy) planDrops(st *catalog.State, t *catalog.Table, earliest string, out *Steps) {
	st.Partitions(t.ID, "", func(p *catalog.Partition) bool {
		if s.KeyIndex == 0 && p.Name >= earliest {
			return false
		}
		if !s.before(s.valueOf(p), earliest) {
			return true
		}
		if len(out.Drop) == MaxSteps {
			out.More = true
			return false
		}
		out.Drop = append(out.Drop, p)
		return true
	})
}

// valueOf cuts the value of the auto key out of a name.
func (s *Strategy) valueOf(p *catalog.Partition) string {
	rest := p.Name
	for range s.KeyIndex {
		_, rest, _ = strings.Cut(rest, "$")
	}
	value, _, _ := strings.Cut(rest, "$")
	return value
}

// creationTime is the time whose partitions have to be there: the delayed one,
// but never before the last change of the table, which made them due at once.
func (s *Strategy) creationTime(t *catalog.Table, wall catalog.Millis) catalog.Millis {
	return max(wall-catalog.Millis(s.Delay/time.Millisecond), min(t.Wall, wall))
}

// planCreates looks at one value after the other. Each is there already, takes
// room, or ends the walk, so that even an absurd num-precreate costs no more
// than the limit of partitions.
func (s *Strategy) planCreates(st *catalog.State, t *catalog.Table, at catalog.Millis, earliest string, room int, out *Steps) {
	previous := ""
	for k := range s.Precreate {
		value, ok := s.Value(at, k)
		if !ok {
			return // beyond year 9999
		}
		if value == previous || value < earliest {
			continue // the hour that is repeated in autumn; or gone before it came
		}
		previous = value
		if _, exists := st.Partition(t.ID, value); exists {
			continue
		}
		switch {
		case len(out.Create) >= room:
			out.Held = true
			return
		case len(out.Create) == MaxSteps:
			out.More = true
			return
		}
		out.Create = append(out.Create, value)
	}
}
