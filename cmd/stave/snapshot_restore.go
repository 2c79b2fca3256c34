package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/snapshots"
)

// restored is the JSON of a restore.
type restored struct {
	Incarnation       api.IncarnationText `json:"incarnation"`
	Revision          uint64              `json:"revision"`
	SourceIncarnation api.IncarnationText `json:"source_incarnation"`
	SourceRevision    uint64              `json:"source_revision"`
}

func (a *app) snapshotRestore() *cobra.Command {
	var yes bool
	c := &cobra.Command{
		Use: "restore FILE", Short: "Replace the state of the whole cluster by a snapshot", Args: exactArgs(1),
		Long: `Replace the state of the whole cluster by a snapshot. A new incarnation begins: every
watch, cached layout and registered client ends with RESTORED. The file is checked
here before anything is sent, and by the leader before anything is changed.

What the cluster holds now is gone afterwards: it asks before it begins, and where
there is no terminal to ask at it needs --yes.`,
		Example: "  stave snapshot save before.stave && stave snapshot restore backup.stave --yes",
		RunE: func(c *cobra.Command, args []string) error {
			source, err := checkSnapshot(args[0], func(r io.Reader) (snapshots.Header, error) {
				return snapshots.Verify(r, catalog.CurrentLevel)
			})
			if err != nil {
				return err
			}
			question := fmt.Sprintf("Replace the state of the whole cluster by %s (incarnation %s, revision %d)?", args[0], source.Incarnation, source.Revision)
			if err := a.confirm(yes, question); err != nil {
				return err
			}
			return a.stream(c.Context(), func(ctx context.Context, s *session) error {
				r, err := s.restoreSnapshot(ctx, args[0])
				if err != nil {
					return err
				}
				h := api.ResultJSON(r.GetHeader())
				v := restored{
					Incarnation: h.Incarnation, Revision: h.Revision,
					SourceIncarnation: api.IncarnationText(source.Incarnation), SourceRevision: uint64(source.Revision),
				}
				g := newGrid("INCARNATION", "REVISION", "SOURCE INCARNATION", "SOURCE REVISION")
				g.add(v.Incarnation, v.Revision, v.SourceIncarnation, v.SourceRevision)
				return a.show(v, g)
			})
		},
	}
	c.Flags().BoolVar(&yes, "yes", false, "do not ask")
	return c
}

// confirm asks at the terminal before something that cannot be undone, unless
// the answer was given with --yes.
func (a *app) confirm(yes bool, question string) error {
	if yes {
		return nil
	}
	if !a.asks() {
		return usagef("%s There is no terminal to ask at: confirm with --yes", question)
	}
	if _, err := fmt.Fprintf(a.errs, "%s Type yes to go on: ", question); err != nil {
		return local("ask: %w", err)
	}
	answer, err := bufio.NewReader(a.in).ReadString('\n')
	if err != nil && !errors.Is(err, io.EOF) {
		return local("read the answer: %w", err)
	}
	if strings.TrimSpace(answer) != "yes" {
		return local("not confirmed, nothing was changed")
	}
	return nil
}

// asks reports whether a person is there to answer.
func (a *app) asks() bool {
	f, ok := a.in.(*os.File)
	return a.atTerminal || ok && term.IsTerminal(int(f.Fd()))
}

// restoreSnapshot sends a file to the leader: to any node first, and where that
// one names the leader, there. A restore is sent once to the leader, and never
// again: it is no write that could be told from its repetition.
func (s *session) restoreSnapshot(ctx context.Context, path string) (*pb.SnapshotRestoreResponse, error) {
	r, err := sendSnapshot(ctx, s.cluster, path)
	var elsewhere *api.NotLeaderError
	if err = fault(err); !errors.As(err, &elsewhere) || elsewhere.Addr == "" {
		return r, err
	}
	conn, err := grpc.NewClient(elsewhere.Addr, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer conn.Close() //nolint:errcheck // nothing is in flight
	return sendSnapshot(ctx, pb.NewClusterClient(conn), path)
}

// restoreOutcome is the error of a restore that was sent whole: where no node
// answered, it may have happened.
func restoreOutcome(err error) error {
	err = fault(err)
	if rpc := (*api.RPCError)(nil); !errors.As(err, &rpc) {
		return err
	}
	return fmt.Errorf("restore: %w: %w", catalog.ErrOutcomeUnknown, err)
}

func sendSnapshot(ctx context.Context, c pb.ClusterClient, path string) (*pb.SnapshotRestoreResponse, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, local("open snapshot: %w", err)
	}
	defer f.Close() //nolint:errcheck // only read
	stream, err := c.SnapshotRestore(ctx)
	if err != nil {
		return nil, err
	}
	buf := make([]byte, snapshotChunk)
	for {
		n, err := io.ReadFull(f, buf)
		last := errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
		if err != nil && !last {
			return nil, local("read %s: %w", path, err)
		}
		err = stream.Send(&pb.SnapshotRestoreRequest{Data: buf[:n], Last: last})
		if errors.Is(err, io.EOF) || last && err == nil {
			r, err := stream.CloseAndRecv() // or the error that ended the stream
			return r, restoreOutcome(err)
		}
		if err != nil {
			return nil, err
		}
	}
}
