package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/stavedb/stave/api"
	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
)

// outputFlag is the value of --output.
type outputFlag string

const (
	outputTable outputFlag = "table"
	outputJSON  outputFlag = "json"
)

func (o *outputFlag) String() string { return string(*o) }
func (o *outputFlag) Type() string   { return "table|json" }
func (o *outputFlag) Set(s string) error {
	switch v := outputFlag(s); v {
	case outputTable, outputJSON:
		*o = v
		return nil
	}
	return fmt.Errorf("want table or json")
}

// consistencyFlag is the value of --consistency.
type consistencyFlag struct{ c api.Consistency }

func (f *consistencyFlag) String() string {
	if f.c.Level == api.AtLeast {
		return f.c.Level.String() + ":" + positionText(f.c.Revision, f.c.Incarnation)
	}
	return f.c.Level.String()
}
func (f *consistencyFlag) Type() string { return "LEVEL" }
func (f *consistencyFlag) Set(s string) error {
	level, rest, at := strings.Cut(s, ":")
	switch {
	case s == api.Linearizable.String():
		f.c = api.Consistency{}
	case s == api.Stale.String():
		f.c = api.Consistency{Level: api.Stale}
	case level == api.AtLeast.String() && at:
		rev, inc, err := parsePosition(rest)
		if err != nil {
			return err
		}
		f.c = api.Consistency{Level: api.AtLeast, Revision: rev, Incarnation: inc}
	default:
		return fmt.Errorf("want linearizable, stale or at-least:REV[@INCARNATION]")
	}
	return nil
}

func (f *consistencyFlag) proto() *pb.Consistency { return api.ConsistencyToProto(f.c) }

// parsePosition reads "REV" or "REV@INCARNATION".
func parsePosition(s string) (catalog.Revision, catalog.Incarnation, error) {
	number, history, named := strings.Cut(s, "@")
	rev, err := strconv.ParseUint(number, 10, 64)
	if err != nil {
		return 0, catalog.Incarnation{}, fmt.Errorf("revision %q: want a number from 0", number)
	}
	inc, err := api.ParseIncarnation(history)
	if err != nil || named && inc.IsZero() {
		return 0, catalog.Incarnation{}, fmt.Errorf("incarnation %q: want NUMBER-RANDOM as answers show it", history)
	}
	return catalog.Revision(rev), inc, nil
}

func positionText(rev catalog.Revision, inc catalog.Incarnation) string {
	s := strconv.FormatUint(uint64(rev), 10)
	if !inc.IsZero() {
		s += "@" + inc.String()
	}
	return s
}

// parseProperties reads K=V arguments. The value may be empty or hold "=".
func parseProperties(what string, args []string) ([]*pb.Property, error) {
	out := make([]*pb.Property, 0, len(args))
	seen := map[string]bool{}
	for _, arg := range args {
		k, v, ok := strings.Cut(arg, "=")
		if !ok || k == "" {
			return nil, usagef("%s %q: want KEY=VALUE", what, arg)
		}
		if seen[k] {
			return nil, usagef("%s %q is given twice", what, k)
		}
		seen[k] = true
		out = append(out, &pb.Property{Key: k, Value: v})
	}
	return out, nil
}

// splitProperties parts those that Stave defines, table.*, from custom ones.
func splitProperties(in []*pb.Property) (own, custom []*pb.Property) {
	for _, p := range in {
		if strings.HasPrefix(p.GetKey(), "table.") {
			own = append(own, p)
		} else {
			custom = append(custom, p)
		}
	}
	return own, custom
}

// parseSpec reads the K=V arguments of one partition.
func parseSpec(args []string) (*pb.PartitionSpec, error) {
	values, err := parseProperties("partition value", args)
	if err != nil {
		return nil, err
	}
	return &pb.PartitionSpec{Values: values}, nil
}

// parseColumns reads "NAME TYPE" with an optional comment after " -- ".
func parseColumns(args []string) ([]*pb.NewColumn, error) {
	out := make([]*pb.NewColumn, 0, len(args))
	for _, arg := range args {
		text, comment, _ := strings.Cut(arg, " -- ")
		name, typ, ok := strings.Cut(strings.TrimSpace(text), " ")
		if !ok || name == "" || strings.TrimSpace(typ) == "" {
			return nil, usagef("column %q: want 'NAME TYPE', as 'id BIGINT NOT NULL'", arg)
		}
		out = append(out, &pb.NewColumn{Name: name, Type: strings.TrimSpace(typ), Comment: strings.TrimSpace(comment)})
	}
	return out, nil
}

// given returns a pointer to v if the flag is on the command line.
func given[T any](f *pflag.FlagSet, name string, v T) *T {
	if !f.Changed(name) {
		return nil
	}
	return &v
}
