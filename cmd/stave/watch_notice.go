package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	pb "github.com/stavedb/stave/api/stave/v1"
	"github.com/stavedb/stave/catalog"
	"github.com/stavedb/stave/client"
)

// notices tells on stderr why a watch may stay silent: what it watches does not
// exist, or it starts after a revision that is not there yet. Both are waited
// for. What cannot be found out is not told.
func (a *app) notices(ctx context.Context, s *session, o client.WatchOptions) {
	ctx, cancel := a.bound(ctx)
	defer cancel()
	var absent string
	var err error
	switch {
	case o.Filter.Table != "":
		database, _, _ := strings.Cut(o.Filter.Table, ".")
		if _, _, err = s.Table(ctx, o.Filter.Table); err != nil {
			absent = "table " + o.Filter.Table
			if _, _, derr := s.Database(ctx, database); errors.Is(derr, catalog.ErrDatabaseNotExist) {
				absent = "database " + database
			}
		}
	case o.Filter.Database != "":
		_, _, err = s.Database(ctx, o.Filter.Database)
		absent = "database " + o.Filter.Database
	}
	if errors.Is(err, catalog.ErrTableNotExist) || errors.Is(err, catalog.ErrDatabaseNotExist) {
		a.notice("%s does not exist: waiting for it to be created", absent)
	}
	if !o.From.Set {
		return
	}
	st, err := s.cluster.Status(ctx, &pb.StatusRequest{})
	if current := st.GetHeader().GetRevision(); err == nil && uint64(o.From.V) > current {
		a.notice("--from %d is ahead of the cluster, which is at revision %d: waiting for it", o.From.V, current)
	}
}

// notice tells people something that is no error.
func (a *app) notice(format string, args ...any) {
	_, _ = fmt.Fprintf(a.errs, "notice: "+format+"\n", args...) //nolint:errcheck // there is nowhere else to say it
}
