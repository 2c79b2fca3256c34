package main

import (
	"bytes"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/stavedb/stave/internal/testcluster"
	"github.com/stavedb/stave/internal/testscript"
)

var (
	runners  = flag.String("runner", "", "what all scripts run on: sim, proc or both; default: a few of them on sim")
	seedFlag = flag.Uint64("seed", 1, "seed of workloads and faults")
	keepDir  = flag.String("keep", "", "directory for the histories of failing runs; default: a temporary one")
)

// fewScripts run with all other tests; "make scripts" runs every script.
var fewScripts = []string{"isolated_leader.txt", "kill_majority.txt", "stale_route.txt"}

// keptIn is where a failing run leaves its history.
func keptIn(t *testing.T) string {
	t.Helper()
	if *keepDir != "" {
		return filepath.Join(*keepDir, strings.ReplaceAll(t.Name(), "/", "_"))
	}
	dir, err := os.MkdirTemp("", "stave-history-") //nolint:usetesting // it stays when something was kept
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Remove(dir) }) // if nothing was kept
	return dir
}

// Every script of testdata/scripts passes: what it does to a cluster breaks no
// promise.
func TestScripts(t *testing.T) {
	files, err := filepath.Glob("../../testdata/scripts/*/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("scripts: %v, %v", files, err)
	}
	for _, kind := range []string{"sim", "proc"} {
		few := *runners == "" && kind == "sim"
		if *runners != kind && *runners != "both" && !few {
			continue
		}
		for _, file := range files {
			if few && !slices.Contains(fewScripts, filepath.Base(file)) {
				continue
			}
			name := strings.TrimSuffix(filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file), ".txt")
			t.Run(kind+"/"+name, func(t *testing.T) {
				text, err := os.ReadFile(file)
				if err != nil {
					t.Fatal(err)
				}
				if only, why := testscript.OnlyIn(text); only != "" && only != kind {
					t.Skipf("only in %s: %s", only, why)
				}
				dir, keep := t.TempDir(), keptIn(t)
				if kind == "sim" {
					synctest.Test(t, func(t *testing.T) { runScript(t, kind, file, dir, keep) })
				} else {
					runScript(t, kind, file, dir, keep)
				}
			})
		}
	}
}

func runScript(t *testing.T, kind, file, dir, keep string) {
	r := &testscript.Runner{Kind: kind, CLI: inProcess, Dir: dir, Seed: *seedFlag, Keep: keep, Open: func(cfg testcluster.Config) (*testcluster.Cluster, error) {
		if kind == "sim" {
			return testcluster.NewSim(cfg), nil
		}
		cfg.Command = nodeProcess
		return testcluster.NewProc(cfg)
	}}
	var log bytes.Buffer
	err := r.Run(t.Context(), file, &log)
	if err != nil {
		t.Errorf("%v\n%s\nagain: go test ./cmd/stave -run '%s' -runner %s -seed %d", err, log.String(), t.Name(), kind, *seedFlag)
	} else if testing.Verbose() {
		t.Log(log.String())
	}
}
