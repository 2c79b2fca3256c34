package main

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
)

const (
	tagPermanent = "permanent-offline"
	tagTemporary = "temporary-offline"
)

func parseTag(s string) (pb.ServerTag, error) {
	switch s {
	case tagPermanent:
		return pb.ServerTag_SERVER_TAG_PERMANENT_OFFLINE, nil
	case tagTemporary:
		return pb.ServerTag_SERVER_TAG_TEMPORARY_OFFLINE, nil
	}
	return 0, usagef("tag %q: want %s or %s", s, tagPermanent, tagTemporary)
}

func (a *app) tabletTag() *cobra.Command {
	return a.tagVerb(&cobra.Command{
		Use: "tag TAG ID ...", Short: "Keep new replicas away from tablet servers",
		Long: `Set a tag, permanent-offline or temporary-offline, on tablet servers, all or none. A
tagged server keeps what it has and gets no new replica. A server has one tag.`,
		Example: "  stave tablet tag permanent-offline 1 2",
	}, false)
}

func (a *app) tabletUntag() *cobra.Command {
	return a.tagVerb(&cobra.Command{
		Use: "untag TAG ID ...", Short: "Remove a tag of tablet servers",
		Long:    "Remove a tag of tablet servers, all or none; one that does not have it is refused.",
		Example: "  stave tablet untag permanent-offline 1 2",
	}, true)
}

// tagVerb completes tag and untag.
func (a *app) tagVerb(c *cobra.Command, remove bool) *cobra.Command {
	c.Args = minArgs(2)
	c.ValidArgsFunction = firstOf(tagPermanent, tagTemporary)
	c.RunE = func(c *cobra.Command, args []string) error {
		tag, err := parseTag(args[0])
		if err != nil {
			return err
		}
		req := &pb.TagServersRequest{Tag: tag, Remove: remove}
		for _, arg := range args[1:] {
			id, err := parseServerID(arg)
			if err != nil {
				return err
			}
			req.ServerIds = append(req.ServerIds, int32(id))
		}
		return a.call(c.Context(), func(ctx context.Context, s *session) error {
			r, err := s.placement.TagServers(ctx, req)
			if err != nil {
				return err
			}
			return a.showResult(r)
		})
	}
	return c
}

// drained is the JSON of a controlled shutdown.
type drained struct {
	ServerID int32 `json:"server_id"`
	// StillLeads is how many buckets no other replica could take over.
	StillLeads  int32               `json:"still_leads"`
	Incarnation api.IncarnationText `json:"incarnation"`
	Revision    uint64              `json:"revision"`
}

func (a *app) tabletDrain() *cobra.Command {
	return &cobra.Command{
		Use: "drain ID", Short: "Move leadership away from a tablet server that will shut down", Args: exactArgs(1),
		Long: `Move the leadership of every bucket away from a tablet server, before it is shut down.
Buckets without another replica in sync stay; their number is shown, and the command
can be repeated. The server leads nothing new until it registers again. Its replicas
stay where they are.`,
		Example: "  stave tablet drain 1",
		RunE: func(c *cobra.Command, args []string) error {
			id, err := parseServerID(args[0])
			if err != nil {
				return err
			}
			server := int32(id)
			return a.call(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.placement.ElectLeaders(ctx, &pb.ElectLeadersRequest{
					Reason: pb.ElectionReason_ELECTION_REASON_CONTROLLED_SHUTDOWN, ServerId: &server,
				})
				if err != nil {
					return err
				}
				h := api.ResultJSON(r.GetHeader())
				v := drained{ServerID: server, StillLeads: r.GetResult().GetBucketCount(), Incarnation: h.Incarnation, Revision: h.Revision}
				g := newGrid("SERVER", "STILL LEADS", "INCARNATION", "REVISION")
				g.add(v.ServerID, fmt.Sprintf("%d buckets", v.StillLeads), v.Incarnation, v.Revision)
				return a.show(v, g)
			})
		},
	}
}
