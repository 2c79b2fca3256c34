package catalog

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Names of the table properties that Stave itself acts on.
const (
	PropReplication      = "table.replication.factor"
	PropLakeEnabled      = "table.datalake.enabled"
	PropLakeFormat       = "table.datalake.format"
	PropKVFormatVersion  = "table.kv.format-version"
	PropStandby          = "table.kv.standby-replica.enabled"
	PropAutoEnabled      = "table.auto-partition.enabled"
	PropAutoKey          = "table.auto-partition.key"
	PropAutoUnit         = "table.auto-partition.time-unit"
	PropAutoFormat       = "table.auto-partition.time-format"
	PropAutoPrecreate    = "table.auto-partition.num-precreate"
	PropAutoRetention    = "table.auto-partition.num-retention"
	PropAutoZone         = "table.auto-partition.time-zone"
	PropHistorical       = "table.datalake.historical-partition.enabled"
	propMergeEngine      = "table.merge-engine"
	propVersionColumn    = "table.merge-engine.versioned.ver-column"
	propDeleteBehavior   = "table.delete.behavior"
	propLogTTL           = "table.log.ttl"
	propLogLocalTTL      = "table.log.local-ttl"
	tablePropertyPrefix  = "table."
	propPaimonBucket     = "paimon.bucket"
	propPaimonBucketBare = "bucket"
)

// propertyRule says how the value of a table property is read and whether a
// table may be altered in it.
type propertyRule struct {
	parse     func(string) error
	alterable bool
}

var propertyRules = map[string]propertyRule{
	PropReplication:                          {parse: parseInt32, alterable: false},
	PropLakeEnabled:                          {parse: parseBool, alterable: true},
	PropLakeFormat:                           {parse: oneOf("paimon", "iceberg", "hudi", "lance")},
	"table.datalake.freshness":               {parse: parseDuration, alterable: true},
	"table.datalake.auto-compaction":         {parse: parseBool, alterable: true},
	"table.datalake.auto-expire-snapshot":    {parse: parseBool},
	PropHistorical:                           {parse: parseBool, alterable: true},
	PropKVFormatVersion:                      {parse: oneOf("1", "2")},
	PropStandby:                              {parse: parseBool, alterable: true},
	"table.kv.format":                        {parse: oneOf("compacted", "indexed")},
	"table.log.format":                       {parse: oneOf("arrow", "indexed", "compacted")},
	"table.log.arrow.compression.type":       {parse: oneOf("none", "lz4_frame", "zstd")},
	"table.log.arrow.compression.zstd.level": {parse: parseInt32},
	"table.log.tiered.local-segments":        {parse: parsePositive, alterable: true},
	propLogTTL:                               {parse: parseDuration, alterable: true},
	propLogLocalTTL:                          {parse: parseDuration, alterable: true},
	PropAutoEnabled:                          {parse: parseBool, alterable: true},
	PropAutoKey:                              {parse: parseAny},
	PropAutoUnit:                             {parse: oneOf("year", "quarter", "month", "day", "hour")},
	PropAutoFormat:                           {parse: parseAny},
	PropAutoPrecreate:                        {parse: parseInt32, alterable: true},
	PropAutoRetention:                        {parse: parseInt32, alterable: true},
	PropAutoZone:                             {parse: parseAny},
	propMergeEngine:                          {parse: oneOf("first_row", "versioned", "aggregation")},
	propVersionColumn:                        {parse: parseAny},
	propDeleteBehavior:                       {parse: oneOf("allow", "ignore", "disable")},
	"table.auto-increment.cache-size":        {parse: parsePositive},
	"table.statistics.columns":               {parse: parseAny, alterable: true},
	"table.changelog.image":                  {parse: oneOf("full", "wal")},
	"table.merge-engine.aggregate.remove-record-on-delete": {parse: parseBool},
}

func parseAny(string) error { return nil }

func parseBool(v string) error {
	if !strings.EqualFold(v, "true") && !strings.EqualFold(v, "false") {
		return fmt.Errorf("want true or false")
	}
	return nil
}

func parseInt32(v string) error {
	if _, err := strconv.ParseInt(v, 10, 32); err != nil {
		return fmt.Errorf("want a 32-bit integer")
	}
	return nil
}

func parsePositive(v string) error {
	if n, err := strconv.ParseInt(v, 10, 32); err != nil || n < 1 {
		return fmt.Errorf("want an integer in 1..%d", int32(1<<31-1))
	}
	return nil
}

func oneOf(values ...string) func(string) error {
	return func(v string) error {
		for _, w := range values {
			if strings.EqualFold(v, w) {
				return nil
			}
		}
		return fmt.Errorf("want one of %s", strings.Join(values, ", "))
	}
}

func parseDuration(v string) error {
	_, err := Duration(v)
	return err
}

var durationUnits = map[string]time.Duration{
	"ns": time.Nanosecond, "nano": time.Nanosecond, "us": time.Microsecond, "ms": time.Millisecond, "": time.Millisecond,
	"s": time.Second, "sec": time.Second, "min": time.Minute, "m": time.Minute, "h": time.Hour, "hour": time.Hour,
	"d": 24 * time.Hour, "day": 24 * time.Hour,
}

// Duration reads a duration property: a number and one of ns, us, ms, s, min,
// h, d; without a unit milliseconds.
func Duration(v string) (time.Duration, error) {
	v = strings.ToLower(strings.TrimSpace(v))
	i := 0
	for i < len(v) && v[i] >= '0' && v[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(v[:i], 10, 64)
	unit := strings.TrimSpace(v[i:])
	f, ok := durationUnits[unit]
	if !ok {
		f, ok = durationUnits[strings.TrimSuffix(unit, "s")]
	}
	if err != nil || !ok {
		return 0, fmt.Errorf("want a duration such as 7d, 12h or 30min")
	}
	if n > int64((1<<63-1)/f) {
		return 0, fmt.Errorf("want a duration below 292 years")
	}
	return time.Duration(n) * f, nil
}

// checkTableProperties checks keys and values one by one.
func checkTableProperties(props []Property) *Error {
	for _, p := range props {
		rule, ok := propertyRules[p.Key]
		if !ok {
			return refuse(ErrInvalidConfig, "'%s' is not a table property", p.Key)
		}
		if err := rule.parse(p.Value); err != nil {
			return refuse(ErrInvalidConfig, "property '%s': cannot read value '%s': %s", p.Key, p.Value, err)
		}
	}
	return nil
}

func (t *Table) property(key string) string {
	v, _ := PropertyValue(t.Properties, key)
	return v
}

func (t *Table) propertyOn(key string) bool { return strings.EqualFold(t.property(key), "true") }

func (t *Table) propertyInt(key string, def int) int {
	v, ok := PropertyValue(t.Properties, key)
	if !ok {
		return def
	}
	n, _ := strconv.Atoi(v) //nolint:errcheck // values are checked before they are stored
	return n
}

// LakeFormat returns "paimon", "iceberg", "hudi", "lance" or "".
func (t *Table) LakeFormat() string { return strings.ToLower(t.property(PropLakeFormat)) }

// LakeEnabled reports whether the table is tiered to a lake.
func (t *Table) LakeEnabled() bool { return t.propertyOn(PropLakeEnabled) }

// AutoPartitioned reports whether partitions are created automatically.
func (t *Table) AutoPartitioned() bool { return t.propertyOn(PropAutoEnabled) }

// Standby reports whether the table keeps standby replicas of its buckets.
func (t *Table) Standby() bool { return len(t.PrimaryKey) > 0 && t.propertyOn(PropStandby) }
