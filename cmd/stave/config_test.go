package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/spf13/pflag"
)

func configFlags() (*pflag.FlagSet, *serverFlags) {
	f := &serverFlags{}
	s := pflag.NewFlagSet("server", pflag.ContinueOnError)
	f.define(s)
	return s, f
}

func writeConfig(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "stave.toml")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// A flag wins over a variable, a variable over the file, the file over the
// default.
func TestFillFlags_Precedence(t *testing.T) {
	path := writeConfig(t, `id = "file"
raft_addr = "file:1"
api-addr = "file:2"
log-level = "debug"
snapshot-threshold = 77
no-forward = true
initial-cluster = ["n1=a:1", "n2=b:1"]
heartbeat-timeout = "700ms"
`)
	s, f := configFlags()
	if err := s.Parse([]string{"--config", path, "--id", "flag"}); err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"STAVE_ID": "env", "STAVE_RAFT_ADDR": "env:1", "STAVE_HTTP_ADDR": "env:3"}
	if err := fillFlags(s, func(k string) (string, bool) { v, ok := env[k]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ what, got, want string }{
		{"id", f.raft.ID, "flag"},
		{"raft-addr", f.raft.RaftAddr, "env:1"},
		{"http-addr", f.httpAddr, "env:3"},
		{"api-addr", f.apiAddr, "file:2"},
		{"log-format", f.logFormat, "text"},
		{"initial-cluster", strings.Join(f.cluster, " "), "n1=a:1 n2=b:1"},
		{"heartbeat-timeout", f.raft.HeartbeatTimeout.String(), "700ms"},
	} {
		if c.got != c.want {
			t.Errorf("%s is %q, want %q", c.what, c.got, c.want)
		}
	}
	if f.raft.SnapshotThreshold != 77 || !f.raft.NoForward {
		t.Errorf("snapshot threshold %d and no-forward %t, want 77 and true", f.raft.SnapshotThreshold, f.raft.NoForward)
	}
}

// Every flag of a server has a variable of its own.
func TestFillFlags_EveryVariable(t *testing.T) {
	s, _ := configFlags()
	values := map[string]string{"string": "v", "bool": "true", "duration": "3s", "uint64": "9", "int64": "9", "float64": "9", "int": "9", "stringSlice": "a=b:1,c=d:1"}
	env := map[string]string{}
	want := map[string]string{}
	s.VisitAll(func(f *pflag.Flag) {
		if f.Name == configFlag {
			return
		}
		v, ok := values[f.Value.Type()]
		if !ok {
			t.Fatalf("flag %s has type %s: give it a value here", f.Name, f.Value.Type())
		}
		env[variable(f.Name)] = v
		want[f.Name] = v
	})
	if err := fillFlags(s, func(k string) (string, bool) { v, ok := env[k]; return v, ok }); err != nil {
		t.Fatal(err)
	}
	for name, v := range want {
		if got := strings.Trim(s.Lookup(name).Value.String(), "[]"); got != v {
			t.Errorf("%s is %q, want %q", name, got, v)
		}
	}
}

// What is wrong in a file or variable is named with its place.
func TestFillFlags_Refusals(t *testing.T) {
	for _, c := range []struct {
		name, file string
		env        map[string]string
		want       string
	}{
		{"unknown key", "id = \"n1\"\n\n# comment\nraft_adr = \"x\"\n", nil, `:4: unknown key "raft_adr"`},
		{"unknown key, quoted", "\"idd\" = \"n1\"\n", nil, `:1: unknown key "idd"`},
		{"table", "id = \"n1\"\n[raft]\naddr = \"x\"\n", nil, ":2: raft: is a table"},
		{"dotted key", "raft.addr = \"x\"\n", nil, ":1: raft: is a table"},
		{"twice, spelled twice", "raft-addr = \"a:1\"\nraft_addr = \"a:1\"\n", nil, ":2: \"raft_addr\" is set twice, also in line 1"},
		{"syntax", "id = n1\n", nil, ":1: "},
		{"not a number", "id = \"a\"\nsnapshot-threshold = \"many\"\n", nil, ":2: invalid argument \"many\""},
		{"float", "max-in-flight = 1.5\n", nil, ":1: max-in-flight: want a string, a whole number"},
		{"list of numbers", "initial-cluster = [1]\n", nil, ":1: initial-cluster: want a list of strings"},
		{"config in config", "config = \"other.toml\"\n", nil, `:1: unknown key "config"`},
		{"bad variable", "", map[string]string{"STAVE_PPROF": "perhaps"}, "variable STAVE_PPROF: "},
		{"missing file", "", map[string]string{"STAVE_CONFIG": "/nonexistent/stave.toml"}, "no such file"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s, _ := configFlags()
			var args []string
			if c.file != "" {
				args = []string{"--config", writeConfig(t, c.file)}
			}
			if err := s.Parse(args); err != nil {
				t.Fatal(err)
			}
			err := fillFlags(s, func(k string) (string, bool) { v, ok := c.env[k]; return v, ok })
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, want %q in it", err, c.want)
			}
		})
	}
}

// A server says everything that is wrong with its flags, and exits with 2.
func TestServer_Usage(t *testing.T) {
	good := []string{
		"server", "--id", "n1", "--data-dir", t.TempDir(), "--raft-addr", "127.0.0.1:1", "--api-addr", "127.0.0.1:2", "--http-addr", "127.0.0.1:3",
		"--initial-cluster", "n1=127.0.0.1:1",
	}
	with := func(more ...string) []string { return append(append([]string{}, good...), more...) }
	for _, c := range []struct {
		name string
		args []string
		want []string
	}{
		{"nothing", []string{"server"}, []string{"--id is not set", "--data-dir is not set", "--raft-addr", "--api-addr", "--http-addr"}},
		{"id", with("--id", "a b"), []string{`id "a b"`}},
		{"cluster", with("--initial-cluster", "nonsense"), []string{`"nonsense" is not ID=HOST:PORT`}},
		{"cluster twice", with("--initial-cluster", "n2=h:1,n2=h:2"), []string{"there twice"}},
		{"own address", with("--advertise-raft", "10.0.0.1:9"), []string{"address of n1 is 127.0.0.1:1"}},
		{"wildcard", with("--api-addr", "0.0.0.0:2"), []string{"--advertise-api", "wildcard"}},
		{"level", with("--log-level", "loud"), []string{`--log-level "loud"`}},
		{"format", with("--log-format", "xml"), []string{`--log-format "xml"`}},
		{"store", with("--log-store", "tape"), []string{`log store "tape"`}},
		{"time", with("--heartbeat-timeout", "1ns"), []string{"heartbeat timeout 1ns"}},
		{"argument", with("extra"), []string{"wants no arguments, got 1"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			runner{}.fails(t, exitUsage, c.want, c.args...)
		})
	}
}

// A command line is remembered for twice as long as its calls may take, within what
// the cluster allows.
func TestRecordTTL(t *testing.T) {
	for timeout, want := range map[time.Duration]time.Duration{
		0: time.Hour, time.Second: time.Minute, 10 * time.Second: time.Minute, 5 * time.Minute: 10 * time.Minute, 31 * time.Minute: time.Hour,
	} {
		if got := (&app{timeout: timeout}).recordTTL(); got != want {
			t.Errorf("with --timeout %s: %s, want %s", timeout, got, want)
		}
	}
}
