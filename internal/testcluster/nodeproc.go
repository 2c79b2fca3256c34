package testcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strings"
	"time"

	"github.com/stavedb/stave/internal/raftnet"
	"github.com/stavedb/stave/raftnode"
)

// nodeEnv tells a process that it is a node; its value is the dial map, as JSON.
const nodeEnv = "STAVE_TEST_NODE"

// Seams are what a node's process must give to raftnode.Config.
type Seams struct {
	Network raftnode.Network
	Disk    *Disk
	Clock   *Clock
}

// NodeSeams returns the seams of this process, and false if it is no node that a
// cluster under test started.
func NodeSeams() (Seams, bool, error) {
	v, ok := os.LookupEnv(nodeEnv)
	if !ok {
		return Seams{}, false, nil
	}
	network := rerouted{}
	if err := json.Unmarshal([]byte(v), &network.via); err != nil {
		return Seams{}, true, fmt.Errorf("%s: %w", nodeEnv, err)
	}
	return Seams{Network: network, Disk: NewDisk(), Clock: NewClock()}, true, nil
}

// rerouted is TCP whose dials go through the proxies of the parent.
type rerouted struct {
	raftnet.TCP
	via map[string]string
}

// Dial implements raftnode.Network.
func (r rerouted) Dial(ctx context.Context, addr string) (net.Conn, error) {
	if via, ok := r.via[addr]; ok {
		addr = via
	}
	return r.TCP.Dial(ctx, addr)
}

// Obey carries out the orders that come on in, one line each, and answers each
// with one line on out. It returns at the end of in, which is the parent's end.
func (s Seams) Obey(in io.Reader, out io.Writer, node func() *raftnode.Node) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		answer, err := s.obey(strings.Fields(lines.Text()), node())
		if err != nil {
			answer = "error " + err.Error()
		}
		if _, err := fmt.Fprintln(out, answer); err != nil {
			return err
		}
	}
	return lines.Err()
}

func (s Seams) obey(words []string, n *raftnode.Node) (string, error) {
	if len(words) == 0 {
		return "", fmt.Errorf("empty order")
	}
	switch words[0] {
	case "disk":
		return "ok", s.Disk.Set(DiskMode(words[1]))
	case "clock":
		d, err := time.ParseDuration(words[1])
		s.Clock.Jump(d)
		return "ok", err
	case "status":
		if n == nil {
			return "", fmt.Errorf("not open yet")
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		st, err := statusOf(ctx, n, s.Disk)
		if err != nil {
			return "", err
		}
		st.Goroutines = runtime.NumGoroutine()
		if fds, err := os.ReadDir("/proc/self/fd"); err == nil {
			st.Files = len(fds)
		}
		b, err := json.Marshal(st)
		return string(b), err
	}
	return "", fmt.Errorf("unknown order %q", words[0])
}
