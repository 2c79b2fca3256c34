package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
)

// shownChanges is how many changes of one command a line for people names.
const shownChanges = 4

func (a *app) watchCommand() *cobra.Command {
	var from, until string
	var o client.WatchOptions
	c := &cobra.Command{
		Use: "watch [DB[.T]]", Short: "Show every change, in order", Args: rangeArgs(0, 1),
		Long: `Show every change after --from, each exactly once and in order, one line per command
that changed something; of everything, of one database, or of one table with its
partitions. It goes on across elections and broken connections until --until or an
interrupt. With --snapshot the rows as they are come first, as one line. What does not
exist, and a --from that the cluster has not reached, is waited for, and said on stderr.`,
		Example: `  stave watch shop.orders
  stave watch --from 120 --until 180 -o json`,
		RunE: func(c *cobra.Command, args []string) error {
			if err := watchOptions(&o, args, from, until); err != nil {
				return err
			}
			o.Before = o.Before || !a.json() // to tell which buckets changed
			return a.stream(c.Context(), func(ctx context.Context, s *session) error { return a.watch(ctx, s, o) })
		},
	}
	c.Flags().StringVar(&from, "from", "", "REV[@INCARNATION] already seen; default: what is current")
	c.Flags().StringVar(&until, "until", "", "REV to end after")
	c.Flags().BoolVar(&o.Snapshot, "snapshot", false, "show one consistent state first; with --from, only if the history is gone")
	c.Flags().BoolVar(&o.Before, "before", false, "show rows as they were before an update, too (JSON)")
	return c
}

func watchOptions(o *client.WatchOptions, args []string, from, until string) error {
	if len(args) == 1 {
		switch {
		case args[0] == "":
			return usagef("want DB or DB.T, got an empty name")
		case strings.Contains(args[0], "."):
			o.Filter.Table = args[0]
		default:
			o.Filter.Database = args[0]
		}
	}
	if from != "" {
		rev, inc, err := parsePosition(from)
		if err != nil {
			return usagef("--from: %s", err)
		}
		o.From, o.Incarnation = catalog.Some(rev), inc
	}
	if until != "" {
		rev, inc, err := parsePosition(until)
		if err != nil || !inc.IsZero() {
			return usagef("--until %q: want a revision", until)
		}
		o.Until = catalog.Some(rev)
	}
	if o.From.Set && o.Until.Set && o.Until.V < o.From.V {
		return usagef("--until %d is before --from %d", o.Until.V, o.From.V)
	}
	return nil
}

// watch prints batches until the watch ends. An interrupt is a clean end.
func (a *app) watch(ctx context.Context, s *session, o client.WatchOptions) error {
	if err := a.reachable(ctx, s); err != nil {
		return ended(ctx, err)
	}
	if !o.Until.Set { // one with an end may be about what is gone
		a.notices(ctx, s, o)
	}
	w, err := s.Watch(ctx, o)
	if err != nil {
		return err
	}
	defer w.Close() //nolint:errcheck // it only waits
	for {
		b, err := w.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return ended(ctx, err)
		case b.Bookmark():
			continue
		}
		if err := a.showBatch(&b); err != nil {
			return err
		}
	}
}

// ended drops the error of a stream that was interrupted.
func ended(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return nil //nolint:nilerr // it ended because it was asked to
	}
	return err
}

// reachable fails if no node answers in time: a watch would go on trying.
func (a *app) reachable(ctx context.Context, s *session) error {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	_, err := s.cluster.Status(ctx, &pb.StatusRequest{Consistency: api.ConsistencyToProto(api.Consistency{Level: api.Stale})})
	return err
}

// showBatch prints one batch. A snapshot looks like a command that created all
// of its rows.
func (a *app) showBatch(b *client.Batch) error {
	wire := b.Wire
	if b.Snapshot {
		wire = &pb.EventBatch{Revision: uint64(b.Revision), Command: "Snapshot"}
		for _, row := range b.Objects {
			wire.Changes = append(wire.Changes, &pb.Change{Type: pb.ChangeType_CHANGE_TYPE_CREATED, After: row})
		}
	}
	var err error
	if a.json() {
		err = api.WriteJSON(a.out, api.EventJSON(wire))
	} else {
		_, err = fmt.Fprintln(a.out, eventLine(wire))
	}
	if err != nil {
		return local("write output: %w", err)
	}
	return nil
}

// eventLine is one event for people.
func eventLine(e *pb.EventBatch) string {
	var parts []string
	for i, c := range e.GetChanges() {
		if i == shownChanges {
			parts = append(parts, fmt.Sprintf("and %d more", len(e.GetChanges())-i))
			break
		}
		parts = append(parts, changeText(c))
	}
	when := ""
	if e.GetWallMs() > 0 {
		when = " " + time.UnixMilli(e.GetWallMs()).UTC().Format(time.RFC3339)
	}
	return oneLine(fmt.Sprintf("%d%s %s: %s", e.GetRevision(), when, e.GetCommand(), strings.Join(parts, "; ")))
}

func changeText(c *pb.Change) string {
	row, sign := c.GetAfter(), "~"
	switch c.GetType() {
	case pb.ChangeType_CHANGE_TYPE_CREATED:
		sign = "+"
	case pb.ChangeType_CHANGE_TYPE_DELETED:
		row, sign = c.GetBefore(), "-"
	default:
	}
	return sign + " " + rowText(row) + placementText(c)
}

// shownBuckets is how many buckets of one row an event tells.
const shownBuckets = 3

// placementText tells which buckets of a row have other replicas or leaders than
// before.
func placementText(c *pb.Change) string {
	before, after := assignmentOf(c.GetBefore()).GetBuckets(), assignmentOf(c.GetAfter()).GetBuckets()
	if len(before) != len(after) {
		return "" // new, gone, or placed for the first time
	}
	var out strings.Builder
	n := 0
	for i, b := range after {
		if proto.Equal(before[i], b) {
			continue
		}
		if n++; n > shownBuckets {
			continue
		}
		leader := "no leader"
		if b.Leader != nil {
			leader = "leader " + number(b.GetLeader())
		}
		fmt.Fprintf(&out, ", bucket %d: %s (epoch %d), in sync %v of %v", i, leader, b.GetLeaderEpoch(), b.GetIsr(), b.GetReplicas())
	}
	if n > shownBuckets {
		fmt.Fprintf(&out, ", and %d more buckets", n-shownBuckets)
	}
	return out.String()
}

func assignmentOf(o *pb.Object) *pb.Assignment {
	if p := o.GetPartition(); p != nil {
		return p.GetAssignment()
	}
	return o.GetTable().GetAssignment()
}

// serverText tells what keeps buckets away from a server.
func serverText(p *pb.Server) string {
	out, v := "", api.ServerJSON(p)
	if v.ShuttingDown {
		out = ", draining"
	}
	if p.GetTag() != pb.ServerTag_SERVER_TAG_UNSPECIFIED {
		out += ", tag " + v.Tag
	}
	return out
}

// serversText lists who still has replicas to delete.
func serversText(d *pb.DroppedObject) string {
	out := make([]string, len(d.GetPending()))
	for i, p := range d.GetPending() {
		out[i] = number(p.GetServerId())
	}
	return join(out)
}

// rowText names a row and what matters about it.
func rowText(o *pb.Object) string {
	switch r := o.GetRow().(type) {
	case *pb.Object_Cluster:
		return fmt.Sprintf("cluster, term %d led by %s", r.Cluster.GetTerm(), r.Cluster.GetLeader())
	case *pb.Object_Database:
		return "database " + r.Database.GetName()
	case *pb.Object_Table:
		t := r.Table
		return fmt.Sprintf("table %s (id %d, %d buckets, epoch %d)", t.GetPath(), t.GetTableId(), t.GetBucketCount(), t.GetLayoutEpoch())
	case *pb.Object_Partition:
		p := api.PartitionJSON(r.Partition)
		return fmt.Sprintf("partition %s of table %d (id %d, %v buckets)", specText(p), p.TableID, p.PartitionID, orDash(p.BucketCount))
	case *pb.Object_Server:
		return fmt.Sprintf("tablet server %d (live: %t)%s", r.Server.GetServerId(), r.Server.GetLive(), serverText(r.Server))
	case *pb.Object_Member:
		return fmt.Sprintf("node %s at %s", r.Member.GetNodeId(), r.Member.GetApiAddress())
	case *pb.Object_KeyValue:
		return fmt.Sprintf("key %s (version %d)", r.KeyValue.GetKey(), r.KeyValue.GetVersion())
	case *pb.Object_Counter:
		return fmt.Sprintf("counter %s (next %d)", r.Counter.GetName(), r.Counter.GetNext())
	case *pb.Object_Dropped:
		d := r.Dropped
		if d.Bucket != nil {
			return strings.TrimSpace(fmt.Sprintf("replicas moved away from bucket %d of %s %s", d.GetBucket(), d.GetPath(), d.GetName())) + ", to be deleted by " + serversText(d)
		}
		return fmt.Sprintf("dropped %s %s", d.GetPath(), d.GetName())
	case *pb.Object_Rebalance:
		v := api.RebalanceJSON(r.Rebalance, nil)
		return fmt.Sprintf("rebalance %s (%s, %d moves)", v.ID, v.Status, len(v.Moves))
	case *pb.Object_Import:
		return fmt.Sprintf("import (%d rows)", r.Import.GetRows())
	case *pb.Object_Client:
		return fmt.Sprintf("client %d", r.Client.GetClientId())
	}
	return "unknown row"
}
