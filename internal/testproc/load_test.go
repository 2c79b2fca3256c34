package testproc

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
)

// load is a stream of writes, each of a key of its own, with the record of what
// was acknowledged and when.
type load struct {
	size   int
	mu     sync.Mutex
	next   int
	acked  []string
	times  []time.Time
	cancel context.CancelFunc
	wg     sync.WaitGroup
}

func (l *load) value(key string) []byte { return bytes.Repeat([]byte(key+" "), l.size/(len(key)+1)+1) }

// run starts writers that go on until stop, whatever becomes of a write.
func (l *load) run(cl *client.Client, writers int) {
	ctx, cancel := context.WithCancel(context.Background())
	l.cancel = cancel
	for range writers {
		l.wg.Go(func() {
			for ctx.Err() == nil {
				l.write(ctx, cl)
			}
		})
	}
}

func (l *load) write(ctx context.Context, cl *client.Client) {
	l.mu.Lock()
	l.next++
	key := fmt.Sprintf("k%07d", l.next)
	l.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, 3*time.Second)
	defer cancel()
	if _, err := cl.Do(ctx, catalog.PutKV{Key: key, Value: l.value(key)}); err != nil {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.acked = append(l.acked, key)
	l.times = append(l.times, time.Now())
}

func (l *load) stop() {
	l.cancel()
	l.wg.Wait()
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

// await waits until n more writes were acknowledged.
func (l *load) await(t *testing.T, n int) {
	t.Helper()
	want := l.count() + n
	eventually(t, time.Minute, fmt.Sprintf("%d acknowledged writes", want), func() error {
		if got := l.count(); got < want {
			return fmt.Errorf("%d", got)
		}
		return nil
	})
}

// gap returns the longest time without an acknowledgement that ended after t.
func (l *load) gap(t time.Time) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	var longest time.Duration
	for i := 1; i < len(l.times); i++ {
		if l.times[i].After(t) {
			longest = max(longest, l.times[i].Sub(l.times[i-1]))
		}
	}
	return longest
}

// verify reads everything from some nodes and reports acknowledged writes that
// are not there, or not as they were written.
func (l *load) verify(t *testing.T, cl *client.Client) {
	t.Helper()
	l.mu.Lock()
	acked := slices.Clone(l.acked)
	l.mu.Unlock()
	have := map[string][]byte{}
	eventually(t, time.Minute, "read of everything", func() error {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		list, _, err := cl.KeyValues(ctx, "k")
		for _, kv := range list {
			have[kv.Key] = kv.Value
		}
		return err
	})
	lost := 0
	for _, key := range acked {
		if v, ok := have[key]; !ok || !bytes.Equal(v, l.value(key)) {
			lost++
			t.Errorf("acknowledged write %s: there %t, as written %t", key, ok, ok && bytes.Equal(v, l.value(key)))
		}
	}
	t.Logf("%d acknowledged writes, %d lost", len(acked), lost)
}
