package testcluster

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/stavedb/stave/internal/raftnet"
	"github.com/stavedb/stave/raftnode"
)

// proc runs every node as a process.
type proc struct {
	cfg     Config
	hosts   []string
	initial []string          // id=addr of the nodes that begin
	raft    map[string]string // real raft address by host
	api     map[string]string
	http    map[string]string
	gates   map[[2]string]*gate
	proxies map[[2]string]*proxy // to raft ports by (from, to); from ClientHost to API ports
	images  map[string]*image

	mu    sync.Mutex
	procs map[string]*process
	said  []string
}

// process is one running node.
type process struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	out   *bufio.Reader
	talk  sync.Mutex
	ended chan struct{}
	err   error // of Wait; valid once ended is closed
}

func newProc(cfg Config, ids, spares []string) (*proc, error) {
	p := &proc{
		cfg: cfg, raft: map[string]string{}, api: map[string]string{}, http: map[string]string{}, gates: map[[2]string]*gate{},
		proxies: map[[2]string]*proxy{}, images: map[string]*image{}, procs: map[string]*process{},
	}
	p.hosts = append(append(append([]string{}, ids...), spares...), ArchiveHost)
	next := freePorts(3 * len(p.hosts))
	for _, h := range p.hosts {
		p.raft[h], p.api[h], p.http[h] = next(), next(), next()
	}
	for _, id := range ids {
		p.initial = append(p.initial, id+"="+p.raft[id])
		if !cfg.OwnDisks {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(p.dir(id)), 0o755); err != nil {
			return nil, err
		}
		img, err := mountImage(filepath.Join(cfg.Dir, id, "image.0"), p.dir(id))
		if err != nil {
			return nil, errors.Join(err, p.close())
		}
		p.images[id] = img
	}
	all := append(p.hosts, ClientHost)
	for _, a := range all {
		for _, b := range all {
			p.gates[[2]string{a, b}] = newGate()
		}
	}
	for _, from := range all {
		for _, to := range p.hosts {
			if from == to {
				continue
			}
			target := p.raft[to]
			if from == ClientHost {
				target = p.api[to]
			}
			x, err := newProxy("127.0.0.1:0", target, p.gates[[2]string{from, to}], p.gates[[2]string{to, from}])
			if err != nil {
				return nil, errors.Join(err, p.close())
			}
			p.proxies[[2]string{from, to}] = x
		}
	}
	return p, nil
}

// freePorts hands out addresses nobody listens on, below the range that outgoing
// connections take theirs from.
func freePorts(n int) func() string {
	for {
		base := 10_000 + rand.IntN(20_000)
		free := true
		for i := range n {
			l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", base+i))
			if err != nil {
				free = false
				break
			}
			_ = l.Close()
		}
		if free {
			return func() string { base++; return fmt.Sprintf("127.0.0.1:%d", base-1) }
		}
	}
}

func (p *proc) kind() string              { return "proc" }
func (p *proc) raftAddr(id string) string { return p.raft[id] }
func (p *proc) apiAddr(id string) string  { return p.api[id] }
func (p *proc) dir(id string) string      { return filepath.Join(p.cfg.Dir, id, "data") }

func (p *proc) dial(ctx context.Context, addr string) (net.Conn, error) {
	for id, a := range p.api {
		if a == addr {
			addr = p.proxies[[2]string{ClientHost, id}].addr()
		}
	}
	return raftnet.TCP{}.Dial(ctx, addr)
}

func (p *proc) network(host string) raftnode.Network { return rerouted{via: p.via(host)} }

func (p *proc) via(from string) map[string]string {
	out := map[string]string{}
	for k, x := range p.proxies {
		if k[0] == from {
			out[p.raft[k[1]]] = x.addr()
		}
	}
	return out
}

func (p *proc) start(id string) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.procs[id] != nil {
		return fmt.Errorf("%s runs already", id)
	}
	if err := os.MkdirAll(filepath.Join(p.cfg.Dir, id), 0o755); err != nil {
		return err
	}
	via, err := json.Marshal(p.via(id))
	if err != nil {
		return err
	}
	args := []string{
		"server", "--id", id, "--data-dir", p.dir(id), "--raft-addr", p.raft[id], "--api-addr", p.api[id], "--http-addr", p.http[id],
		"--initial-cluster", strings.Join(p.initial, ","), "--log-store", string(p.cfg.LogStore),
		"--snapshot-threshold", fmt.Sprint(p.cfg.SnapshotThreshold), "--snapshot-interval", p.cfg.SnapshotInterval.String(),
		"--heartbeat-timeout", p.cfg.Heartbeat.String(),
	}
	x := &process{cmd: p.cfg.Command(args...), ended: make(chan struct{})}
	x.cmd.Env = append(os.Environ(), nodeEnv+"="+string(via))
	log, err := os.OpenFile(p.logFile(id), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	x.cmd.Stderr = log
	if x.in, err = x.cmd.StdinPipe(); err != nil {
		return err
	}
	out, err := x.cmd.StdoutPipe()
	if err != nil {
		return err
	}
	x.out = bufio.NewReader(out)
	if err := x.cmd.Start(); err != nil {
		return errors.Join(err, log.Close())
	}
	_ = log.Close() // the process has its own
	go func() {
		st, err := x.cmd.Process.Wait()
		if err == nil && !st.Success() {
			err = errors.New(st.String())
		}
		x.err = err
		close(x.ended)
	}()
	p.procs[id] = x
	return nil
}

func (p *proc) logFile(id string) string { return filepath.Join(p.cfg.Dir, id, "log") }

func (p *proc) get(id string) (*process, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if x := p.procs[id]; x != nil {
		return x, nil
	}
	return nil, fmt.Errorf("%s does not run", id)
}

// end waits for a process that was told to end, and forgets it.
func (p *proc) end(id string, x *process, within time.Duration) error {
	select {
	case <-x.ended:
	case <-time.After(within):
		return fmt.Errorf("%s does not end within %s", id, within)
	}
	_ = x.in.Close()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.procs, id)
	return nil
}

func (p *proc) stop(_ context.Context, id string) error {
	x, err := p.get(id)
	if err != nil {
		return err
	}
	if err := x.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		return fmt.Errorf("%s ended by itself: %w", id, err)
	}
	if err := p.end(id, x, 30*time.Second); err != nil {
		return err
	}
	return x.err
}

func (p *proc) kill(id string) error {
	x, err := p.get(id)
	if err != nil {
		return err
	}
	select {
	case <-x.ended:
		if x.err != nil {
			p.say("%s ended by itself: %v", id, x.err)
		}
	default:
	}
	_ = x.cmd.Process.Kill()
	return p.end(id, x, 10*time.Second)
}

func (p *proc) signal(id string, sig syscall.Signal) error {
	x, err := p.get(id)
	if err != nil {
		return err
	}
	return x.cmd.Process.Signal(sig)
}

func (p *proc) pause(id string) error  { return p.signal(id, syscall.SIGSTOP) }
func (p *proc) resume(id string) error { return p.signal(id, syscall.SIGCONT) }

func (p *proc) link(from, to string, cut bool, delay time.Duration) {
	if g := p.gates[[2]string{from, to}]; g != nil {
		g.set(cut, delay)
	}
}

func (p *proc) reset(a, b string) {
	for _, k := range [][2]string{{a, b}, {b, a}} {
		if x := p.proxies[k]; x != nil {
			x.reset()
		}
	}
}

// ask sends one order and waits for the answer.
func (p *proc) ask(ctx context.Context, id, order string) (string, error) {
	x, err := p.get(id)
	if err != nil {
		return "", err
	}
	type reply struct {
		line string
		err  error
	}
	ch := make(chan reply, 1)
	go func() {
		x.talk.Lock()
		defer x.talk.Unlock()
		if _, err := fmt.Fprintln(x.in, order); err != nil {
			ch <- reply{"", err}
			return
		}
		line, err := x.out.ReadString('\n')
		ch <- reply{strings.TrimSpace(line), err}
	}()
	select {
	case r := <-ch:
		if msg, bad := strings.CutPrefix(r.line, "error "); bad {
			return "", fmt.Errorf("%s: %s", id, msg)
		}
		return r.line, r.err
	case <-ctx.Done():
		return "", fmt.Errorf("%s does not answer: %w", id, ctx.Err())
	}
}

func (p *proc) order(id, format string, args ...any) error {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	_, err := p.ask(ctx, id, fmt.Sprintf(format, args...))
	return err
}

func (p *proc) disk(id string, mode DiskMode) error     { return p.order(id, "disk %s", mode) }
func (p *proc) clock(id string, by time.Duration) error { return p.order(id, "clock %s", by) }

func (p *proc) status(ctx context.Context, id string) (Status, error) {
	line, err := p.ask(ctx, id, "status")
	if err != nil {
		return Status{}, err
	}
	var st Status
	if err := json.Unmarshal([]byte(line), &st); err != nil {
		return Status{}, fmt.Errorf("status of %s, %q: %w", id, line, err)
	}
	return st, nil
}

func (p *proc) say(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.said = append(p.said, fmt.Sprintf(format, args...))
}

// bad are words that no log of a node may hold.
var bad = []string{"panic:", "DATA RACE", "fatal error:", "CORRUPT_LOG", "DIVERGED", "goroutine 1 ["}

func (p *proc) complaints() []string {
	p.mu.Lock()
	out := append([]string{}, p.said...)
	p.mu.Unlock()
	for _, id := range p.hosts {
		f, err := os.Open(p.logFile(id))
		if err != nil {
			continue
		}
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			for _, w := range bad {
				if strings.Contains(lines.Text(), w) {
					out = append(out, id+": "+lines.Text())
				}
			}
		}
		_ = f.Close()
	}
	return out
}

func (p *proc) close() error {
	var errs []error
	for _, g := range p.gates {
		g.set(false, 0)
	}
	for _, id := range p.hosts {
		if x, err := p.get(id); err == nil {
			_ = x.cmd.Process.Signal(syscall.SIGCONT)
			errs = append(errs, p.kill(id))
		}
	}
	for _, x := range p.proxies {
		errs = append(errs, x.close())
	}
	for id, img := range p.images {
		kept := filepath.Join(p.cfg.Dir, id, "kept")
		errs = append(errs, os.Mkdir(kept, 0o755), img.keep(kept), img.close(), os.Remove(img.file), os.Remove(img.dir), os.Rename(kept, img.dir))
	}
	clear(p.images)
	return errors.Join(errs...)
}
