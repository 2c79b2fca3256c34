package autopartition

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/stavedb/stave/catalog"
)

// check is what a creation by hand is told before it is proposed.
func (w *world) check(name string) error {
	return CheckCommand(w.st, catalog.CreatePartitions{Table: "d.t", Specs: []catalog.PartitionSpec{w.spec(name)}}, w.wall)
}

func (w *world) wantOK(names ...string) {
	w.t.Helper()
	for _, n := range names {
		if err := w.check(n); err != nil {
			w.t.Errorf("create %s: %v", n, err)
		}
	}
}

func (w *world) wantInvalid(name string, texts ...string) {
	w.t.Helper()
	err := w.check(name)
	var e *catalog.Error
	if !errors.As(err, &e) || e.Code != catalog.ErrPartitionSpecInvalid {
		w.t.Errorf("create %s: %v, want %v", name, err, catalog.ErrPartitionSpecInvalid)
		return
	}
	for _, text := range texts {
		if !strings.Contains(e.Message, text) {
			w.t.Errorf("create %s: %q does not contain %q", name, e.Message, text)
		}
	}
}

func (w *world) wantNames(list ...string) {
	w.t.Helper()
	if d := cmp.Diff(list, w.names()); d != "" {
		w.t.Errorf("partitions: -want +got\n%s", d)
	}
}

// TestS25_TimeCheck: a creation by hand must be of the format and not older
// than the retention.
func TestS25_TimeCheck(t *testing.T) {
	w := newWorld(t, "2024-03-25T10:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoUnit: "DAY", catalog.PropAutoRetention: "7"})
	w.wantInvalid("2024-03-25", "format yyyyMMdd", "unit DAY")
	w.wantInvalid("20240317", "is out-of-date", "earliest retained partition", "'20240318'")
	w.wantOK("20240318", "20240325", "20991231")
	w.wantInvalid("20240230")
	w.wantInvalid("__historical__")
	spec := catalog.PartitionSpec{{Key: "region", Value: "20240325"}}
	if err := CheckCreate(w.row(), spec, w.wall); !errors.Is(err, catalog.ErrPartitionSpecInvalid) {
		t.Errorf("another key: %v", err)
	}
}

// TestS25_FormatAlone: with a time format and without automatic partitions only
// the format counts; without either nothing does.
func TestS25_FormatAlone(t *testing.T) {
	w := newWorld(t, "2024-03-25T10:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoEnabled: "false", catalog.PropAutoFormat: "yyyy-MM-dd"})
	w.wantOK("2024-03-25", "1999-01-01")
	w.wantInvalid("20240325", "format yyyy-MM-dd")
	if ops := w.run(); len(ops) > 0 {
		t.Errorf("off means off, but: %v", ops)
	}
	plain := newWorld(t, "2024-03-25T10:00:00Z")
	plain.table([]string{"dt"}, map[string]string{catalog.PropAutoEnabled: "false", catalog.PropAutoPrecreate: "3", catalog.PropAutoRetention: "0"})
	plain.wantOK("anything")
	plain.create("20000101")
	if ops := plain.run(); len(ops) > 0 {
		t.Errorf("off means off, but: %v", ops)
	}
}

// TestS26_RetentionOff: with retention -1 everything stays, and today's
// partition and one of 20 years ago can be created.
func TestS26_RetentionOff(t *testing.T) {
	w := newWorld(t, "2024-09-10T12:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoRetention: "-1", catalog.PropAutoPrecreate: "0"})
	w.wantOK("20240910", "20040910")
	w.create("20240910", "20040910")
	w.now("2034-09-10T12:00:00Z")
	if ops := w.run(); len(ops) > 0 {
		t.Errorf("after ten years: %v", ops)
	}
	w.wantNames("20040910", "20240910")
}

// TestS27_Quarter: quarters work in their default format.
func TestS27_Quarter(t *testing.T) {
	w := newWorld(t, "2024-09-10T12:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoUnit: "QUARTER"})
	w.wantOK("20243", "20251", "20224")
	w.wantInvalid("20223", "out-of-date")
	w.wantInvalid("20245", "quarter 5")
	w.wantInvalid("2024")
	w.wantInvalid("202403")
}

// TestS28_Day: precreation and retention by the day, also of what was made by
// hand; a dropped partition that is due comes back.
func TestS28_Day(t *testing.T) {
	w := newWorld(t, "2024-09-10T00:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoUnit: "DAY", catalog.PropAutoPrecreate: "4", catalog.PropAutoRetention: "2"})
	w.run()
	w.wantNames("20240910", "20240911", "20240912", "20240913")
	w.create("20240915")
	w.drop("20240910")
	w.later(3*24 + 23)
	w.force()
	w.run()
	w.wantNames("20240911", "20240912", "20240913", "20240914", "20240915", "20240916")
	w.later(2 * 24)
	w.force()
	w.run()
	w.wantNames("20240913", "20240914", "20240915", "20240916", "20240917", "20240918")
	w.drop("20240915")
	if d := cmp.Diff([]string{"create 20240915"}, w.run()); d != "" {
		t.Errorf("-want +got\n%s", d)
	}
}

// TestS29_Hour: the same by the hour.
func TestS29_Hour(t *testing.T) {
	w := newWorld(t, "2024-09-10T01:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoUnit: "HOUR", catalog.PropAutoPrecreate: "4", catalog.PropAutoRetention: "2"})
	w.run()
	w.wantNames("2024091001", "2024091002", "2024091003", "2024091004")
	w.create("2024091006")
	w.drop("2024091001")
	w.later(3)
	w.run()
	w.wantNames("2024091002", "2024091003", "2024091004", "2024091005", "2024091006", "2024091007")
	w.later(2)
	w.run()
	w.wantNames("2024091004", "2024091005", "2024091006", "2024091007", "2024091008", "2024091009")
}

// TestS30_LongUnits: months, quarters and years.
func TestS30_LongUnits(t *testing.T) {
	for _, c := range []struct {
		unit, hand, dropped string
		first               []string
		steps               [][]string // now, then the partitions
	}{
		{"MONTH", "202502", "202409", []string{"202409", "202410", "202411", "202412"}, [][]string{
			{"2024-12-10T00:00:00Z", "202410", "202411", "202412", "202501", "202502", "202503"},
			{"2025-02-10T00:00:00Z", "202412", "202501", "202502", "202503", "202504", "202505"},
		}},
		{"QUARTER", "20254", "20243", []string{"20243", "20244", "20251", "20252"}, [][]string{
			{"2025-06-10T00:00:00Z", "20244", "20251", "20252", "20253", "20254", "20261"},
		}},
		{"YEAR", "2029", "2024", []string{"2024", "2025", "2026", "2027"}, [][]string{
			{"2027-09-10T00:00:00Z", "2025", "2026", "2027", "2028", "2029", "2030"},
		}},
	} {
		t.Run(c.unit, func(t *testing.T) {
			w := newWorld(t, "2024-09-10T00:00:00Z")
			w.table([]string{"dt"}, map[string]string{catalog.PropAutoUnit: c.unit, catalog.PropAutoPrecreate: "4", catalog.PropAutoRetention: "2"})
			w.run()
			w.wantNames(c.first...)
			w.create(c.hand)
			w.drop(c.dropped)
			for _, step := range c.steps {
				w.now(step[0])
				w.run()
				w.wantNames(step[1:]...)
			}
		})
	}
}

// TestS31_MultiKey: with several keys only the retention works, on the value of
// the auto key wherever it stands.
func TestS31_MultiKey(t *testing.T) {
	props := map[string]string{catalog.PropAutoKey: "dt", catalog.PropAutoRetention: "2"}
	w := newWorld(t, "2024-09-10T00:00:00Z")
	w.table([]string{"dt", "region"}, props)
	w.create("20240910$A", "20240910$B", "20240910$C", "20240911$A", "20240911$B", "20240912$A", "20240913$A", "20240914$A")
	if ops := w.run(); len(ops) > 0 {
		t.Errorf("nothing is due, but: %v", ops)
	}
	w.drop("20240911$A")
	w.later(3*24 + 23)
	w.run()
	w.wantNames("20240911$B", "20240912$A", "20240913$A", "20240914$A")
	w.wantInvalid("20240910$D", "out-of-date")
	w.wantOK("20240911$D")

	last := newWorld(t, "2024-09-13T23:00:00Z")
	last.table([]string{"region", "dt"}, props)
	last.create("A$20240910", "A$20240911", "B$20240910", "B$20240912", "Z$20240901")
	last.run()
	last.wantNames("A$20240911", "B$20240912")
	last.wantInvalid("A$20240910", "out-of-date")
}

// TestS32_Zones: local time, with hours that are skipped and repeated.
func TestS32_Zones(t *testing.T) {
	for _, c := range []struct {
		zone, now, precreate string
		want                 []string
	}{
		{"Asia/Shanghai", "2024-09-10T01:00:00Z", "2", []string{"2024091009", "2024091010"}},
		{"America/Los_Angeles", "2024-03-10T09:30:00Z", "4", []string{"2024031001", "2024031003", "2024031004", "2024031005"}},
		{"America/Los_Angeles", "2024-11-03T08:30:00Z", "4", []string{"2024110301", "2024110302", "2024110303"}},
		{"GMT-8", "2024-11-03T08:30:00Z", "2", []string{"2024110300", "2024110301"}},
	} {
		w := newWorld(t, c.now)
		w.table([]string{"dt"}, map[string]string{catalog.PropAutoUnit: "HOUR", catalog.PropAutoZone: c.zone, catalog.PropAutoPrecreate: c.precreate})
		w.run()
		w.wantNames(c.want...)
	}
	w := newWorld(t, "2024-01-31T12:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoUnit: "MONTH", catalog.PropAutoPrecreate: "3"})
	w.run()
	w.wantNames("202401", "202402", "202403")
}

// TestS33_Limits: what does not fit is held, neither the rest nor the drops.
func TestS33_Limits(t *testing.T) {
	w := newWorld(t, "2024-09-10T00:00:00Z")
	w.must(catalog.SetLimits{Limits: catalog.Limits{Partitions: 3}})
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoPrecreate: "5", catalog.PropAutoRetention: "2"})
	w.create("20240910")
	steps := w.strategy().Plan(w.st, w.row(), w.wall)
	if d := cmp.Diff([]string{"20240911", "20240912"}, steps.Create); d != "" || !steps.Held {
		t.Errorf("held %v, -want +got\n%s", steps.Held, d)
	}
	w.run()
	w.wantNames("20240910", "20240911", "20240912")
	w.now("2024-09-14T00:00:00Z")
	w.force()
	w.run() // the drops of 10 and 11 make room
	w.wantNames("20240912", "20240914", "20240915")
	w.must(catalog.SetLimits{Limits: catalog.Limits{Partitions: 100}})
	w.run()
	w.wantNames("20240912", "20240914", "20240915", "20240916", "20240917", "20240918")
}

// TestS34_UnknownZone: a table with a zone that does not exist is refused, by
// its name; every spelling that Java knows is taken.
func TestS34_UnknownZone(t *testing.T) {
	create := func(zone string) error {
		return CheckCommand(catalog.NewState(), catalog.CreateTable{Table: "d.t", Properties: properties(map[string]string{catalog.PropAutoZone: zone})}, 0)
	}
	for _, zone := range []string{
		"Mars/Base", "UTC-8", "GMT+24", "GMT-8:60", "GMT+", "GMT+8:0", "GMT+123456", "Local", "localtime", "right/Europe/Berlin", "Europe", "europe/berlin",
		"../etc/passwd", "/etc/localtime", "Z", "+08:00", "gmt-8", "GMT+8 ",
	} {
		var e *catalog.Error
		if err := create(zone); !errors.As(err, &e) || e.Code != catalog.ErrInvalidConfig || !strings.Contains(e.Message, "'"+zone+"'") {
			t.Errorf("zone %s: %v, want %v", zone, err, catalog.ErrInvalidConfig)
		}
	}
	if err := CheckZone(""); !errors.Is(err, catalog.ErrInvalidConfig) {
		t.Errorf("empty zone: %v", err)
	}
	alter := catalog.AlterTable{Table: "d.t", Set: properties(map[string]string{catalog.PropAutoZone: "Mars/Base"})}
	if err := CheckCommand(catalog.NewState(), alter, 0); !errors.Is(err, catalog.ErrInvalidConfig) {
		t.Errorf("alter: %v", err)
	}
	winter := time.Date(2024, 1, 1, 0, 0, 0, 0, time.UTC)
	for zone, want := range map[string]time.Duration{
		"UTC": 0, "GMT": 0, "Etc/GMT+8": -8 * time.Hour, "GMT-8": -8 * time.Hour, "GMT+8": 8 * time.Hour, "GMT+08": 8 * time.Hour, "GMT+08:00": 8 * time.Hour,
		"GMT+0530": 330 * time.Minute, "GMT-5:30": -330 * time.Minute, "GMT+530": 330 * time.Minute, "GMT+23:59": 1439 * time.Minute, "GMT0": 0, "GMT-0": 0,
		"Europe/Berlin": time.Hour, "CTT": 8 * time.Hour, "PST": -8 * time.Hour, "EST": -5 * time.Hour, "Asia/Kolkata": 330 * time.Minute,
	} {
		if err := create(zone); err != nil {
			t.Errorf("zone %s: %v", zone, err)
			continue
		}
		loc, _ := loadZone(zone)
		if _, sec := winter.In(loc).Zone(); time.Duration(sec)*time.Second != want {
			t.Errorf("zone %s is %d s east, want %s", zone, sec, want)
		}
	}
	for short := range shortZones {
		if err := CheckZone(short); err != nil {
			t.Error(err)
		}
	}
}

// Values below the bound that are no times stay, and so does what only looks
// older as a string.
func TestPlan_KeepsWhatDoesNotParse(t *testing.T) {
	w := newWorld(t, "2024-09-10T00:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoPrecreate: "0", catalog.PropAutoRetention: "1"})
	w.create("0", "00000101", "2024", "20240230", "202409", "2024-01-01", "zzz", "20240908", "20240909")
	w.run()
	w.wantNames("0", "00000101", "2024", "2024-01-01", "20240230", "202409", "20240909", "zzz")
}

// A DAY table creates late by a delay that its id gives, and at once when it
// was created, enabled or altered; drops are never late.
func TestPlan_Delay(t *testing.T) {
	seen := map[time.Duration]bool{}
	for id := range catalog.TableID(2000) {
		d := delayOf(id)
		if d < 0 || d >= 23*time.Hour || d%time.Minute != 0 {
			t.Fatalf("table %d has the delay %s", id, d)
		}
		seen[d] = true
	}
	if len(seen) < 1000 {
		t.Errorf("2000 tables share %d delays", len(seen))
	}

	w := newWorld(t, "2024-09-10T06:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoPrecreate: "2", catalog.PropAutoRetention: "0"})
	w.run()
	w.wantNames("20240910", "20240911")
	delay := w.strategy().Delay
	if delay <= 0 {
		t.Fatalf("delay %s", delay)
	}
	w.now("2024-09-11T00:00:00Z")
	if d := cmp.Diff([]string{"drop 20240910"}, w.run()); d != "" {
		t.Errorf("at midnight: -want +got\n%s", d)
	}
	w.wall += catalog.Millis(delay/time.Millisecond) - 1
	if ops := w.run(); len(ops) > 0 {
		t.Errorf("too early: %v", ops)
	}
	w.wall++
	if d := cmp.Diff([]string{"create 20240912"}, w.run()); d != "" {
		t.Errorf("after %s: -want +got\n%s", delay, d)
	}
	w.now("2024-09-12T00:00:01Z")
	w.force()
	if d := cmp.Diff([]string{"drop 20240911", "create 20240913"}, w.run()); d != "" {
		t.Errorf("altered: -want +got\n%s", d)
	}
	w.must(catalog.AlterTable{Table: "d.t", Set: properties(map[string]string{catalog.PropAutoEnabled: "false"})})
	w.now("2024-10-01T00:00:00Z")
	if ops := w.run(); len(ops) > 0 {
		t.Errorf("off means off, but: %v", ops)
	}
	w.must(catalog.AlterTable{Table: "d.t", Set: properties(map[string]string{catalog.PropAutoEnabled: "true"})})
	w.run()
	w.wantNames("20241001", "20241002")
}

// One that keeps a single partition ready must not be late with it.
func TestPlan_SinglePartitionHasNoDelay(t *testing.T) {
	w := newWorld(t, "2024-09-10T06:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoPrecreate: "1"})
	w.run()
	w.now("2024-09-11T00:00:00Z")
	w.run()
	w.wantNames("20240910", "20240911")
}

// A plan is bounded and goes on where it stopped.
func TestPlan_Bounded(t *testing.T) {
	w := newWorld(t, "2024-09-10T06:00:00Z")
	w.table([]string{"dt"}, map[string]string{catalog.PropAutoUnit: "HOUR", catalog.PropAutoPrecreate: "2147483647", catalog.PropAutoRetention: "2147483647"})
	w.must(catalog.SetLimits{Limits: catalog.Limits{Partitions: MaxSteps + 10}})
	s := w.strategy()
	steps := s.Plan(w.st, w.row(), w.wall)
	if len(steps.Create) != MaxSteps || !steps.More {
		t.Fatalf("%d creations, more: %v", len(steps.Create), steps.More)
	}
	create := func(values []string) {
		c := catalog.CreatePartitions{Table: "d.t"}
		for _, v := range values {
			c.Specs = append(c.Specs, w.value(v))
		}
		w.must(c)
	}
	create(steps.Create)
	steps = s.Plan(w.st, w.row(), w.wall)
	if len(steps.Create) != 10 || steps.More || !steps.Held {
		t.Fatalf("%d creations, more: %v, held: %v", len(steps.Create), steps.More, steps.Held)
	}
	create(steps.Create)
	w.must(catalog.AlterTable{Table: "d.t", Set: properties(map[string]string{catalog.PropAutoRetention: "0", catalog.PropAutoPrecreate: "0"})})
	w.now("2030-01-01T00:00:00Z")
	s = w.strategy()
	if steps = s.Plan(w.st, w.row(), w.wall); len(steps.Drop) != MaxSteps || !steps.More {
		t.Fatalf("%d drops, more: %v", len(steps.Drop), steps.More)
	}
}

// Offsets far beyond the calendar end, and neither wrap nor hang.
func TestStrategy_FarOffsets(t *testing.T) {
	now := at(t, "2024-09-10T06:00:00Z")
	for _, unit := range []string{"YEAR", "QUARTER", "MONTH", "DAY", "HOUR"} {
		s := strategyOf(t, unit, "", "Europe/Berlin")
		for _, k := range []int{1 << 31, -1 << 31, 1 << 62, -1 << 62} {
			if v, ok := s.Value(now, k); ok {
				t.Errorf("%s at offset %d is %s", unit, k, v)
			}
		}
		s.Retention = 1<<31 - 1
		if v, bounded := s.Earliest(now); bounded {
			t.Errorf("%s: earliest is %s", unit, v)
		}
	}
}

func ExampleCheckZone() {
	fmt.Println(CheckZone("Mars/Base"))
	// Output: INVALID_CONFIG_EXCEPTION: 'table.auto-partition.time-zone' is 'Mars/Base', which is not a known time zone; want a region such as Europe/Berlin, or UTC, or an offset such as GMT-8
}
