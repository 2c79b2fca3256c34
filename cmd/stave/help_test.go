package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// eachVerb calls f with every command that does something.
func eachVerb(c *cobra.Command, f func(*cobra.Command)) {
	for _, sub := range c.Commands() {
		eachVerb(sub, f)
	}
	if !c.HasSubCommands() && c.Name() != "help" {
		f(c)
	}
}

// Every verb says what it does, shows an example of itself, and describes each
// of its flags.
func TestHelp(t *testing.T) {
	a := &app{}
	verbs := 0
	eachVerb(a.root(), func(c *cobra.Command) {
		verbs++
		path := c.CommandPath()
		if c.Short == "" || !strings.Contains(c.Example, "stave "+strings.TrimPrefix(path, "stave ")) {
			t.Errorf("%s: short text %q, example %q", path, c.Short, c.Example)
		}
		if usage := c.LocalFlags().FlagUsages(); strings.Contains(usage, "   \n") {
			t.Errorf("%s: a flag without a text:\n%s", path, usage)
		}
		if out := (runner{}).must(t, append(strings.Fields(path)[1:], "--help")...); !strings.Contains(out, c.Example) {
			t.Errorf("%s --help does not show its example:\n%s", path, out)
		}
	})
	if verbs < 40 {
		t.Errorf("%d verbs were looked at", verbs)
	}
}

// Names are completed from the cluster, fixed words without one; without an
// answer nothing is said.
func TestCompletion(t *testing.T) {
	r, _ := newDev(t, 1)
	r.must(t, "database", "create", "shop")
	r.must(t, "table", "create", "shop.t", "--column", "id INT")
	r.must(t, "tablet", "register", "7", "--listener", "h:1")
	words := func(r runner, args ...string) []string {
		var out []string
		for line := range strings.Lines(r.run(t.Context(), append([]string{"__complete"}, args...)...).out) {
			if line = strings.TrimSpace(line); !strings.HasPrefix(line, ":") {
				out = append(out, line)
			}
		}
		return out
	}
	nobody := runner{endpoints: []string{"127.0.0.1:1"}}
	for _, c := range []struct {
		r    runner
		line string
		want []string
	}{
		{r, "database get", []string{"shop"}},
		{r, "table get", []string{"shop.t"}},
		{r, "watch", []string{"shop", "shop.t"}},
		{r, "tablet drain", []string{"7"}},
		{r, "cluster remove", []string{"n1"}},
		{nobody, "table get", nil},
		{nobody, "tablet tag", []string{tagPermanent, tagTemporary}},
		{nobody, "completion", []string{"bash", "zsh", "fish", "powershell"}},
		{nobody, "table list -o", []string{"table", "json"}},
		{nobody, "server --log-store", []string{"wal", "boltdb"}},
	} {
		if got := words(c.r, append(strings.Fields(c.line), "")...); !slices.Equal(got, c.want) {
			t.Errorf("completion of %q: %q, want %q", c.line, got, c.want)
		}
	}
	for _, shell := range []string{"bash", "zsh", "fish", "powershell"} {
		if out := (runner{}).must(t, "completion", shell); !strings.Contains(out, "stave") {
			t.Errorf("completion script of %s: %q", shell, out)
		}
	}
}

// The version names every format.
func TestVersion(t *testing.T) {
	v := decode[buildVersion](t, runner{}.must(t, "version", "-o", "json"))
	if v.Version == "" || v.Go == "" || v.Platform == "" || v.FeatureLevel == 0 || v.SnapshotFormat == 0 || v.ExportFormat == 0 {
		t.Errorf("%+v", v)
	}
}
