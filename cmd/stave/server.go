package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/stavedb/stave/raftnode"
)

// serverFlags are the flags of a node.
type serverFlags struct {
	raft                          raftnode.Config
	apiAddr, httpAddr             string
	advertiseAPI, advertiseHTTP   string
	cluster                       []string
	logStore, logLevel, logFormat string
	pprof                         bool
	config                        string
}

func (a *app) serverCommand() *cobra.Command {
	var f serverFlags
	c := &cobra.Command{
		Use: "server", Short: "Run one node", Args: exactArgs(0),
		Long: `Run one node of a cluster. Every flag can also be set by a variable, as
STAVE_RAFT_ADDR for --raft-addr, or by a key of the TOML file that --config names, as
raft_addr; a flag wins over a variable, a variable over the file.

All initial members must be given the same --initial-cluster. A new data directory
waits until every one of them has answered; meanwhile /livez answers on the HTTP port
and /readyz does not.

The garbage collector is set for speed; GOGC, if set, is obeyed instead.`,
		Example: `  stave server --id n1 --data-dir /var/lib/stave \
    --raft-addr 10.0.0.1:7601 --api-addr 10.0.0.1:7401 --http-addr 10.0.0.1:7501 \
    --initial-cluster n1=10.0.0.1:7601,n2=10.0.0.2:7601,n3=10.0.0.3:7601`,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := fillFlags(c.LocalNonPersistentFlags(), a.env); err != nil {
				return err
			}
			cfg, err := f.nodeConfig(a)
			if err != nil {
				return err
			}
			a.tuneMemory()
			return runServer(c.Context(), cfg)
		},
	}
	f.define(c.Flags())
	return c
}

// runServer runs a node until ctx ends or it ends by itself.
func runServer(ctx context.Context, cfg nodeConfig) error {
	n, err := openNode(ctx, cfg)
	if err != nil {
		if ctx.Err() != nil {
			return nil //nolint:nilerr // asked to stop while it waited
		}
		return err
	}
	cfg.raft.Logger.Info("node serves", "node", cfg.raft.ID, "api", cfg.apiListen, "http", cfg.httpListen, "raft", cfg.raft.RaftAddr)
	return errors.Join(n.wait(ctx), n.close())
}

func (f *serverFlags) define(s *pflag.FlagSet) {
	r := &f.raft
	s.StringVar(&f.config, configFlag, "", "TOML file with a key for any of these flags")
	s.StringVar(&r.ID, "id", "", "id of the node, unique in the cluster for ever")
	s.StringVar(&r.Dir, "data-dir", "", "directory that holds everything the node keeps")
	s.StringVar(&r.RaftAddr, "raft-addr", "", "HOST:PORT to listen on for other nodes")
	s.StringVar(&f.apiAddr, "api-addr", "", "HOST:PORT to listen on for gRPC")
	s.StringVar(&f.httpAddr, "http-addr", "", "HOST:PORT to listen on for HTTP: JSON, probes, metrics")
	s.StringVar(&r.AdvertiseRaft, "advertise-raft", "", "HOST:PORT where other nodes reach --raft-addr; default the same")
	s.StringVar(&f.advertiseAPI, "advertise-api", "", "HOST:PORT where clients reach --api-addr; default the same")
	s.StringVar(&f.advertiseHTTP, "advertise-http", "", "HOST:PORT where clients reach --http-addr; default the same")
	s.StringSliceVar(&f.cluster, "initial-cluster", nil, "ID=HOST:PORT,... of the nodes that begin the cluster, with their raft addresses")
	s.StringVar(&r.ClusterToken, "cluster-token", "", "tells clusters apart whose initial members are equal")
	s.BoolVar(&r.NoForward, "no-forward", false, "refuse writes at a follower instead of handing them to the leader")
	s.StringVar(&f.logStore, "log-store", string(raftnode.LogStoreWAL), "store of the raft log, fixed per directory: wal or boltdb")
	s.DurationVar(&r.HeartbeatTimeout, "heartbeat-timeout", 0, "how long to wait for the leader; 0: 500ms")
	s.DurationVar(&r.ElectionTimeout, "election-timeout", 0, "how long to wait for votes; 0: as --heartbeat-timeout")
	s.DurationVar(&r.LeaderLease, "leader-lease", 0, "how long to lead without a majority; 0: half of --heartbeat-timeout")
	s.DurationVar(&r.CommitTimeout, "commit-timeout", 0, "how soon followers learn of a commit; 0: 5ms")
	s.Uint64Var(&r.SnapshotThreshold, "snapshot-threshold", 0, "entries that make a snapshot due; 0: 65536")
	s.DurationVar(&r.SnapshotInterval, "snapshot-interval", 0, "how often that is looked at; 0: 10s")
	s.Uint64Var(&r.TrailingLogs, "trailing-logs", 0, "entries that stay after a snapshot; 0: twice --snapshot-threshold")
	s.Int64Var(&r.MaxInFlight, "max-in-flight", 0, "bytes a leader takes in before they are replicated; 0: 32 MiB")
	s.StringVar(&f.logLevel, "log-level", "info", "debug, info, warn or error")
	s.StringVar(&f.logFormat, "log-format", "text", "text or json")
	s.BoolVar(&f.pprof, "pprof", false, "serve /debug/pprof on the HTTP port")
}

// nodeConfig checks the flags and reports everything wrong with them at once.
func (f *serverFlags) nodeConfig(a *app) (nodeConfig, error) {
	var errs []error
	fail := func(err error) { errs = append(errs, err) }
	for _, r := range []struct{ flag, value string }{
		{"--id", f.raft.ID}, {"--data-dir", f.raft.Dir}, {"--raft-addr", f.raft.RaftAddr}, {"--api-addr", f.apiAddr}, {"--http-addr", f.httpAddr},
	} {
		if r.value == "" {
			fail(fmt.Errorf("%s is not set", r.flag))
		}
	}
	if len(errs) > 0 {
		return nodeConfig{}, firstUsage(errors.Join(errs...))
	}
	cfg := nodeConfig{raft: f.raft, apiListen: f.apiAddr, httpListen: f.httpAddr, pprof: f.pprof}
	cfg.raft.LogStore = raftnode.LogStore(f.logStore)
	var err error
	if cfg.raft.InitialCluster, err = parseMembers(f.cluster); err != nil {
		fail(err)
	}
	if cfg.raft.APIAddr, err = advertised(f.advertiseAPI, f.apiAddr, "--advertise-api"); err != nil {
		fail(err)
	}
	if cfg.raft.HTTPAddr, err = advertised(f.advertiseHTTP, f.httpAddr, "--advertise-http"); err != nil {
		fail(err)
	}
	level, err := parseLevel(f.logLevel)
	if err != nil {
		fail(err)
	}
	if cfg.raft.Logger, err = a.newLogger(level, f.logFormat); err != nil {
		fail(err)
	}
	fail(cfg.raft.Validate())
	return cfg, firstUsage(errors.Join(errs...))
}

// parseMembers reads ID=HOST:PORT,...
func parseMembers(list []string) (map[string]string, error) {
	if len(list) == 0 {
		return nil, fmt.Errorf("--initial-cluster is not set: want ID=HOST:PORT,... of the nodes that begin the cluster")
	}
	out := map[string]string{}
	for _, m := range list {
		id, addr, ok := strings.Cut(strings.TrimSpace(m), "=")
		if !ok || id == "" || addr == "" {
			return nil, fmt.Errorf("--initial-cluster: %q is not ID=HOST:PORT", m)
		}
		if _, twice := out[id]; twice {
			return nil, fmt.Errorf("--initial-cluster: node %s is there twice", id)
		}
		out[id] = addr
	}
	return out, nil
}
