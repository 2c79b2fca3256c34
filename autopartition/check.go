package autopartition

import (
	"fmt"

	"github.com/stavedb/stave/catalog"
)

// CheckCreate refuses the creation by hand of a partition that the table's
// schedule has no place for. With automatic partitions the value of the auto key
// must be one of the table's format and not older than the retention keeps; it
// may be in any future. With a time format alone only the format counts. All
// other specs pass.
//
// The error is a *catalog.Error with catalog.ErrPartitionSpecInvalid, or the one
// of catalog.PartitionName for a spec that does not fit the table's keys.
func CheckCreate(t *catalog.Table, spec catalog.PartitionSpec, wall catalog.Millis) error {
	return checkSpecs(t, []catalog.PartitionSpec{spec}, wall)
}

func checkSpecs(t *catalog.Table, specs []catalog.PartitionSpec, wall catalog.Millis) error {
	format, _ := catalog.PropertyValue(t.Properties, catalog.PropAutoFormat)
	if !t.Partitioned() || !t.AutoPartitioned() && format == "" {
		return nil
	}
	s, err := NewStrategy(t)
	if err != nil {
		return invalidSpec("time format of table %s: %s", t.Path, err)
	}
	for _, spec := range specs {
		if err := s.checkSpec(t, spec, wall); err != nil {
			return err
		}
	}
	return nil
}

func (s *Strategy) checkSpec(t *catalog.Table, spec catalog.PartitionSpec, wall catalog.Millis) error {
	if _, err := catalog.PartitionName(t, spec, true); err != nil {
		return err
	}
	value := ""
	for _, p := range spec {
		if p.Key == s.Key {
			value = p.Value
		}
	}
	if _, err := s.Pattern.Parse(value); err != nil {
		return invalidSpec("partition value '%s' of auto partition key '%s' of table %s is not a time of unit %s in format %s: %s",
			value, s.Key, t.Path, s.Pattern.Unit(), s.Pattern, err)
	}
	if !s.Enabled {
		return nil
	}
	if earliest, bounded := s.Earliest(wall); bounded && value < earliest {
		return invalidSpec("partition value '%s' of auto partition key '%s' of table %s is out-of-date: the earliest retained partition is '%s' ('%s' is %d)",
			value, s.Key, t.Path, earliest, catalog.PropAutoRetention, s.Retention)
	}
	return nil
}

func invalidSpec(format string, args ...any) error {
	return &catalog.Error{Code: catalog.ErrPartitionSpecInvalid, Message: fmt.Sprintf(format, args...)}
}

// CheckCommand refuses a command that only the leader can judge, because it
// takes a clock or a zone: a creation of partitions as CheckCreate does, and a
// table whose zone is not known. All other commands pass, and so do commands on
// tables that the state does not have; the catalog has the word on them.
func CheckCommand(st *catalog.State, cmd catalog.Command, wall catalog.Millis) error {
	switch c := cmd.(type) {
	case catalog.CreateTable:
		return checkZones(c.Properties)
	case catalog.AlterTable:
		return checkZones(c.Set)
	case catalog.CreatePartitions:
		t, ok := st.Table(c.Table)
		if !ok || c.TableID.Set && c.TableID.V != t.ID {
			return nil
		}
		return checkSpecs(t, c.Specs, wall)
	}
	return nil
}

func checkZones(props []catalog.Property) error {
	for _, p := range props {
		if p.Key == catalog.PropAutoZone {
			if err := CheckZone(p.Value); err != nil {
				return err
			}
		}
	}
	return nil
}
