// Command peers measures Stave beside etcd and ZooKeeper in one run and writes
// the figures as a table, JSON, Markdown and charts.
//
// For each workload and repetition every system gets a fresh cluster of three
// processes, one system after another, so that no idle system disturbs another
// and drift of the machine meets all of them alike.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/stavedb/stave/bench/cluster"
	"github.com/stavedb/stave/bench/report"
	"github.com/stavedb/stave/bench/workload"
)

type options struct {
	systems, workloads []string
	reps               int
	duration           time.Duration
	out, dir, render   string
	smoke              bool
	kills              int
	programs           cluster.Programs
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "peers:", err)
		stop()
		os.Exit(1) //nolint:gocritic // stop was called
	}
}

func parse(args []string) (options, error) {
	var o options
	var all []string
	for _, w := range workload.All {
		all = append(all, w.ID)
	}
	var kinds []string
	for _, k := range cluster.Kinds {
		kinds = append(kinds, string(k))
	}
	f := flag.NewFlagSet("peers", flag.ContinueOnError)
	systems := f.String("systems", strings.Join(kinds, ","), "systems to measure, of "+strings.Join(kinds, ", "))
	works := f.String("workloads", strings.Join(all, ","), "letters of the workloads to run")
	f.IntVar(&o.reps, "reps", 3, "repetitions of each workload on each system")
	f.DurationVar(&o.duration, "duration", 5*time.Second, "how long each rate is measured")
	f.IntVar(&o.kills, "kills", 20, "how often the leader is killed in one repetition")
	f.StringVar(&o.out, "out", ".", "directory for RESULTS.md, results.json and charts")
	f.StringVar(&o.dir, "dir", os.TempDir(), "directory for the servers' data; a real disk, or syncs cost nothing")
	f.StringVar(&o.render, "render", "", "measure nothing; write everything of these results.json files, separated by commas")
	f.BoolVar(&o.smoke, "smoke", false, "run everything very small, to show that it works; writes nothing")
	f.StringVar(&o.programs.Stave, "stave", "bin/stave", "the stave program")
	f.StringVar(&o.programs.Etcd, "etcd", "bin/etcd", "the etcd server")
	f.StringVar(&o.programs.Java, "java", "java", "the java program")
	f.StringVar(&o.programs.ZooKeeperClasses, "zookeeper-classes", "/usr/share/java/zookeeper.jar", "class path of ZooKeeper")
	if err := f.Parse(args); err != nil {
		return options{}, err
	}
	o.systems, o.workloads = strings.Split(*systems, ","), strings.Split(*works, ",")
	for _, s := range o.systems {
		if !slices.Contains(kinds, s) {
			return options{}, fmt.Errorf("-systems %q: want some of %s", s, strings.Join(kinds, ","))
		}
	}
	for _, w := range o.workloads {
		if !slices.Contains(all, w) {
			return options{}, fmt.Errorf("-workloads %q: want some of %s", w, strings.Join(all, ","))
		}
	}
	if o.reps < 1 || o.kills < 1 || o.duration < 100*time.Millisecond {
		return options{}, errors.New("want -reps and -kills of at least 1 and a -duration of at least 100ms")
	}
	for _, path := range []*string{&o.programs.Stave, &o.programs.Etcd} { // servers run in directories of their own
		var err error
		if *path, err = filepath.Abs(*path); err != nil {
			return options{}, err
		}
	}
	return o, nil
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if errors.Is(err, flag.ErrHelp) {
		return nil
	}
	if err != nil {
		return err
	}
	if o.render != "" {
		r, err := readAll(strings.Split(o.render, ","))
		if err != nil {
			return err
		}
		return write(o, r)
	}
	r := &report.Run{
		Begin: time.Now(), Machine: report.Describe(o.dir), Systems: o.systems, Reps: o.reps, Duration: o.duration.String(),
	}
	r.Machine.Java = javaVersion(ctx, o)
	measureAll(ctx, o, r)
	r.Took = time.Since(r.Begin).Round(time.Second).String()
	if o.smoke {
		if err := r.WriteTable(os.Stdout); err != nil {
			return err
		}
		if len(r.Failed) > 0 {
			return errors.New(strings.Join(r.Failed, "\n"))
		}
		return ctx.Err()
	}
	return write(o, r)
}

// readAll reads results of several runs as one.
func readAll(paths []string) (*report.Run, error) {
	var all *report.Run
	for _, path := range paths {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		r, err := report.ReadJSON(f)
		if err = errors.Join(err, f.Close()); err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		if all == nil {
			all = r
		} else {
			all.Merge(r)
		}
	}
	return all, nil
}

// measureAll runs the workloads. A repetition that fails is noted, and the next
// one goes on.
func measureAll(ctx context.Context, o options, r *report.Run) {
	scale := workload.Full(o.duration)
	scale.KillRounds = o.kills
	if o.smoke {
		scale = workload.Smoke()
	}
	for _, w := range workload.All {
		if !slices.Contains(o.workloads, w.ID) {
			continue
		}
		for rep := range o.reps {
			for _, s := range o.systems {
				if ctx.Err() != nil {
					r.Failed = append(r.Failed, "interrupted before "+w.Title)
					return
				}
				begin := time.Now()
				samples, err := once(ctx, o, w, scale, cluster.Kind(s), rep)
				r.Samples = append(r.Samples, samples...)
				if err != nil {
					r.Failed = append(r.Failed, err.Error())
				}
				fmt.Fprintf(os.Stderr, "%s rep %d %-13s %6.1fs %s\n", w.ID, rep+1, s, time.Since(begin).Seconds(), verdict(err))
			}
		}
	}
}

func verdict(err error) string {
	if err != nil {
		return err.Error()
	}
	return "ok"
}

func once(ctx context.Context, o options, w workload.Workload, scale workload.Scale, k cluster.Kind, rep int) (_ []report.Sample, err error) {
	c, err := cluster.Start(ctx, k, o.programs, o.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	r := workload.Run{Cluster: c, Scale: scale, Rep: rep}
	err = w.Do(ctx, &r)
	return r.Samples, err
}

// javaVersion is the first line of java's answer, empty if ZooKeeper is not
// measured.
func javaVersion(ctx context.Context, o options) string {
	if !slices.Contains(o.systems, string(cluster.ZooKeeper)) {
		return ""
	}
	out, err := exec.CommandContext(ctx, o.programs.Java, "-version").CombinedOutput()
	if err != nil {
		return "unknown"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// write prints the table and writes the files of a run.
func write(o options, r *report.Run) error {
	if err := r.WriteTable(os.Stdout); err != nil {
		return err
	}
	charts := filepath.Join(o.out, "charts")
	if err := os.MkdirAll(charts, 0o755); err != nil {
		return err
	}
	var data strings.Builder
	if err := r.WriteJSON(&data); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(o.out, "results.json"), []byte(data.String()), 0o644); err != nil {
		return err
	}
	for _, c := range r.Charts() {
		var b strings.Builder
		if err := c.Chart.WriteSVG(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(charts, c.File), []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	var b strings.Builder
	if err := r.WriteMarkdown(&b); err != nil {
		return err
	}
	path := filepath.Join(o.out, "RESULTS.md")
	document, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		document, err = []byte("# Results\n"), nil
	}
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(report.Insert(string(document), b.String())), 0o644)
}
