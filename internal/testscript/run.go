package testscript

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"rsc.io/script"

	"github.com/stavedb/stave/internal/testcluster"
	"github.com/stavedb/stave/internal/testhistory"
)

// CLI runs one command line of the stave program in this process and returns its
// exit code.
type CLI func(ctx context.Context, in io.Reader, out, errs io.Writer, env map[string]string, dial func(context.Context, string) (net.Conn, error), args []string) int

// Runner runs scripts of one kind.
type Runner struct {
	// Kind is "sim" or "proc".
	Kind string
	// Open makes a cluster that is not started.
	Open func(testcluster.Config) (*testcluster.Cluster, error)
	CLI  CLI
	// Dir is the script's own directory; clusters live in it.
	Dir  string
	Seed uint64
	// Keep is where a failing run leaves its history.
	Keep string
}

// run is one script under way.
type run struct {
	*Runner
	ctx  context.Context
	c    *testcluster.Cluster
	h    *testhistory.History
	load *testhistory.Load
	code int
	// led is who led when an order last said "leader".
	led     string
	observe context.CancelFunc
	seen    chan struct{}
	report  *testhistory.Report
}

// OnlyIn returns the one runner a script is for, and why; "" for both. The
// script says so in a line "# only RUNNER: reason".
func OnlyIn(text []byte) (kind, reason string) {
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, "# only "); ok {
			kind, reason, _ = strings.Cut(rest, ":")
			return kind, strings.TrimSpace(reason)
		}
	}
	return "", ""
}

// Run runs a script. Its log goes to log.
func (r *Runner) Run(ctx context.Context, file string, log io.Writer) (err error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	st, err := script.NewState(ctx, r.Dir, []string{"HOME=" + r.Dir})
	if err != nil {
		return err
	}
	x := &run{Runner: r, ctx: ctx}
	defer func() {
		closed := st.CloseAndWait(log)
		if err == nil {
			err = closed
		}
		err = errors.Join(err, x.end(err != nil, log))
	}()
	return x.engine().Execute(st, filepath.Base(file), bufio.NewReader(bytes.NewReader(text)), log)
}

// end finishes what a script left running; a failed one is judged and kept.
func (x *run) end(failed bool, log io.Writer) error {
	if x.c == nil {
		return nil
	}
	x.endObserving()
	if x.report == nil && failed {
		if r, err := testhistory.Check(x.c, x.h); err == nil {
			x.report = r
		}
	}
	if x.report != nil {
		_, _ = fmt.Fprintln(log, x.report)
	}
	if failed && x.report != nil && x.Keep != "" {
		file, err := testhistory.Keep(x.Keep, x.c, x.h, x.report)
		_, _ = fmt.Fprintln(log, "history kept in", file, err)
	}
	return x.c.Finish()
}

func (x *run) endObserving() {
	if x.observe != nil {
		x.observe()
		<-x.seen
		x.observe = nil
	}
}

func (x *run) engine() *script.Engine {
	std := script.DefaultCmds()
	cmds := map[string]script.Cmd{}
	for _, name := range []string{"cat", "cmp", "echo", "env", "exists", "grep", "help", "mkdir", "sleep", "stderr", "stdout", "wait"} {
		cmds[name] = std[name]
	}
	maps.Copy(cmds, x.orders())
	maps.Copy(cmds, x.others())
	return &script.Engine{Cmds: cmds, Conds: map[string]script.Cond{
		"sim":  script.BoolCondition("in virtual time", x.Kind == "sim"),
		"proc": script.BoolCondition("against processes", x.Kind == "proc"),
		"power-loss": script.OnceCondition("where power can be lost", func() (bool, error) {
			return x.Kind == "proc" && testcluster.CanLosePower() == nil, nil
		}),
	}}
}

// order makes a command of an order that needs a cluster.
func (x *run) order(args, summary string, do func(args []string) error) script.Cmd {
	return script.Command(script.CmdUsage{Summary: summary, Args: args}, func(_ *script.State, args ...string) (script.WaitFunc, error) {
		if x.c == nil {
			return nil, errNoCluster
		}
		return nil, do(args)
	})
}

var errNoCluster = errors.New("no cluster: begin with 'cluster'")

func (x *run) nodes(words []string) ([]string, error) {
	if x.c == nil {
		return nil, errNoCluster
	}
	if len(words) == 0 {
		return nil, script.ErrUsage
	}
	ids, err := x.c.Select(x.ctx, words...)
	if err == nil && slices.Contains(words, "leader") {
		x.led = ids[slices.Index(words, "leader")]
	}
	return ids, err
}

func duration(word string) (time.Duration, error) {
	d, err := time.ParseDuration(strings.TrimPrefix(word, "+"))
	if err != nil {
		return 0, fmt.Errorf("duration %q: want one like 500ms, 10s or -1h", word)
	}
	return d, nil
}
