package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	pb "github.com/stavedb/stave/api/stave/v1"
)

const (
	defaultEndpoint = "127.0.0.1:7401"
	defaultTimeout  = 10 * time.Second
)

// app is one run of the program: where it reads and writes, and the flags that
// every verb has.
type app struct {
	in        io.Reader
	out, errs io.Writer
	env       func(string) (string, bool)
	// atTerminal says that in is one; else it is looked at.
	atTerminal bool
	// dial replaces how connections to nodes are made; nil: TCP.
	dial func(ctx context.Context, addr string) (net.Conn, error)

	output      outputFlag
	endpoints   []string
	timeout     time.Duration
	consistency consistencyFlag

	// began is set once the command line was understood: an error before it is
	// one of usage.
	began bool
}

// run executes one command line and returns the exit code.
func (a *app) run(ctx context.Context, args []string) int {
	root := a.root()
	root.SetArgs(append([]string{}, args...)) // nil would mean those of the process
	root.SetIn(a.in)
	root.SetOut(a.out)
	root.SetErr(a.errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	var usage *usageError
	if !a.began && !errors.As(err, &usage) {
		err = &usageError{message: firstLine(err.Error())}
	}
	if asksJSON(args) {
		a.output = outputJSON
	}
	return a.report(err)
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}

// asksJSON finds -o json in a command line that may be wrong elsewhere.
func asksJSON(args []string) bool {
	for i, arg := range args {
		switch arg {
		case "--":
			return false
		case "-ojson", "-o=json", "--output=json":
			return true
		case "-o", "--output":
			if i+1 < len(args) && args[i+1] == string(outputJSON) {
				return true
			}
		}
	}
	return false
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "stave",
		Short: "Replicated metadata of tables, partitions and buckets",
		Long: `Stave keeps the metadata of tables that are split into partitions and buckets,
on three or more nodes. A partition's bucket count is fixed at its creation, and a
change of the table's default is one atomic command.`,
		Example: `  stave dev
  export STAVE_ENDPOINTS=127.0.0.1:7401
  stave database create shop
  stave table create shop.orders --column 'id INT' --column 'dt STRING' --partition-key dt --bucket-key id --buckets 4
  stave partition create shop.orders dt=2026-11-30`,
		SilenceErrors: true,
		SilenceUsage:  true,
		PersistentPreRun: func(*cobra.Command, []string) {
			a.began = true
		},
	}
	root.CompletionOptions.DisableDefaultCmd = true
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return usagef("%s; see '%s --help'", flagError(err), c.CommandPath())
	})
	a.output = outputTable
	f := root.PersistentFlags()
	f.VarP(&a.output, "output", "o", "output format: table or json")
	f.StringSliceVar(&a.endpoints, "endpoints", nil, "API addresses of nodes, HOST:PORT,... (STAVE_ENDPOINTS; default "+defaultEndpoint+")")
	f.DurationVar(&a.timeout, "timeout", defaultTimeout, "how long a call may take, retries included; 0: no bound")
	f.Var(&a.consistency, "consistency", "freshness of reads: linearizable, stale or at-least:REV[@INCARNATION]")
	root.AddCommand(
		a.devCommand(), a.serverCommand(),
		a.databaseCommand(), a.tableCommand(), a.partitionCommand(), a.layoutCommand(), a.routeCommand(), a.kvCommand(), a.tabletCommand(),
		a.rebalanceCommand(),
		a.clusterCommand(), a.snapshotCommand(), a.exportCommand(), a.importCommand(), a.watchCommand(), a.benchCommand(),
		a.versionCommand(), a.completionCommand(),
	)
	a.refuseStrayWords(root)
	a.completeVerbs(root)
	return root
}

// refuseStrayWords makes a noun without a verb, or with an unknown one, an error
// of usage; left alone it would print its help and succeed.
func (a *app) refuseStrayWords(c *cobra.Command) {
	for _, sub := range c.Commands() {
		a.refuseStrayWords(sub)
	}
	if c.Runnable() || !c.HasSubCommands() {
		return
	}
	c.Args = cobra.ArbitraryArgs
	c.RunE = func(c *cobra.Command, args []string) error {
		var verbs []string
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() && sub.Name() != "help" {
				verbs = append(verbs, sub.Name())
			}
		}
		list := strings.Join(verbs, ", ")
		if len(args) == 0 {
			return usagef("'%s' wants one of: %s", c.CommandPath(), list)
		}
		return usagef("unknown command %q for '%s', want one of: %s", args[0], c.CommandPath(), list)
	}
}

// terminal reports whether w is one.
func terminal(w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// json reports whether output is JSON.
func (a *app) json() bool { return a.output == outputJSON }

// read is the consistency of a request; nil is linearizable.
func (a *app) read() *pb.Consistency { return a.consistency.proto() }

// noun is a command that only has verbs.
func noun(use, short string, verbs ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short}
	c.AddCommand(verbs...)
	return c
}

// exactArgs wants as many arguments as the usage line names.
func exactArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) != n {
			return usagef("'%s' wants %s, got %d: usage is '%s'", c.CommandPath(), arguments(n), len(args), c.UseLine())
		}
		return nil
	}
}

func arguments(n int) string {
	switch n {
	case 0:
		return "no arguments"
	case 1:
		return "1 argument"
	}
	return fmt.Sprintf("%d arguments", n)
}

// rangeArgs wants between low and high arguments.
func rangeArgs(low, high int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < low || len(args) > high {
			return usagef("'%s' wants %d to %d arguments, got %d: usage is '%s'", c.CommandPath(), low, high, len(args), c.UseLine())
		}
		return nil
	}
}

// minArgs wants at least n arguments.
func minArgs(n int) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if len(args) < n {
			return usagef("'%s' wants at least %s, got %d: usage is '%s'", c.CommandPath(), arguments(n), len(args), c.UseLine())
		}
		return nil
	}
}
