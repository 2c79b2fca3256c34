package cluster

import (
	"net"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
)

// Ports are distinct, free, and outside the range of outgoing connections.
func TestFreePorts(t *testing.T) {
	ports, err := freePorts(9)
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(ports)
	if len(slices.Compact(ports)) != 9 || ports[0] < lowPort || ports[8] >= highPort {
		t.Errorf("ports are %v", ports)
	}
	l, err := net.Listen("tcp", loopback(ports[0]))
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
}

// A stopped process is gone when stop returns, and its output is kept.
func TestProcess(t *testing.T) {
	shell, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("no shell to run as a process")
	}
	dir := t.TempDir()
	p, err := startProcess(dir, "log", []string{shell, "-c", "echo started; exec sleep 60"})
	if err != nil {
		t.Fatal(err)
	}
	if !p.running() {
		t.Error("the process ended by itself")
	}
	p.stop()
	if p.running() {
		t.Error("the process runs after it was stopped")
	}
	q, err := startProcess(dir, "log2", []string{shell, "-c", "echo one; echo two"})
	if err != nil {
		t.Fatal(err)
	}
	<-q.done
	if got := tail(filepath.Join(dir, "log2"), 1); got != "two" {
		t.Errorf("last line is %q, want two", got)
	}
}

// Every system is known, and nothing else is.
func TestNewSystem(t *testing.T) {
	for _, k := range Kinds {
		if _, err := newSystem(k, Programs{}); err != nil {
			t.Error(err)
		}
	}
	if _, err := newSystem("consul", Programs{}); err == nil {
		t.Error("an unknown system was accepted")
	}
}
