package testproc

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"
)

// loadTime is for how long elections are counted: STAVE_LOAD_TIME or a minute.
func loadTime(t *testing.T) time.Duration {
	t.Helper()
	s := os.Getenv("STAVE_LOAD_TIME")
	if s == "" {
		return time.Minute
	}
	d, err := time.ParseDuration(s)
	if err != nil || d <= 0 {
		t.Fatalf("STAVE_LOAD_TIME %q: want a duration above 0", s)
	}
	return d
}

// syncs appends and syncs a file of its own until ctx ends, and returns how long
// each sync took: what the disk did meanwhile, whoever else used it.
func syncs(ctx context.Context, t *testing.T) []time.Duration {
	f, err := os.Create(filepath.Join(t.TempDir(), "probe"))
	if err != nil {
		t.Error(err)
		return nil
	}
	defer f.Close() //nolint:errcheck // thrown away
	var out []time.Duration
	for ctx.Err() == nil {
		start := time.Now()
		if _, err := f.Write(make([]byte, 512)); err != nil {
			t.Error(err)
			return nil
		}
		if err := f.Sync(); err != nil {
			t.Error(err)
			return nil
		}
		out = append(out, time.Since(start))
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
	return out
}

// hogs keep cores busy, 5 ms of 5.5: without a pause they starve the kernel's own
// threads, and with them every disk.
func hogs(ctx context.Context, group *sync.WaitGroup, n int) {
	for range n {
		group.Go(func() {
			for ctx.Err() == nil {
				for start := time.Now(); time.Since(start) < 5*time.Millisecond; {
				}
				time.Sleep(500 * time.Microsecond)
			}
		})
	}
}

// scribble keeps the disk busy with a stream of synced megabytes.
func scribble(ctx context.Context, t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "scribble"))
	if err != nil {
		t.Error(err)
		return
	}
	defer f.Close() //nolint:errcheck // thrown away
	buf := make([]byte, 1<<20)
	for i := 0; ctx.Err() == nil; i = (i + 1) % 64 {
		if _, err := f.WriteAt(buf, int64(i)<<20); err != nil {
			t.Error(err)
			return
		}
		if err := f.Sync(); err != nil {
			t.Error(err)
			return
		}
	}
}

// Under full load, with saturated cores and on a busy disk nobody is elected,
// unless the disk itself stood still for as long as a follower waits.
func TestElectionsUnderLoad(t *testing.T) {
	long(t)
	for _, store := range []string{"wal", "boltdb"} {
		for _, kind := range []string{"writes", "cores", "disk"} {
			t.Run(kind+"/"+store, func(t *testing.T) {
				c := newCluster(t, 3, program(t, ""), nil, "--log-store", store)
				c.start()
				c.ready()
				l := &load{size: 200}
				l.run(c.client(), 256)
				defer l.stop()
				l.await(t, 500)
				before, from := c.leader().metric("stave_raft_term"), l.count()
				ctx, cancel := context.WithTimeout(t.Context(), loadTime(t))
				defer cancel()
				var group sync.WaitGroup
				switch kind {
				case "cores":
					hogs(ctx, &group, 2)
				case "disk":
					group.Go(func() { scribble(ctx, t) })
				}
				start := time.Now()
				took := syncs(ctx, t)
				group.Wait()
				elections := c.leader().metric("stave_raft_term") - before
				rate := float64(l.count()-from) / time.Since(start).Seconds()
				slices.Sort(took)
				worst := took[len(took)-1]
				t.Logf("%s: %v elections, %.0f writes/s, longest time without a write %s; a sync beside it p50 %s, p99 %s, max %s",
					loadTime(t), elections, rate, l.gap(start), took[len(took)/2], took[len(took)*99/100], worst)
				if elections > 0 && worst < 500*time.Millisecond {
					t.Errorf("%v elections, and no sync beside them took longer than %s", elections, worst)
				}
			})
		}
	}
}
