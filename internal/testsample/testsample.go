// Package testsample writes testdata/sample/catalog.jsonl: a catalog as a shop
// with a data platform might have it, as export lines. It is the same bytes on
// every run.
//
// The platform ran for a third of its life on a store that knew no layout
// epochs: partitions of that time are legacy.
package testsample

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

// shape says how a table is partitioned and for how many days.
type shape struct {
	keys []string
	days int
	// slices are the values of the second key.
	slices []string
}

// spec describes one table.
type spec struct {
	path    string
	shape   shape
	buckets []int32 // at epoch 0, 1, ...
	primary []string
	columns []string
	owner   string
}

var (
	regions = []string{"apac", "emea", "latam", "na"}
	whole   = shape{}
	daily   = shape{keys: []string{"dt"}, days: 180}
	region  = shape{keys: []string{"dt", "region"}, days: 90, slices: regions}
	hourly  = shape{keys: []string{"dt", "hour"}, days: 21, slices: hours()}

	lastDay = time.Date(2026, time.November, 30, 0, 0, 0, 0, time.UTC)
)

func hours() []string {
	out := make([]string, 24)
	for h := range out {
		out[h] = fmt.Sprintf("%02d", h)
	}
	return out
}

// databases of the sample, in name order.
var databases = []catalog.Database{
	{Name: "ads", Comment: "campaigns and what they cost", Properties: []catalog.Property{{Key: "owner", Value: "marketing"}}},
	{Name: "iot", Comment: "sensors of warehouses and vans", Properties: []catalog.Property{{Key: "owner", Value: "logistics"}, {Key: "tier", Value: "gold"}}},
	{Name: "ops", Comment: "what the platform says about itself", Limits: catalog.Limits{Buckets: 256, Partitions: 20_000}},
	{Name: "shop", Comment: "orders, carts and customers", Properties: []catalog.Property{{Key: "owner", Value: "web"}, {Key: "pii", Value: "yes"}}},
}

// tables of the sample, in the order of their creation.
var tables = []spec{
	{"shop.customers", whole, []int32{16}, []string{"id"}, []string{"id BIGINT", "name STRING", "email STRING", "since DATE"}, "web"},
	{"shop.orders", daily, []int32{4}, []string{"id", "dt"}, []string{"id BIGINT", "dt STRING", "customer BIGINT", "total DECIMAL(12,2)"}, "web"},
	{"shop.order_lines", daily, []int32{4, 8}, []string{"id", "line", "dt"}, []string{"id BIGINT", "line INT", "dt STRING", "sku STRING", "quantity INT"}, "web"},
	{"shop.carts", daily, []int32{2, 4, 8}, nil, []string{"cart BIGINT", "dt STRING", "customer BIGINT", "items ARRAY<STRING>"}, "web"},
	{"shop.payments", daily, []int32{6}, []string{"id", "dt"}, []string{"id BIGINT", "dt STRING", "order_id BIGINT", "amount DECIMAL(12,2)"}, "payments"},
	{"shop.products", whole, []int32{8}, []string{"sku"}, []string{"sku STRING", "title STRING", "price DECIMAL(10,2)"}, "web"},
	{"shop.stock", whole, []int32{8}, []string{"sku", "site"}, []string{"sku STRING", "site INT", "quantity INT"}, "logistics"},
	{"shop.returns", region, []int32{2, 4}, []string{"id", "dt", "region"}, []string{"id BIGINT", "dt STRING", "region STRING", "reason STRING"}, "web"},
	{"shop.sessions", hourly, []int32{12, 24}, nil, []string{"session STRING", "dt STRING", "hour STRING", "pages INT"}, "web"},
	{"ads.campaigns", whole, []int32{4}, []string{"id"}, []string{"id BIGINT", "name STRING", "budget DECIMAL(14,2)"}, "marketing"},
	{"ads.impressions", daily, []int32{8, 16, 32}, nil, []string{"campaign BIGINT", "dt STRING", "at TIMESTAMP(3)", "user STRING"}, "marketing"},
	{"ads.clicks", daily, []int32{8, 16}, nil, []string{"campaign BIGINT", "dt STRING", "at TIMESTAMP(3)", "user STRING"}, "marketing"},
	{"ads.spend", daily, []int32{1}, []string{"campaign", "dt"}, []string{"campaign BIGINT", "dt STRING", "amount DECIMAL(14,2)"}, "finance"},
	{"ads.audiences", whole, []int32{4}, []string{"user"}, []string{"user STRING", "segments ARRAY<STRING>"}, "marketing"},
	{"ads.conversions", region, []int32{4, 6}, nil, []string{"campaign BIGINT", "dt STRING", "region STRING", "value DOUBLE"}, "marketing"},
	{"iot.devices", whole, []int32{16}, []string{"device"}, []string{"device BIGINT", "model STRING", "site INT"}, "logistics"},
	{"iot.readings", daily, []int32{16, 32}, nil, []string{"device BIGINT", "dt STRING", "at TIMESTAMP(3)", "celsius DOUBLE"}, "logistics"},
	{"iot.alarms", daily, []int32{2}, []string{"id", "dt"}, []string{"id BIGINT", "dt STRING", "device BIGINT", "level INT"}, "logistics"},
	{"iot.vans", whole, []int32{2}, []string{"van"}, []string{"van INT", "plate STRING"}, "logistics"},
	{"iot.positions", daily, []int32{8, 12, 16}, nil, []string{"van INT", "dt STRING", "at TIMESTAMP(3)", "lat DOUBLE", "lon DOUBLE"}, "logistics"},
	{"iot.deliveries", region, []int32{4}, []string{"id", "dt", "region"}, []string{"id BIGINT", "dt STRING", "region STRING", "van INT"}, "logistics"},
	{"iot.door_events", daily, []int32{4}, nil, []string{"site INT", "dt STRING", "door INT", "open BOOLEAN"}, "logistics"},
	{"ops.audit", daily, []int32{2, 4}, nil, []string{"actor STRING", "dt STRING", "action STRING"}, "platform"},
	{"ops.jobs", whole, []int32{1}, []string{"id"}, []string{"id BIGINT", "name STRING", "owner STRING"}, "platform"},
	{"ops.job_runs", daily, []int32{2}, []string{"id", "dt"}, []string{"id BIGINT", "dt STRING", "job BIGINT", "took_ms BIGINT"}, "platform"},
	{"ops.logs", hourly, []int32{16}, nil, []string{"host STRING", "dt STRING", "hour STRING", "line STRING"}, "platform"},
	{"ops.hosts", whole, []int32{2}, []string{"host"}, []string{"host STRING", "rack STRING"}, "platform"},
	{"ops.costs", region, []int32{1, 2}, nil, []string{"service STRING", "dt STRING", "region STRING", "amount DOUBLE"}, "finance"},
	{"ops.alerts", daily, []int32{1, 2, 4}, nil, []string{"rule STRING", "dt STRING", "at TIMESTAMP(3)"}, "platform"},
	{"ops.settings", whole, []int32{1}, []string{"name"}, []string{"name STRING", "value STRING"}, "platform"},
}

// Write writes the sample.
func Write(w io.Writer) error {
	for _, r := range Rows() {
		if err := api.WriteExportRow(w, r); err != nil {
			return err
		}
	}
	return nil
}

// Rows returns the rows of the sample in the order of an export.
func Rows() []api.ExportRow {
	parts, next := partitions()
	rows := []api.ExportRow{{Cluster: &api.ExportCluster{
		Format: api.ExportFormat, Incarnation: catalog.Incarnation{Number: 1_764_547_200_000, Random: 0x5ca1ab1e0ddba115}, Revision: 41_877,
		Counters: catalog.ImportCounters{NextTable: catalog.TableID(len(tables)), NextPartition: next},
	}}}
	for _, d := range databases {
		d.Created, d.Wall = millis(start()), millis(start())
		rows = append(rows, api.ExportRow{Database: &d})
	}
	order := make([]int, len(tables))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return strings.Compare(tables[a].path, tables[b].path) })
	for _, i := range order {
		rows = append(rows, api.ExportRow{Table: &catalog.ImportTable{Table: tables[i].table(i), Finished: tables[i].shape.days == 0}})
	}
	for _, i := range order {
		for _, p := range parts[i] {
			rows = append(rows, api.ExportRow{Partition: &p})
		}
	}
	return append(rows, keys()...)
}

func keys() []api.ExportRow {
	kv := func(key, value string, version uint64) api.ExportRow {
		return api.ExportRow{KeyValue: &catalog.ImportKeyValue{Key: key, Value: []byte(value), Version: version}}
	}
	return []api.ExportRow{
		kv("acl/ads", "marketing:rw,finance:r", 3),
		kv("acl/shop", "web:rw,payments:rw,finance:r", 12),
		kv("config/compaction", "hourly", 1),
		kv("config/token", "\xff\x00\xfe\x01", 2),
		{Counter: &catalog.ImportCounter{Name: "producer", Next: 18_244}},
		{Counter: &catalog.ImportCounter{Name: "transaction", Next: 7_000_001}},
	}
}
