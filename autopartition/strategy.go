package autopartition

import (
	"slices"
	"time"

	"github.com/stavedb/stave/catalog"
)

// Strategy is how one table is partitioned by time. It is immutable and may be
// used concurrently.
type Strategy struct {
	// Enabled says that the table is partitioned automatically. A strategy that
	// is not still reads and writes values.
	Enabled bool
	// Key is the partition key that holds the time, and its place among the keys.
	Key      string
	KeyIndex int
	Pattern  catalog.TimePattern
	Zone     *time.Location
	// Precreate counts the partitions kept ready, the current one included;
	// Retention the past ones that are kept, all of them if negative.
	Precreate, Retention int
	// Delay is by how much creation runs late. Zero for most tables.
	Delay time.Duration
}

// NewStrategy reads a table's properties. It is an error if the table is not
// partitioned or its format is not valid, which creation has refused.
//
// Without a zone the table runs in UTC. So it does with one that is not known,
// which CheckZone keeps out of new tables but an import may bring along: that is
// where the system it comes from had put the partitions.
func NewStrategy(t *catalog.Table) (Strategy, error) {
	if !t.Partitioned() {
		return Strategy{}, &catalog.Error{Code: catalog.ErrTableNotPartitioned, Message: "table " + t.Path + " is not partitioned"}
	}
	format, _ := catalog.PropertyValue(t.Properties, catalog.PropAutoFormat)
	pattern, err := catalog.NewTimePattern(t.AutoUnit(), format)
	if err != nil {
		return Strategy{}, err
	}
	s := Strategy{
		Enabled: t.AutoPartitioned(), Key: t.AutoKey(), Pattern: pattern, Zone: time.UTC,
		Precreate: t.AutoPrecreate(), Retention: t.AutoRetention(),
	}
	s.KeyIndex = max(0, slices.Index(t.PartitionKeys, s.Key))
	if name, ok := catalog.PropertyValue(t.Properties, catalog.PropAutoZone); ok {
		if zone, known := loadZone(name); known {
			s.Zone = zone
		}
	}
	if pattern.Unit() == catalog.UnitDay && s.Precreate > 1 {
		s.Delay = delayOf(t.ID)
	}
	return s, nil
}

// delayMinutes is one less than a day, by as much as a late run may need.
const delayMinutes = 23 * 60

// delayOf spreads tables with neighbouring ids evenly over the day, so that all
// leaders agree about each of them.
func delayOf(id catalog.TableID) time.Duration {
	mixed := (uint64(id) + 1) * 0x9E3779B97F4A7C15 // the golden ratio of 2^64
	return time.Duration(mixed>>32*delayMinutes>>32) * time.Minute
}

// maxOffset is beyond every year that a value can hold, for each unit.
var maxOffset = map[catalog.TimeUnit]int{
	catalog.UnitYear: 20_000, catalog.UnitQuarter: 80_000, catalog.UnitMonth: 240_000, catalog.UnitDay: 7_400_000, catalog.UnitHour: 178_000_000,
}

// Value returns the partition value of the period that is offset periods after
// the one of a wall time; false if its year is not in 1..9999.
func (s *Strategy) Value(wall catalog.Millis, offset int) (string, bool) {
	unit := s.Pattern.Unit()
	bound := maxOffset[unit]
	offset = min(max(offset, -bound), bound)
	at := time.UnixMilli(int64(wall)).In(s.Zone)
	switch unit {
	case catalog.UnitYear:
		return s.Pattern.Format(catalog.TimeValue{Year: at.Year() + offset})
	case catalog.UnitQuarter:
		year, month := addMonths(at, 3*offset)
		return s.Pattern.Format(catalog.TimeValue{Year: year, Quarter: (month + 2) / 3})
	case catalog.UnitMonth:
		year, month := addMonths(at, offset)
		return s.Pattern.Format(catalog.TimeValue{Year: year, Month: month})
	case catalog.UnitDay:
		// Counted on the calendar alone: a day without midnight is a day.
		day := time.Date(at.Year(), at.Month(), at.Day()+offset, 0, 0, 0, 0, time.UTC)
		return s.Pattern.Format(catalog.TimeValue{Year: day.Year(), Month: int(day.Month()), Day: day.Day()})
	case catalog.UnitHour:
		// In seconds: a Duration ends after 292 years.
		hour := time.Unix(at.Unix()+int64(offset)*3600, 0).In(s.Zone)
		return s.Pattern.Format(catalog.TimeValue{Year: hour.Year(), Month: int(hour.Month()), Day: hour.Day(), Hour: hour.Hour()})
	}
	return "", false
}

// addMonths counts months on the calendar and leaves the day out, so that the
// 31st of one month never leads into the month after the next.
func addMonths(at time.Time, n int) (year, month int) {
	total := at.Year()*12 + int(at.Month()) - 1 + n
	year = total / 12
	month = total % 12
	if month < 0 {
		year, month = year-1, month+12
	}
	return year, month + 1
}

// Earliest returns the oldest value that is kept at a wall time; false if all
// are.
func (s *Strategy) Earliest(wall catalog.Millis) (string, bool) {
	if s.Retention < 0 {
		return "", false
	}
	return s.Value(wall, -s.Retention)
}

// IsPast reports whether a value is of a period before that of a wall time. One
// that does not parse is not.
func (s *Strategy) IsPast(value string, wall catalog.Millis) bool {
	current, ok := s.Value(wall, 0)
	return ok && s.before(value, current)
}

// before compares two values of the pattern; false if the first is not one.
func (s *Strategy) before(value, bound string) bool {
	if value >= bound {
		return false
	}
	_, err := s.Pattern.Parse(value)
	return err == nil
}
