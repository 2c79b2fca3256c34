package raftnode

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/hashicorp/raft"

	"github.com/stavedb/stave/internal/failpoint"
	"github.com/stavedb/stave/internal/raftnet"
)

const (
	askTimeout  = 2 * time.Second
	askInterval = 200 * time.Millisecond
)

// settle binds a new directory to a cluster: it waits until every initial
// member has answered and then begins the cluster with them, or joins it, or
// refuses. It returns when the identity is written.
func (n *Node) settle(ctx context.Context) error {
	n.log.Info("data directory is new, asking the initial members", "members", slices.Sorted(maps.Keys(n.cfg.InitialCluster)))
	last := ""
	for {
		answers, missing, err := n.askAll(ctx)
		if err != nil {
			return err
		}
		if ctx.Err() != nil && last != "" {
			return fmt.Errorf("waiting for %s: %w", last, context.Cause(ctx)) // nobody could answer any more
		}
		id, wait, err := n.decide(answers, missing)
		if err != nil {
			return err
		}
		if wait == "" {
			n.mu.Lock()
			n.id = id
			n.mu.Unlock()
			return id.save(n.cfg.Dir)
		}
		if wait != last {
			n.log.Info("waiting", "for", wait)
			last = wait
		}
		n.waiting.Store(&wait)
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", wait, context.Cause(ctx))
		case <-n.stop:
			return ErrClosed
		case <-time.After(askInterval):
		}
	}
}

// askAll asks every other initial member at once. It fails with ErrOldBuild when
// one of them turns this build away.
func (n *Node) askAll(ctx context.Context) (answers map[string]raftnet.Answer, missing []string, err error) {
	type reply struct {
		id  string
		a   raftnet.Answer
		err error
	}
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	q := raftnet.Question{From: n.cfg.ID, Build: uint32(n.cfg.level)}
	ch := make(chan reply, len(n.cfg.InitialCluster))
	asked := 0
	for id, addr := range n.cfg.InitialCluster {
		if id == n.cfg.ID {
			continue
		}
		asked++
		n.goFunc(func() {
			a, err := raftnet.AskIdentity(ctx, n.cfg.Network, addr, id, q)
			ch <- reply{id, a, err}
		})
	}
	answers = map[string]raftnet.Answer{}
	for range asked {
		r := <-ch
		var refused *raftnet.RefusedError
		switch {
		case errors.As(r.err, &refused) && refused.Code == raftnet.RefusedBuild:
			err = fmt.Errorf("%w: this build has feature level %d: %w", ErrOldBuild, n.cfg.level, refused)
		case r.err != nil:
			missing = append(missing, r.id)
		default:
			answers[r.id] = r.a
		}
	}
	slices.Sort(missing)
	return answers, missing, err
}

// decide says what the answers allow: an identity to go on with, or what to
// wait for, or that this directory must not take part.
func (n *Node) decide(answers map[string]raftnet.Answer, missing []string) (id identity, wait string, err error) {
	id = n.id
	id.LogStore = n.cfg.LogStore
	_, initial := n.cfg.InitialCluster[n.cfg.ID]
	for _, peer := range slices.Sorted(maps.Keys(answers)) {
		a := answers[peer]
		if !a.HasLog {
			continue
		}
		me, known := findMember(a.Members, n.cfg.ID)
		switch {
		case known && me.Voter && me.Directory != n.id.Directory:
			return id, "", fmt.Errorf("%w: node %s is a voter with directory %q, this directory is %q; a voter that forgot what it "+
				"acknowledged loses data. Either start it with its old data directory, or run 'stave cluster remove %s' and then "+
				"'stave cluster add %s=%s' and start it with an empty directory", ErrForgotten, n.cfg.ID, me.Directory, n.id.Directory,
				n.cfg.ID, n.cfg.ID, n.cfg.AdvertiseRaft)
		case known && me.Voter:
			// Late to a bootstrap that counted on this very directory.
			id.Cluster = a.Cluster
			if first := directories(a.Members); sameNodes(first, n.cfg.InitialCluster) {
				id.Initial = first
			}
			return id, "", nil
		case known:
			id.Cluster = a.Cluster
			return id, "", nil
		case len(a.Members) == 0:
			wait = "node " + peer + " to start"
		case wait == "" && (len(missing) == 0 || !initial):
			wait = fmt.Sprintf("'stave cluster add %s=%s' (cluster %s does not know this node)", n.cfg.ID, n.cfg.AdvertiseRaft, a.Cluster)
		}
	}
	switch {
	case wait != "":
		return id, wait, nil
	case !initial:
		return id, "a member of the cluster among " + strings.Join(slices.Sorted(maps.Keys(n.cfg.InitialCluster)), ", "), nil
	case len(missing) > 0:
		return id, "the initial members " + strings.Join(missing, ", "), nil
	}
	id.Initial = map[string]string{n.cfg.ID: n.id.Directory}
	for peer, a := range answers {
		if a.Directory == "" {
			return id, "a directory id of " + peer, nil
		}
		id.Initial[peer] = a.Directory
	}
	id.Cluster = clusterID(n.cfg.InitialCluster, n.cfg.ClusterToken)
	return id, "", nil
}

// sameNodes reports whether the voters are exactly the initial members. Only
// then may a node that is late write the first entry itself: it would differ
// from everybody else's otherwise.
func sameNodes(voters, initial map[string]string) bool {
	if len(voters) != len(initial) {
		return false
	}
	for id := range voters {
		if _, ok := initial[id]; !ok {
			return false
		}
	}
	return true
}

func findMember(list []raftnet.Member, id string) (raftnet.Member, bool) {
	i := slices.IndexFunc(list, func(m raftnet.Member) bool { return m.Node == id })
	if i < 0 {
		return raftnet.Member{}, false
	}
	return list[i], true
}

// directories returns the directory ids of the voters.
func directories(list []raftnet.Member) map[string]string {
	out := map[string]string{}
	for _, m := range list {
		if m.Voter && m.Directory != "" {
			out[m.Node] = m.Directory
		}
	}
	return out
}

// bootstrap writes the initial configuration into an empty log. It can be
// repeated until then.
func (e *engine) bootstrap(id identity) error {
	if len(id.Initial) == 0 {
		return nil
	}
	last, err := e.stores.Log().LastIndex()
	if err != nil {
		return fmt.Errorf("last index of the log: %w", err)
	}
	snapshot, _, err := e.snaps.newest()
	if err != nil || last > 0 || snapshot > 0 {
		return err
	}
	var conf raft.Configuration
	for _, node := range slices.Sorted(maps.Keys(id.Initial)) {
		conf.Servers = append(conf.Servers, raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(node), Address: raft.ServerAddress(node)})
	}
	failpoint.Hit(failpoint.BootstrapBegin)
	// Raft's own bootstrap takes a term for a log: killed between the two it would
	// never be finished. Every initial member writes the same entry.
	term, err := e.currentTerm()
	if err != nil {
		return err
	}
	if term == 0 {
		if err := e.stores.Stable().SetUint64([]byte(termKey), 1); err != nil {
			return fmt.Errorf("bootstrap: %w", err)
		}
	}
	first := &raft.Log{Index: 1, Term: 1, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(conf)}
	if err := e.stores.Log().StoreLog(first); err != nil {
		return fmt.Errorf("bootstrap: %w", err)
	}
	failpoint.Hit(failpoint.BootstrapDone)
	return nil
}

// answer is what this node tells one that asks who it is.
func (n *Node) answer(raftnet.Question) raftnet.Answer {
	n.mu.Lock()
	id := n.id
	n.mu.Unlock()
	a := raftnet.Answer{Node: n.cfg.ID, Cluster: id.Cluster, Directory: id.Directory}
	e := n.engine.Load()
	if e == nil {
		// Until the log is open it is not known to be empty.
		a.HasLog = id.bound()
		return a
	}
	if e.raft.LastIndex() == 0 {
		return a
	}
	a.HasLog = true
	for _, s := range e.raft.GetConfiguration().Configuration().Servers {
		node := string(s.ID)
		addr, _ := n.Resolve(node)
		a.Members = append(a.Members, raftnet.Member{
			Node: node, Addr: addr, Directory: n.directoryOf(node), Voter: s.Suffrage == raft.Voter,
		})
	}
	return a
}
