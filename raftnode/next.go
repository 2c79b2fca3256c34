//go:build stave_next

package raftnode

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/stavedb/stave/catalog"
)

// nextDuties write the marker of this build, as soon as the cluster's feature
// level allows it. With STAVE_NEXT_UNGATED set they do not ask, which is the fault
// that the level is there to prevent.
func nextDuties() []duty {
	return []duty{{"next", 500 * time.Millisecond, byNode((*Node).dutyNext)}}
}

func (n *Node) dutyNext(ctx context.Context, l *leadership) error {
	m := catalog.NextMarker{Text: n.cfg.ID}
	if os.Getenv("STAVE_NEXT_UNGATED") != "" {
		_, err := n.proposeOwn(n.engine.Load(), ctx.Done(), l.lease, m)
		if errors.Is(err, catalog.ErrUnsupportedCommandVersion) {
			return nil // by the state machine: it is in the log
		}
		return err
	}
	if n.fsm.State().Allows(m.Kind()) != nil {
		return nil
	}
	return n.order(ctx, l, m)
}
