// Command bucketkv-load writes rows through the router at a bounded rate, reads
// every acknowledged row back, and checks that each key of a partition id has one
// bucket. It ends with 1 if anything was lost or in two places.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/stavedb/stave/client"
	"github.com/stavedb/stave/examples/bucketkv/kv"
	"github.com/stavedb/stave/routing"
)

func main() {
	endpoints := flag.String("endpoints", "127.0.0.1:7401", "nodes of the cluster, joined by commas")
	table := flag.String("table", "shop.orders", "table with the columns a INT and dt STRING, both its primary key, partitioned by dt")
	partitions := flag.Int("partitions", 4, "partitions to write to, created when they are missing")
	rows := flag.Int("rows", 1000, "rows to write")
	rate := flag.Int("rate", 200, "rows a second at most")
	writers := flag.Int("writers", 8, "rows under way at a time")
	flag.Parse()
	l := load{home: map[string]int32{}}
	if err := l.run(*endpoints, *table, *partitions, *rows, *rate, *writers); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

// load counts what was acknowledged and remembers where it is.
type load struct {
	mu       sync.Mutex
	home     map[string]int32 // by table id, partition id and key
	failures []string
	written  int
	refused  int
}

func (l *load) run(endpoints, path string, partitions, rows, rate, writers int) error {
	if partitions < 1 || rows < 1 || rate < 1 || writers < 1 {
		return errors.New("want 1 or more for each of --partitions, --rows, --rate, --writers")
	}
	c, err := client.New(strings.Split(endpoints, ","), client.WithName("bucketkv-load"))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	ctx := context.Background()
	t, err := kv.OpenTable(ctx, c, path)
	if err != nil {
		return err
	}
	defer func() { _ = t.Close() }()
	work := make(chan int)
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			for i := range work {
				l.row(ctx, t, i, fmt.Sprint("p", i%partitions))
			}
		})
	}
	tick := time.NewTicker(max(time.Second/time.Duration(rate), 1))
	defer tick.Stop()
	for i := range rows {
		<-tick.C
		work <- i
	}
	close(work)
	wg.Wait()
	fmt.Printf("%d rows written and read back, %d not acknowledged\n", l.written, l.refused)
	if len(l.failures) > 0 {
		return errors.New(strings.Join(l.failures, "\n"))
	}
	return nil
}

// row puts a row and reads it back. A row that was not acknowledged proves
// nothing; one that was has to be there, unless its partition was dropped since.
func (l *load) row(ctx context.Context, t *kv.Table, i int, partition string) {
	row := []routing.Value{routing.Int(int32(i)), routing.String(partition)}
	value := fmt.Sprint("value of ", i)
	put, err := t.Put(ctx, row, []byte(value))
	if err != nil {
		fmt.Fprintln(os.Stderr, "not acknowledged:", err)
		l.mu.Lock()
		l.refused++
		l.mu.Unlock()
		return
	}
	got, route, err := t.Get(ctx, row)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.place(i, put)
	if err != nil {
		l.failures = append(l.failures, fmt.Sprintf("row %d of %s was acknowledged and cannot be read: %s", i, partition, err))
		return
	}
	l.written++
	l.place(i, route)
	if route.Table == put.Table && route.Partition == put.Partition && string(got.GetValue()) != value {
		l.failures = append(l.failures, fmt.Sprintf("row %d of %s was acknowledged and reads %q", i, partition, got.GetValue()))
	}
}

func (l *load) place(i int, r routing.Route) {
	k := fmt.Sprint(r.Table, "/", r.Partition, "/", i)
	if b, ok := l.home[k]; ok && b != r.Bucket {
		l.failures = append(l.failures, fmt.Sprintf("%s is in bucket %d and in %d", k, b, r.Bucket))
	}
	l.home[k] = r.Bucket
}
