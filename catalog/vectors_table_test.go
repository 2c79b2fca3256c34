package catalog

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type tableRow struct {
	ID            string
	Columns       []string
	PrimaryKey    []string `json:"primary_key"`
	PartitionKeys []string `json:"partition_keys"`
	BucketCount   *int32   `json:"bucket_count"`
	BucketKeys    []string `json:"bucket_keys"`
	MaxBucketNum  uint32   `json:"max_bucket_num"`
	Lake          *string  `json:"cluster_lake_format"`
	Properties    map[string]string
	Resolved      []string `json:"resolved_bucket_keys"`
	DefaultKey    bool     `json:"default_bucket_key"`
	Stage, Result string
}

func (r tableRow) command() CreateTable {
	c := CreateTable{Table: "db.t", PrimaryKey: r.PrimaryKey, PartitionKeys: r.PartitionKeys, BucketKeys: r.BucketKeys}
	for _, text := range r.Columns {
		name, typ, _ := strings.Cut(text, " ")
		c.Columns = append(c.Columns, NewColumn{Name: name, Type: DataType(typ)})
	}
	if r.BucketCount != nil {
		c.Buckets = Some(*r.BucketCount)
	}
	for k, v := range r.Properties {
		c.Properties = append(c.Properties, Property{k, v})
	}
	return c
}

// stricter are rows that upstream accepts and Stave refuses on purpose.
var stricter = map[string]Code{
	"bucket_count_zero":             ErrInvalidTable,  // no row could be routed
	"bucket_count_negative":         ErrInvalidTable,  // the same
	"bucket_count_zero_partitioned": ErrInvalidTable,  // every creation of a partition would fail
	"dup_partition_key":             ErrInvalidTable,  // no spec could name it
	"dup_bucket_key":                ErrInvalidTable,  // a typing error
	"precreate_negative":            ErrInvalidConfig, // means nothing
}

// defaulted are rows that upstream's validator refuses because it ran without
// the server's defaults, which Stave fills in first.
var defaulted = map[string]string{
	"no_distribution_log": "the bucket count defaults to 1",
	"rf_missing":          "the replication factor defaults to 1",
}

// elsewhere are rows that need what the catalog does not know.
var elsewhere = map[string]string{
	"lake_mismatch": "compares with a lake format of the whole cluster, which is configuration of the proposer",
}

var exceptionCodes = map[string]Code{
	"IllegalArgumentException":          ErrInvalidTable, // of the descriptor's constructor
	"IllegalStateException":             ErrInvalidTable,
	"InvalidTableException":             ErrInvalidTable,
	"InvalidConfigException":            ErrInvalidConfig,
	"TooManyBucketsException":           ErrBucketMaxNum,
	"InvalidReplicationFactorException": ErrInvalidReplicationFactor,
}

// TestVectors_TableValidation: a table is accepted or refused as upstream does,
// with its code, except where a refusal is better.
func TestVectors_TableValidation(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range vectors[tableRow](t, "table_validation") {
		seen[r.ID] = true
		if _, skip := elsewhere[r.ID]; skip {
			continue
		}
		t.Run(r.ID, func(t *testing.T) {
			h := newHistory(t)
			h.must(CreateDatabase{Name: "db"})
			h.must(SetLimits{Limits: Limits{Buckets: r.MaxBucketNum}})
			want := Done
			if r.Result != "ok" && defaulted[r.ID] == "" {
				class, _, _ := strings.Cut(r.Result, ":")
				var known bool
				if want, known = exceptionCodes[class]; !known {
					t.Fatalf("class %s", class)
				}
			}
			if code, ok := stricter[r.ID]; ok {
				if r.Result != "ok" {
					t.Errorf("upstream refuses this too: %s", r.Result)
				}
				want = code
			}
			if want != Done {
				res := h.refused(want, r.command())
				t.Log(res.Message)
				return
			}
			h.must(r.command())
			got := h.table("db.t")
			if d := cmp.Diff(r.Resolved, got.BucketKeys); d != "" && len(r.Resolved)+len(got.BucketKeys) > 0 {
				t.Errorf("bucket keys: -want +got\n%s", d)
			}
			if got.DefaultBucketKey() != r.DefaultKey {
				t.Errorf("default bucket key: %v, want %v", got.DefaultBucketKey(), r.DefaultKey)
			}
			for _, c := range got.Schema().Columns {
				if c.Type.Nullable() == slices.Contains(r.PrimaryKey, c.Name) {
					t.Errorf("column %s is %s with primary key %v", c.Name, c.Type, r.PrimaryKey)
				}
			}
		})
	}
	for id := range elsewhere {
		if !seen[id] {
			t.Errorf("there is no row %s", id)
		}
	}
	for id := range stricter {
		if !seen[id] {
			t.Logf("row %s is not in the file; TestCreateTable_Stricter covers it", id)
		}
	}
}

// TestCreateTable_Stricter: the refusals beyond upstream's, each by name.
func TestCreateTable_Stricter(t *testing.T) {
	base := func() CreateTable {
		return CreateTable{
			Table: "db.t", Columns: []NewColumn{{Name: "a", Type: "INT"}, {Name: "b", Type: "INT"}, {Name: "c", Type: "STRING"}},
			PrimaryKey: []string{"a", "b", "c"}, PartitionKeys: []string{"c"},
		}
	}
	for name, c := range map[string]struct {
		edit func(*CreateTable)
		code Code
		text string
	}{
		"bucket_count_zero_partitioned": {func(c *CreateTable) { c.Buckets = Some[int32](0) }, ErrInvalidTable, "bucket count 0 is below 1"},
		"bucket_count_negative":         {func(c *CreateTable) { c.Buckets = Some[int32](-3) }, ErrInvalidTable, "bucket count -3 is below 1"},
		"dup_partition_key":             {func(c *CreateTable) { c.PartitionKeys = []string{"c", "c"} }, ErrInvalidTable, "partition key 'c' is given twice"},
		"dup_bucket_key":                {func(c *CreateTable) { c.BucketKeys = []string{"a", "a"} }, ErrInvalidTable, "bucket key 'a' is given twice"},
		"precreate_negative": {func(c *CreateTable) {
			c.Properties = []Property{{PropAutoEnabled, "true"}, {PropAutoPrecreate, "-1"}}
		}, ErrInvalidConfig, "-1 is below 0"},
		"property_twice": {func(c *CreateTable) {
			c.CustomProperties = []Property{{"k", "1"}, {"k", "2"}}
		}, ErrInvalidConfig, `key "k" is given twice`},
		"bucket_num_property":   {func(c *CreateTable) { c.CustomProperties = []Property{{"bucket.num", "4"}} }, ErrInvalidConfig, "rescale"},
		"paimon_bucket_option":  {func(c *CreateTable) { c.CustomProperties = []Property{{"paimon.bucket", "4"}} }, ErrInvalidConfig, "paimon.bucket"},
		"type_with_junk_behind": {func(c *CreateTable) { c.Columns[0].Type = "INT\x00x" }, ErrInvalidTable, "end of the type"},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHistory(t)
			h.must(CreateDatabase{Name: "db"})
			cmd := base()
			c.edit(&cmd)
			h.refused(c.code, cmd, c.text)
			if n := h.last.Cluster().NextTable; n != 0 {
				t.Errorf("a refused creation took table id %d", n-1)
			}
		})
	}
}
