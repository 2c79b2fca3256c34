package catalog

import (
	"slices"
	"strconv"
	"strings"
)

// MaxColumns bounds the columns of a table over all its schema versions.
const MaxColumns = 2048

var reservedColumns = []string{"__offset", "__timestamp", "__bucket", "_change_type", "_log_offset", "_commit_timestamp"}

// newTable builds and validates the row of a table to be created: everything
// that does not depend on other rows. Its id, times and placement are left open.
func newTable(c CreateTable, limits Limits) (*Table, *Error) {
	t := &Table{Path: c.Table, Comment: c.Comment, Buckets: c.Buckets.Or(1)}
	if err := checkText("comment", c.Comment, maxComment); err != nil {
		return nil, err
	}
	columns, err := newColumns(nil, 0, c.Columns)
	if err != nil {
		return nil, err
	}
	t.Schemas = []Schema{{ID: 1, Columns: columns}}
	t.NextColumn = ColumnID(len(columns))
	t.PrimaryKey, t.PartitionKeys, t.BucketKeys = slices.Clone(c.PrimaryKey), slices.Clone(c.PartitionKeys), slices.Clone(c.BucketKeys)
	if err := resolveKeys(t); err != nil {
		return nil, err
	}
	if t.Properties, err = sortedProperties("properties", c.Properties); err != nil {
		return nil, err
	}
	if t.CustomProperties, err = sortedProperties("custom properties", c.CustomProperties); err != nil {
		return nil, err
	}
	fillDefaults(t)
	return t, validateTable(t, limits)
}

// newColumns appends columns to a schema, with ids from next.
func newColumns(have []Column, next ColumnID, add []NewColumn) ([]Column, *Error) {
	if n := len(have) + len(add); n > MaxColumns {
		return nil, refuseLimit(ErrTooLarge, MaxColumns, uint64(n), "%d columns are above %d", n, MaxColumns)
	}
	out := slices.Clone(have)
	seen := make(map[string]bool, len(have)+len(add))
	for _, c := range have {
		seen[c.Name] = true
	}
	for _, c := range add {
		if c.Name == "" {
			return nil, refuse(ErrInvalidTable, "a column name is empty")
		}
		if err := checkText("column name", c.Name, maxNameBytes); err != nil {
			return nil, err
		}
		if err := checkText("comment of column "+c.Name, c.Comment, maxComment); err != nil {
			return nil, err
		}
		if slices.Contains(reservedColumns, c.Name) {
			return nil, refuse(ErrInvalidTable, "column name %s is reserved; reserved are %s", c.Name, strings.Join(reservedColumns, ", "))
		}
		typ, err := ParseDataType(string(c.Type))
		if err != nil {
			return nil, refuse(ErrInvalidTable, "column %s: %s", c.Name, err)
		}
		if seen[c.Name] {
			return nil, refuse(ErrInvalidTable, "column %s is given twice", c.Name)
		}
		seen[c.Name] = true
		out = append(out, Column{ID: next, Name: c.Name, Type: typ, Comment: c.Comment})
		next++
	}
	if len(out) == 0 {
		return nil, refuse(ErrInvalidTable, "a table needs at least one column")
	}
	return out, nil
}

func columnIndex(columns []Column, name string) int {
	return slices.IndexFunc(columns, func(c Column) bool { return c.Name == name })
}

// resolveKeys checks primary, partition and bucket keys against the columns,
// makes primary key columns NOT NULL and fills the default bucket key.
func resolveKeys(t *Table) *Error {
	columns := t.Schemas[0].Columns
	for _, k := range []struct {
		name string
		keys []string
	}{{"primary key", t.PrimaryKey}, {"partition key", t.PartitionKeys}, {"bucket key", t.BucketKeys}} {
		for i, key := range k.keys {
			if columnIndex(columns, key) < 0 {
				return refuse(ErrInvalidTable, "%s '%s' does not exist in the schema", k.name, key)
			}
			if slices.Contains(k.keys[:i], key) {
				return refuse(ErrInvalidTable, "%s '%s' is given twice", k.name, key)
			}
		}
	}
	for _, k := range t.BucketKeys {
		if slices.Contains(t.PartitionKeys, k) {
			return refuse(ErrInvalidTable, "bucket key '%s' is a partition key", k)
		}
	}
	if len(t.PrimaryKey) == 0 {
		return nil
	}
	for _, k := range t.PrimaryKey {
		i := columnIndex(columns, k)
		columns[i].Type = columns[i].Type.NotNull()
	}
	for _, k := range t.PartitionKeys {
		if !slices.Contains(t.PrimaryKey, k) {
			return refuse(ErrInvalidTable, "partition key '%s' is not in the primary key [%s]", k, strings.Join(t.PrimaryKey, ", "))
		}
	}
	physical := t.PhysicalPrimaryKey()
	if len(physical) == 0 {
		return refuse(ErrInvalidTable, "primary key [%s] must have a column that is not a partition key", strings.Join(t.PrimaryKey, ", "))
	}
	if len(t.BucketKeys) == 0 {
		t.BucketKeys = physical
	}
	for _, k := range t.BucketKeys {
		if !slices.Contains(t.PrimaryKey, k) {
			return refuse(ErrInvalidTable, "bucket key '%s' is not in the primary key [%s]", k, strings.Join(t.PrimaryKey, ", "))
		}
	}
	return nil
}

// PhysicalPrimaryKey returns the primary key without the partition keys, in
// primary key order. The slice is the caller's.
func (t *Table) PhysicalPrimaryKey() []string {
	var out []string
	for _, k := range t.PrimaryKey {
		if !slices.Contains(t.PartitionKeys, k) {
			out = append(out, k)
		}
	}
	return out
}

// DefaultBucketKey reports whether the bucket key is the primary key without
// the partition keys, in the same order, or absent on a log table.
func (t *Table) DefaultBucketKey() bool { return slices.Equal(t.BucketKeys, t.PhysicalPrimaryKey()) }

// fillDefaults sets the properties that a table gets when they are unset.
func fillDefaults(t *Table) {
	def := func(key, value string) {
		if _, ok := PropertyValue(t.Properties, key); !ok {
			t.Properties = setProperty(t.Properties, Property{key, value})
		}
	}
	def(PropReplication, "1")
	if len(t.PrimaryKey) > 0 {
		def(PropKVFormatVersion, "2")
		def(PropStandby, "true")
		if t.property(propMergeEngine) != "" {
			def(propDeleteBehavior, "IGNORE")
		}
	}
	if len(t.PartitionKeys) > 1 && t.AutoPartitioned() {
		def(PropAutoPrecreate, "0")
	}
}

// validateTable checks a complete row, at creation and after each alteration.
func validateTable(t *Table, limits Limits) *Error {
	if err := checkTableProperties(t.Properties); err != nil {
		return err
	}
	if err := checkCustomProperties(t.CustomProperties); err != nil {
		return err
	}
	if t.Buckets < 1 {
		return refuse(ErrInvalidTable, "bucket count %d is below 1", t.Buckets)
	}
	if uint32(t.Buckets) > limits.Buckets {
		return tooManyBuckets(t.Buckets, limits)
	}
	replication, err := strconv.ParseInt(t.property(PropReplication), 10, 32)
	if err != nil || replication < 1 {
		return refuse(ErrInvalidConfig, "'%s' must be greater than 0, but is %s", PropReplication, t.property(PropReplication))
	}
	if replication > maxReplication {
		return refuseLimit(ErrInvalidConfig, maxReplication, uint64(replication), "'%s' %d is above %d", PropReplication, replication, maxReplication)
	}
	t.Replication = int32(replication)
	for _, check := range []func(*Table) *Error{validateKeyTypes, validateMerge, validateTTL, validateAutoPartition} {
		if err := check(t); err != nil {
			return err
		}
	}
	return nil
}

const maxReplication = 128

func tooManyBuckets(count int32, limits Limits) *Error {
	return refuseLimit(ErrBucketMaxNum, uint64(limits.Buckets), uint64(count),
		"Bucket count %d exceeds the maximum limit %d for a non-partitioned table or partition.", count, limits.Buckets)
}

func checkCustomProperties(props []Property) *Error {
	for _, p := range props {
		switch {
		case strings.HasPrefix(p.Key, tablePropertyPrefix):
			return refuse(ErrInvalidConfig, "custom property '%s' must not begin with '%s'", p.Key, tablePropertyPrefix)
		case p.Key == propPaimonBucket || p.Key == propPaimonBucketBare:
			return refuse(ErrInvalidConfig, "property '%s' is set by the bucket count and must not be given", p.Key)
		case p.Key == "bucket.num":
			return refuse(ErrInvalidConfig, "property 'bucket.num' is the bucket count: rescale the table instead")
		}
	}
	return nil
}

var partitionKeyRoots = []TypeRoot{
	CharType, StringType, BooleanType, BinaryType, BytesType, TinyIntType, SmallIntType, IntType, DateType, TimeType, BigIntType,
	FloatType, DoubleType, TimestampType, TimestampLTZType,
}

func validateKeyTypes(t *Table) *Error {
	columns := t.Schema().Columns
	nested := []TypeRoot{ArrayType, MapType, RowType}
	for _, k := range slices.Concat(t.BucketKeys, t.PrimaryKey) {
		typ := columns[columnIndex(columns, k)].Type
		if slices.Contains(nested, typ.Root()) {
			return refuse(ErrInvalidTable, "bucket or primary key column '%s' has type %s; ARRAY, MAP and ROW are not supported", k, typ)
		}
	}
	for _, k := range t.PartitionKeys {
		typ := columns[columnIndex(columns, k)].Type
		if !slices.Contains(partitionKeyRoots, typ.Root()) {
			return refuse(ErrInvalidTable, "partition key column '%s' has type %s, which is not supported", k, typ)
		}
	}
	return nil
}

var versionRoots = []TypeRoot{IntType, BigIntType, TimestampType, TimestampLTZType}

func validateMerge(t *Table) *Error {
	engine := strings.ToLower(t.property(propMergeEngine))
	if len(t.PrimaryKey) == 0 {
		for _, k := range []string{propMergeEngine, propDeleteBehavior, PropStandby} {
			if t.property(k) != "" {
				return refuse(ErrInvalidConfig, "'%s' is only supported for primary key tables", k)
			}
		}
	}
	if engine != "versioned" {
		return nil
	}
	name := t.property(propVersionColumn)
	if name == "" {
		return refuse(ErrInvalidConfig, "'%s' must be set for the versioned merge engine", propVersionColumn)
	}
	columns := t.Schema().Columns
	i := columnIndex(columns, name)
	if i < 0 {
		return refuse(ErrInvalidConfig, "version column '%s' does not exist", name)
	}
	if typ := columns[i].Type; !slices.Contains(versionRoots, typ.Root()) {
		return refuse(ErrInvalidConfig, "version column '%s' has type %s, want INT, BIGINT, TIMESTAMP or TIMESTAMP_LTZ", name, typ)
	}
	return nil
}

func validateTTL(t *Table) *Error {
	ttl, local := t.property(propLogTTL), t.property(propLogLocalTTL)
	if ttl == "" || local == "" {
		return nil
	}
	a, err := Duration(ttl)
	b, err2 := Duration(local)
	if err == nil && err2 == nil && b > a {
		return refuse(ErrInvalidConfig, "'%s' %s must be at most '%s' %s", propLogLocalTTL, local, propLogTTL, ttl)
	}
	return nil
}

func validateAutoPartition(t *Table) *Error {
	auto := t.AutoPartitioned()
	if !t.Partitioned() {
		if auto {
			return refuse(ErrInvalidConfig, "'%s' is only supported for partitioned tables", PropAutoEnabled)
		}
		return nil
	}
	unit := t.AutoUnit()
	format := t.property(PropAutoFormat)
	if format != "" {
		if err := ValidateTimeFormat(unit, format); err != nil {
			return refuse(ErrInvalidTable, "property '%s': %s", PropAutoFormat, err)
		}
	}
	if !auto {
		return nil
	}
	if n := t.propertyInt(PropAutoPrecreate, 2); n < 0 {
		return refuse(ErrInvalidConfig, "'%s' %d is below 0", PropAutoPrecreate, n)
	}
	key := t.property(PropAutoKey)
	if len(t.PartitionKeys) > 1 {
		if key == "" {
			return refuse(ErrInvalidTable, "'%s' must be set for a table with %d partition keys", PropAutoKey, len(t.PartitionKeys))
		}
		if n := t.propertyInt(PropAutoPrecreate, 0); n != 0 {
			return refuse(ErrInvalidTable, "'%s' %d must be 0 for a table with %d partition keys", PropAutoPrecreate, n, len(t.PartitionKeys))
		}
	}
	if key != "" && !slices.Contains(t.PartitionKeys, key) {
		return refuse(ErrInvalidTable, "'%s' is '%s', which is not in the partition keys [%s]", PropAutoKey, key, strings.Join(t.PartitionKeys, ", "))
	}
	columns := t.Schema().Columns
	if columns[columnIndex(columns, t.AutoKey())].Type.Root() == DateType && (unit != UnitDay || format != "yyyy-MM-dd") {
		return refuse(ErrInvalidTable, "auto partition key '%s' is a DATE: the unit must be DAY and the format yyyy-MM-dd", t.AutoKey())
	}
	return nil
}

// AutoKey returns the partition key that holds the time.
func (t *Table) AutoKey() string {
	if k := t.property(PropAutoKey); k != "" {
		return k
	}
	return t.PartitionKeys[0]
}

// AutoUnit returns the unit of automatic partitions; DAY if unset.
func (t *Table) AutoUnit() TimeUnit {
	u, ok := ParseTimeUnit(t.property(PropAutoUnit))
	if !ok {
		return UnitDay
	}
	return u
}
