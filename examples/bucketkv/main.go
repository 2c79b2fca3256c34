// Command bucketkv is a small tablet server. See examples/README.md.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"net"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
	"github.com/stavedb/stave/examples/bucketkv/kv"
)

func main() {
	endpoints := flag.String("endpoints", "127.0.0.1:7401", "nodes of the cluster, joined by commas")
	id := flag.Int("id", -1, "id of this server, 0 or more")
	dir := flag.String("dir", "", "directory of the buckets, shared by all servers")
	listen := flag.String("listen", "127.0.0.1:0", "address to serve on")
	advertise := flag.String("advertise", "", "address that clients are told; default: the one served on")
	ttl := flag.Duration("ttl", 10*time.Second, "how long the server is believed alive without renewal")
	flag.Parse()
	if err := run(*endpoints, *id, *dir, *listen, *advertise, *ttl); err != nil {
		fmt.Fprintln(os.Stderr, "error:", err)
		os.Exit(1)
	}
}

func run(endpoints string, id int, dir, listen, advertise string, ttl time.Duration) error {
	if id < 0 || id > 1<<31-1 || dir == "" || ttl < 100*time.Millisecond {
		return errors.New("want --id 0 or more, --dir, and --ttl 100ms or more")
	}
	c, err := client.New(strings.Split(endpoints, ","), client.WithName(fmt.Sprint("bucketkv-", id)))
	if err != nil {
		return err
	}
	defer func() { _ = c.Close() }()
	l, err := net.Listen("tcp", listen)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	fmt.Println("serving on", l.Addr())
	s := kv.New(kv.Config{ID: catalog.ServerID(id), Dir: dir, Address: advertise, TTL: ttl, Client: c, Logger: slog.Default()})
	return s.Run(ctx, l)
}
