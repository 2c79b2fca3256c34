package main

import (
	"context"
	"io"
	"time"

	"github.com/schollz/progressbar/v3"
	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
)

func (a *app) importCommand() *cobra.Command {
	return &cobra.Command{
		Use: "import FILE", Short: "Add the rows of an export", Args: exactArgs(1),
		Long: `Add the rows of an export; FILE - reads standard input. The whole file is read and
checked before anything is proposed. Rows that are there already are skipped, so
that the same command resumes an import that was cut short; a row that clashes with
what is there is refused, and nothing of its batch is taken. Tables cannot be
altered or routed to before the import has ended.`,
		Example: "  stave import catalog.jsonl",
		RunE: func(c *cobra.Command, args []string) error {
			f, err := a.openImport(args[0])
			if err != nil {
				return err
			}
			return a.stream(c.Context(), func(ctx context.Context, s *session) error {
				sum, err := a.sendImport(ctx, s, f)
				if err != nil {
					return err
				}
				g := newGrid("INCARNATION", "REVISION", "ROWS", "BATCHES", "CHANGED BATCHES")
				g.add(sum.Incarnation, sum.Revision, sum.Rows, sum.Batches, sum.ChangedBatches)
				return a.show(sum, g)
			})
		},
	}
}

// importSum is the JSON of an import that has ended.
type importSum struct {
	Incarnation    api.IncarnationText `json:"incarnation"`
	Revision       uint64              `json:"revision"`
	Rows           int                 `json:"rows"`
	Batches        int                 `json:"batches"`
	ChangedBatches int                 `json:"changed_batches"`
}

// sendImport proposes the batches in order.
func (a *app) sendImport(ctx context.Context, s *session, f *importFile) (importSum, error) {
	bar := a.progress(len(f.lines), "import")
	defer bar.Close() //nolint:errcheck // only drawn
	var sum importSum
	for _, b := range f.batches() {
		req, err := api.RequestFromCommand(b.cmd, api.Ref{})
		if err != nil {
			return sum, f.locate(b, err)
		}
		r, err := a.sendBatch(ctx, s, req.(*pb.ImportRequest)) //nolint:errcheck,forcetypeassert // an ImportBatch makes no other
		if err != nil {
			err = fault(err)
			if exitCode(err) == exitRefused {
				err = f.locate(b, err)
			}
			return sum, err
		}
		h := api.ResultJSON(r.GetHeader())
		sum.Incarnation, sum.Revision = h.Incarnation, h.Revision
		sum.Rows += len(b.lines)
		sum.Batches++
		if r.GetResult().GetChanged() {
			sum.ChangedBatches++
		}
		_ = bar.Add(len(b.lines)) //nolint:errcheck // only drawn
	}
	return sum, nil
}

func (a *app) sendBatch(ctx context.Context, s *session, req *pb.ImportRequest) (*pb.WriteResponse, error) {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	return s.catalog.Import(ctx, req)
}

// progress draws on a terminal, and nowhere else.
func (a *app) progress(total int, what string) *progressbar.ProgressBar {
	w := io.Discard
	if terminal(a.errs) && !a.json() {
		w = a.errs
	}
	return progressbar.NewOptions(total,
		progressbar.OptionSetWriter(w), progressbar.OptionSetDescription(what), progressbar.OptionShowCount(),
		progressbar.OptionThrottle(100*time.Millisecond), progressbar.OptionSetWidth(30),
		progressbar.OptionOnCompletion(func() { _, _ = io.WriteString(w, "\n") }), //nolint:errcheck // only drawn
	)
}
