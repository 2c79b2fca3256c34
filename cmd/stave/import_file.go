package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/stavedb/stave/api"
	"github.com/stavedb/stave/catalog"
)

// importBatchBytes is what the rows of one batch may come to. It leaves room for
// the id and the counters below api.MaxImportBytes.
const importBatchBytes = 120 << 10

// importLine is one row of a file.
type importLine struct {
	number int
	row    api.ExportRow
	size   int
}

// importFile is a whole file that was parsed and tried.
type importFile struct {
	name    string
	cluster api.ExportCluster
	lines   []importLine // without the cluster's
}

// readImport parses a whole file and applies it to an empty catalog, line by
// line, so that everything the file itself gets wrong is found at its line
// before anything is proposed.
func readImport(name string, in io.Reader) (*importFile, error) {
	f := &importFile{name: name}
	r := api.NewExportReader(name, in)
	for {
		row, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		var broken *api.LineError
		switch {
		case err == nil:
		case errors.As(err, &broken):
			return nil, err
		default:
			return nil, local("read %s: %w", name, err)
		}
		if row.Cluster != nil {
			f.cluster = *row.Cluster
			continue
		}
		f.lines = append(f.lines, importLine{number: r.Line(), row: row, size: proto.Size(api.ExportRowToProto(row))})
	}
	if r.Line() <= 1 && f.cluster.Format == 0 {
		return nil, &api.LineError{File: name, Line: 1, Err: &catalog.Error{
			Code: catalog.ErrInvalidArgument, Message: "the file is empty, want a line of kind cluster",
		}}
	}
	return f, f.try()
}

// openImport reads a file, or standard input for "-".
func (a *app) openImport(path string) (*importFile, error) {
	if path == "-" {
		return readImport("stdin", a.in)
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, local("open import: %w", err)
	}
	defer in.Close() //nolint:errcheck // only read
	return readImport(path, in)
}

// try applies the file to an empty catalog with the highest limits possible.
func (f *importFile) try() error {
	b := catalog.NewState().Begin()
	rev := catalog.Revision(1)
	b.Apply(rev, catalog.Envelope{}, catalog.SetLimits{Limits: catalog.MaxLimits})
	for _, l := range f.lines {
		rev++
		batch := catalog.ImportBatch{Import: f.id()}
		l.row.AddTo(&batch)
		res, _ := b.Apply(rev, catalog.Envelope{}, batch)
		if err := res.Err(); err != nil {
			return &api.LineError{File: f.name, Line: l.number, Err: err}
		}
	}
	return nil
}

func (f *importFile) id() catalog.ImportID {
	return f.cluster.ID()
}

// importBatch is a run of lines that is proposed as one command.
type importBatch struct {
	lines []importLine
	cmd   catalog.ImportBatch
}

// batches splits the file. There is always at least one, and the last one ends
// the import.
func (f *importFile) batches() []importBatch {
	var out []importBatch
	rest := f.lines
	for sent := 0; len(out) == 0 || len(rest) > 0; {
		n, size := 0, 0
		for n < len(rest) && n < catalog.MaxImportRows && (n == 0 || size+rest[n].size <= importBatchBytes) {
			size += rest[n].size
			n++
		}
		b := importBatch{lines: rest[:n], cmd: catalog.ImportBatch{Import: f.id(), Skip: uint64(sent), Last: n == len(rest)}}
		if len(out) == 0 {
			b.cmd.Counters = catalog.Some(f.cluster.Counters)
		}
		for _, l := range b.lines {
			l.row.AddTo(&b.cmd)
		}
		out = append(out, b)
		sent += n
		rest = rest[n:]
	}
	return out
}

// locate names the line of a batch that a refusal is about: the first one whose
// object the sentence names, else all lines of the batch.
func (f *importFile) locate(b importBatch, err error) error {
	if len(b.lines) == 0 {
		return &api.LineError{File: f.name, Line: 1, Err: err}
	}
	words := strings.FieldsFunc(err.Error(), func(r rune) bool { return strings.ContainsRune(" ,;:()", r) })
	paths := map[catalog.TableID]string{}
	for _, l := range f.lines {
		if t := l.row.Table; t != nil {
			paths[t.Table.ID] = t.Table.Path
		}
	}
	for _, l := range b.lines {
		if mentions(words, l.row, paths) {
			return &api.LineError{File: f.name, Line: l.number, Err: err}
		}
	}
	return fmt.Errorf("%s:%d-%d: %w", f.name, b.lines[0].number, b.lines[len(b.lines)-1].number, err)
}

// mentions reports whether a sentence names the row's object.
func mentions(words []string, r api.ExportRow, paths map[catalog.TableID]string) bool {
	has := func(w string) bool {
		for _, have := range words {
			if have == w {
				return true
			}
		}
		return false
	}
	switch {
	case r.Database != nil:
		return has("database") && has(r.Database.Name)
	case r.Table != nil:
		return has(r.Table.Table.Path) && !has("partition")
	case r.Partition != nil:
		own := has(paths[r.Partition.Table]) || has(strconv.FormatUint(uint64(r.Partition.ID), 10))
		return has("'"+r.Partition.Name+"'") && own
	case r.KeyValue != nil:
		return has(strconv.Quote(r.KeyValue.Key))
	case r.Counter != nil:
		return has(strconv.Quote(r.Counter.Name))
	}
	return false
}
