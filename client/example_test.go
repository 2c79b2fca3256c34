package client_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"time"

	stavev1 "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
	"github.com/stavedb/stave/routing"
)

// Connect to a cluster by a name that stands for its nodes, and ask who leads.
func ExampleNew() {
	c, err := client.New([]string{"dns:///stave.internal:7401"}, client.WithName("lake-writer"), client.WithTimeout(5*time.Second))
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	st, err := stavev1.NewClusterClient(c).Status(context.Background(), &stavev1.StatusRequest{})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(st.GetHeader().GetLeader().GetNodeId())
}

// Create a table and a partition, and deal with the one error that does not say
// whether it was done.
func ExampleClient_Do() {
	ctx := context.Background()
	c, err := client.New([]string{"127.0.0.1:7401"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	for _, cmd := range []catalog.Command{
		catalog.CreateDatabase{Name: "shop", IfNotExists: true},
		catalog.CreateTable{
			Table: "shop.orders", Columns: []catalog.NewColumn{{Name: "a", Type: "INT NOT NULL"}, {Name: "dt", Type: "STRING NOT NULL"}},
			PrimaryKey: []string{"a", "dt"}, PartitionKeys: []string{"dt"}, BucketKeys: []string{"a"}, Buckets: catalog.Some[int32](4),
		},
		catalog.CreatePartitions{Table: "shop.orders", Specs: []catalog.PartitionSpec{{{Key: "dt", Value: "2026-11-30"}}}},
	} {
		res, err := c.Do(ctx, cmd)
		var call *client.CallError
		switch {
		case errors.As(err, &call) && errors.Is(err, catalog.ErrOutcomeUnknown):
			_, state := c.Outcome(call.Sequence)
			log.Fatalf("%s: ask again later, it is %s", cmd.Kind(), state)
		case err != nil:
			log.Fatal(err)
		}
		fmt.Println(cmd.Kind(), res.Revision)
	}
}

// Follow a table, and go on after a restart of this program where it left off.
func ExampleClient_Watch() {
	ctx := context.Background()
	c, err := client.New([]string{"127.0.0.1:7401"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	revision, incarnation := loadPosition()
	w, err := c.Watch(ctx, client.WatchOptions{
		From: revision, Incarnation: incarnation, Snapshot: true, Filter: client.WatchFilter{Table: "shop.orders"},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer w.Close()
	for {
		b, err := w.Next(ctx)
		if errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			log.Fatal(err)
		}
		switch {
		case b.Snapshot:
			fmt.Println("the table is now", len(b.Rows), "rows")
		case !b.Bookmark():
			fmt.Println(b.Event.Kind, "changed", len(b.Event.Changes), "rows")
		}
		savePosition(b.Revision, b.Incarnation)
	}
}

// loadPosition and savePosition stand for wherever a program keeps its place.
func loadPosition() (rev catalog.Opt[catalog.Revision], inc catalog.Incarnation) { return rev, inc }

func savePosition(catalog.Revision, catalog.Incarnation) {}

// Send a row to the one server that leads its bucket. The partition is created if
// it is missing; a stale route is refused, and never sent again.
func ExampleClient_OpenRouter() {
	ctx := context.Background()
	c, err := client.New([]string{"127.0.0.1:7401"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	router, err := c.OpenRouter(ctx, "shop.orders", client.RouterOptions{Create: true})
	if err != nil {
		log.Fatal(err)
	}
	defer router.Close()
	row := []routing.Value{routing.Int(1), routing.String("2026-11-30")}
	route, err := router.Route(ctx, row)
	for attempt := 1; err == nil; attempt++ {
		leader, _ := route.Leader()
		if err = send(leader.Listeners, route.Request()); err == nil {
			fmt.Println(route.Name(), route.Bucket, "of", route.Count)
			return
		}
		route, err = router.Retry(ctx, route, attempt, err)
	}
	log.Fatal(err)
}

// send stands for a call to a server of buckets, which asks its routing.Guard.
func send(listeners []string, r routing.Request) error { return nil }

// Rescale a table and tell the lake first.
func ExampleClient_Rescale() {
	c, err := client.New([]string{"127.0.0.1:7401"})
	if err != nil {
		log.Fatal(err)
	}
	defer c.Close()
	res, err := c.Rescale(context.Background(), client.Rescale{
		Table: "shop.orders", Buckets: 8,
		Propagate: func(_ context.Context, t *catalog.Table) error {
			fmt.Println("set the bucket option of", t.Path, "to 8") // whatever it was
			return nil
		},
	})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Count, "buckets at layout epoch", res.Epoch)
}
