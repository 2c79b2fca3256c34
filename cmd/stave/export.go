package main

import (
	"bufio"
	"context"
	"io"

	"github.com/spf13/cobra"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
)

func (a *app) exportCommand() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use: "export", Short: "Write the catalog as JSON lines", Args: exactArgs(0),
		Long: `Write one state of the catalog as JSON lines: the cluster with its counters, then
databases, tables, partitions, keys. 'stave import' takes them in another cluster.`,
		Example: "  stave export --file catalog.jsonl",
		RunE: func(c *cobra.Command, _ []string) error {
			return a.stream(c.Context(), func(ctx context.Context, s *session) error {
				if file == "" || file == "-" {
					_, err := s.export(ctx, a.read(), diskWriter{a.out})
					return err
				}
				var header *pb.ResponseHeader
				err := writeFile(file, func(w io.Writer) (err error) {
					header, err = s.export(ctx, a.read(), w)
					return err
				})
				if err != nil {
					return err
				}
				return a.showHeader(header)
			})
		},
	}
	c.Flags().StringVar(&file, "file", "", "write to this file, whole or not at all, instead of standard output; - is standard output")
	return c
}

// export writes all rows of one state.
func (s *session) export(ctx context.Context, read *pb.Consistency, w io.Writer) (*pb.ResponseHeader, error) {
	out := bufio.NewWriterSize(w, 64<<10)
	var header *pb.ResponseHeader
	stream, err := s.catalog.Export(ctx, &pb.ExportRequest{Consistency: read})
	err = receive(stream, err, func(r *pb.ExportResponse) error {
		header = r.GetHeader()
		for _, p := range r.GetRows() {
			row, err := api.ExportRowFromProto(p)
			if err != nil {
				return err
			}
			if err := api.WriteExportRow(out, row); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return header, out.Flush()
}
