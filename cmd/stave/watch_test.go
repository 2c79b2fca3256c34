package main

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stavedb/stave/api"
)

// revisionOf reads the revision of a JSON answer.
func revisionOf(t *testing.T, text string) uint64 {
	t.Helper()
	return decode[struct{ Revision uint64 }](t, text).Revision
}

// fill makes a database with a table, partitions, a rescale and a key, and
// returns the revisions before and after.
func fill(t *testing.T, r runner) (before, after uint64) {
	t.Helper()
	before = revisionOf(t, r.must(t, "kv", "put", "first", "1", "-o", "json"))
	r.must(t, "database", "create", "shop")
	r.must(t, "table", "create", "shop.orders", "--column", "id INT", "--column", "dt STRING", "--partition-key", "dt", "--buckets", "4")
	r.must(t, "partition", "create", "shop.orders", "dt=1", "--and", "dt=2", "--and", "dt=3", "--and", "dt=4", "--and", "dt=5")
	r.must(t, "table", "rescale", "shop.orders", "--buckets", "8")
	after = revisionOf(t, r.must(t, "kv", "put", "last", "1", "-o", "json"))
	return before, after
}

// shown strips revisions and times from the lines of a watch, leaves out what a
// client or a node says of itself, and returns the rest.
func shown(out string) []string {
	var list []string
	for line := range strings.Lines(out) {
		fields := strings.SplitN(strings.TrimSpace(line), " ", 3)
		if len(fields) < 3 {
			list = append(list, line)
			continue
		}
		text := fields[2]
		if fields[1] == "Snapshot:" {
			text = fields[1] + " " + fields[2]
		}
		if !strings.HasPrefix(text, "RegisterClient:") && !strings.HasPrefix(text, "AnnounceMember:") {
			list = append(list, text)
		}
	}
	return list
}

var filled = []string{
	"CreateDatabase: + database shop",
	"CreateTable: + table shop.orders (id 0, 4 buckets, epoch 0)",
	"CreatePartitions: + partition dt=1 of table 0 (id 0, 4 buckets); + partition dt=2 of table 0 (id 1, 4 buckets); " +
		"+ partition dt=3 of table 0 (id 2, 4 buckets); + partition dt=4 of table 0 (id 3, 4 buckets); and 1 more",
	"RescaleTable: ~ table shop.orders (id 0, 8 buckets, epoch 1)",
	"PutKV: + key last (version 1)",
}

// A watch shows every change of its scope, once and in order, and ends by
// itself at --until.
func TestWatch_Until(t *testing.T) {
	r, _ := newDev(t, 1)
	before, after := fill(t, r)
	span := []string{"--from", fmt.Sprint(before), "--until", fmt.Sprint(after)}
	for _, c := range []struct {
		name, scope string
		want        []string
	}{
		{"everything", "", filled},
		{"database", "shop", filled[:4]},
		{"table", "shop.orders", filled[1:4]},
		{"nothing", "other.orders", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			args := append([]string{"watch"}, span...)
			if c.scope != "" {
				args = append(args, c.scope)
			}
			if got := shown(r.must(t, args...)); !slices.Equal(got, c.want) {
				t.Errorf("watch %s:\n%s\nwant:\n%s", c.scope, strings.Join(got, "\n"), strings.Join(c.want, "\n"))
			}
		})
	}
	t.Run("json", func(t *testing.T) {
		last, names := before, []string{}
		for line := range strings.Lines(r.must(t, append([]string{"watch", "shop.orders", "-o", "json"}, span...)...)) {
			e := decode[api.Event](t, line)
			if e.Revision <= last || e.Revision > after || len(e.Changes) == 0 {
				t.Errorf("event after revision %d, until %d: %s", last, after, line)
			}
			last = e.Revision
			names = append(names, e.Command)
		}
		if want := []string{"CreateTable", "CreatePartitions", "RescaleTable"}; !slices.Equal(names, want) {
			t.Errorf("commands %v, want %v", names, want)
		}
	})
	t.Run("snapshot", func(t *testing.T) {
		got := shown(r.must(t, "watch", "shop.orders", "--snapshot", "--until", fmt.Sprint(before)))
		if len(got) != 1 || !strings.HasPrefix(got[0], "Snapshot: + table shop.orders (id 0, 8 buckets, epoch 1); + partition dt=1") {
			t.Errorf("watch with a snapshot: %q", got)
		}
	})
	t.Run("another history", func(t *testing.T) {
		r.fails(t, exitRefused, []string{"RESTORED"}, "watch", "--from", fmt.Sprintf("%d@1-00000000000000aa", before))
	})
}

// --keep holds a registration until an interrupt, and ends with SESSION_EXPIRED
// once another one has replaced it.
func TestTablet_Keep(t *testing.T) {
	r, _ := newDev(t, 1)
	keep := func(id string) *running {
		b := r.background(t, "tablet", "register", id, "--listener", "h:"+id, "--ttl", "1s", "--keep")
		b.awaitText(t, "h:"+id)
		return b
	}
	kept, lost := keep("1"), keep("2")
	r.must(t, "tablet", "register", "3", "--listener", "h:3", "--ttl", "1s")
	r.must(t, "tablet", "register", "2", "--listener", "h:2", "--ttl", "5m")
	if code := lost.wait(t); code != exitRefused || !strings.Contains(lost.errs.String(), "error: SESSION_EXPIRED: the lease of tablet server 2") {
		t.Errorf("replaced registration: exit code %d: %s", code, lost.errs.String())
	}
	live := func() map[int32]bool {
		out := map[int32]bool{}
		for _, s := range decode[[]tabletServer](t, r.must(t, "tablet", "list", "-o", "json")) {
			out[s.ServerID] = s.Live
		}
		return out
	}
	await(t, "server 3 to expire", func() (bool, string) { return !live()[3], fmt.Sprint(live()) })
	if !live()[1] {
		t.Error("server 1 expired although it is kept")
	}
	if code := kept.end(t); code != exitDone || kept.errs.String() != "" {
		t.Errorf("interrupted registration: exit code %d: %s", code, kept.errs.String())
	}
}

// A snapshot is checked without a cluster, and brings back what was there.
func TestSnapshot(t *testing.T) {
	t.Chdir(t.TempDir())
	r, _ := newDev(t, 1)
	r.must(t, "database", "create", "shop")
	saved := decode[api.Result](t, r.must(t, "snapshot", "save", "backup.stave", "-o", "json"))
	for _, verb := range []string{"inspect", "verify"} {
		h := decode[snapshotHeader](t, runner{}.must(t, "snapshot", verb, "backup.stave", "-o", "json"))
		if h.Revision != saved.Revision || h.Incarnation != saved.Incarnation || h.Rows.Databases != 1 {
			t.Errorf("%s: %+v, saved as %+v", verb, h, saved)
		}
	}
	r.must(t, "database", "create", "ads")
	r.fails(t, exitUsage, []string{"backup.stave", "--yes"}, "snapshot", "restore", "backup.stave")
	for _, answer := range []string{"", "no\n", "y\n"} {
		var errs syncBuffer
		a := &app{in: strings.NewReader(answer), atTerminal: true, out: io.Discard, errs: &errs, env: func(k string) (string, bool) {
			return strings.Join(r.endpoints, ","), k == "STAVE_ENDPOINTS"
		}}
		if code := a.run(t.Context(), []string{"snapshot", "restore", "backup.stave"}); code != exitRefused || !strings.Contains(errs.String(), "Type yes") {
			t.Errorf("answer %q: exit code %d: %s", answer, code, errs.String())
		}
	}
	if got := decode[[]api.Database](t, r.must(t, "database", "list", "-o", "json")); len(got) != 2 {
		t.Errorf("databases after restores that were not confirmed: %+v", got)
	}
	back := decode[restored](t, r.must(t, "snapshot", "restore", "backup.stave", "--yes", "-o", "json"))
	if back.SourceRevision != saved.Revision || back.SourceIncarnation != saved.Incarnation || back.Incarnation == saved.Incarnation || back.Revision <= saved.Revision {
		t.Errorf("restored %+v from %+v", back, saved)
	}
	if got := decode[[]api.Database](t, r.must(t, "database", "list", "-o", "json")); len(got) != 1 || got[0].Name != "shop" {
		t.Errorf("databases after the restore: %+v", got)
	}
	whole, err := os.ReadFile("backup.stave")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{"cut": whole[:len(whole)-1], "flipped": append([]byte{whole[0] ^ 1}, whole[1:]...), "empty": nil} {
		if err := os.WriteFile("broken.stave", data, 0o600); err != nil {
			t.Fatal(err)
		}
		r.fails(t, exitRefused, []string{"CORRUPT_MESSAGE", "broken.stave"}, "snapshot", "restore", "broken.stave")
		runner{}.fails(t, exitRefused, []string{"CORRUPT_MESSAGE", "broken.stave"}, "snapshot", "verify", "broken.stave")
		if got := decode[[]api.Database](t, r.must(t, "database", "list", "-o", "json")); len(got) != 1 {
			t.Errorf("databases after the refused restore of a %s file: %+v", name, got)
		}
	}
}

// A watch that waits for something says so, and then shows it.
func TestWatch_Notices(t *testing.T) {
	r, _ := newDev(t, 1)
	at := revisionOf(t, r.must(t, "kv", "put", "first", "1", "-o", "json"))
	for _, c := range []struct {
		name   string
		args   []string
		notice string
	}{
		{"database", []string{"shop"}, "notice: database shop does not exist: waiting for it to be created\n"},
		{"database of a table", []string{"shop.orders"}, "notice: database shop does not exist: waiting for it to be created\n"},
		{"from", []string{"--from", fmt.Sprint(at + 1000)}, fmt.Sprintf("notice: --from %d is ahead of the cluster, which is at revision ", at+1000)},
	} {
		b := r.background(t, append([]string{"watch"}, c.args...)...)
		await(t, "the notice", func() (bool, string) {
			return strings.HasPrefix(b.errs.String(), c.notice), c.name + ": " + b.errs.String()
		})
		if code := b.end(t); code != exitDone {
			t.Errorf("%s: exit code %d: %s", c.name, code, b.errs.String())
		}
	}
	b := r.background(t, "watch", "shop")
	await(t, "the notice", func() (bool, string) { return b.errs.String() != "", "" })
	r.must(t, "database", "create", "shop")
	b.awaitText(t, "+ database shop")
	b.end(t)
	b = r.background(t, "watch", "shop.orders")
	await(t, "the notice", func() (bool, string) {
		return b.errs.String() == "notice: table shop.orders does not exist: waiting for it to be created\n", b.errs.String()
	})
	b.end(t)
}
