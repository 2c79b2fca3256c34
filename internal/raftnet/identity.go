package raftnet

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net"
	"time"
)

// maxMembers bounds the members an identity answer may name.
const maxMembers = 1024

// maxAnswer bounds the body of an identity answer: 1,024 members of three full
// strings and what surrounds them.
const maxAnswer = 1 << 20

// answerVersion is the first byte of an identity answer.
const answerVersion = 1

// Question is what a node that asks for identities says about itself. Cluster
// and Directory are empty while its directory has no identity file.
type Question struct {
	From      string
	Cluster   string
	Directory string
	Build     uint32
}

// Answer is what a node knows about itself and its cluster; it decides whether
// a node without identity file may bootstrap, must join, or is refused.
type Answer struct {
	Node      string
	Cluster   string // empty: no identity file
	Directory string // empty: no identity file
	HasLog    bool   // raft's log or a snapshot holds something
	Members   []Member
}

// Member is a node of the latest configuration that the answering node knows.
type Member struct {
	Node      string
	Addr      string
	Directory string // empty: not announced yet
	Voter     bool
}

// encodeAnswer returns length, body and checksum.
func encodeAnswer(a Answer) ([]byte, error) {
	if len(a.Members) > maxMembers {
		return nil, fmt.Errorf("identity answer of %d members, limit %d: %w", len(a.Members), maxMembers, ErrTooLarge)
	}
	b := append(make([]byte, 4, 256), answerVersion)
	b, err := appendStrings(b, a.Node, a.Cluster, a.Directory)
	if err != nil {
		return nil, err
	}
	b = binary.BigEndian.AppendUint16(append(b, flagByte(a.HasLog)), uint16(len(a.Members)))
	for _, m := range a.Members {
		if b, err = appendStrings(b, m.Node, m.Addr, m.Directory); err != nil {
			return nil, err
		}
		b = append(b, flagByte(m.Voter))
	}
	binary.BigEndian.PutUint32(b, uint32(len(b)-4))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli)), nil
}

func flagByte(v bool) byte {
	if v {
		return 1
	}
	return 0
}

// readAnswer reads one identity answer of at most maxAnswer bytes.
func readAnswer(r io.Reader) (Answer, error) {
	var head [4]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return Answer{}, fmt.Errorf("read identity answer: %w", err)
	}
	k := binary.BigEndian.Uint32(head[:])
	if k > maxAnswer {
		return Answer{}, fmt.Errorf("identity answer of %d bytes: %w", k, ErrTooLarge)
	}
	rest := make([]byte, k+crc32.Size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return Answer{}, fmt.Errorf("read identity answer: %w", err)
	}
	sum := crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, rest[:k])
	if sum != binary.BigEndian.Uint32(rest[k:]) {
		return Answer{}, fmt.Errorf("identity answer checksum: %w", ErrMalformed)
	}
	c := cursor{b: rest[:k]}
	if v := c.u8(); v != answerVersion {
		return Answer{}, fmt.Errorf("identity answer version %d: %w", v, ErrMalformed)
	}
	a := Answer{Node: c.string(), Cluster: c.string(), Directory: c.string(), HasLog: c.flag()}
	members := int(c.u16())
	if members > maxMembers {
		return Answer{}, fmt.Errorf("identity answer of %d members: %w", members, ErrTooLarge)
	}
	for range members {
		if c.bad {
			break
		}
		a.Members = append(a.Members, Member{Node: c.string(), Addr: c.string(), Directory: c.string(), Voter: c.flag()})
	}
	if err := c.end(); err != nil {
		return Answer{}, err
	}
	return a, nil
}

// AskIdentity asks the node at an address who it is. It needs no identity on
// either side. An empty to means whoever answers; otherwise a node of another id
// refuses. It ends with ctx, and after five seconds without an answer.
func AskIdentity(ctx context.Context, nw Network, addr, to string, q Question) (Answer, error) {
	if nw == nil {
		nw = TCP{}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, stallAfter, ErrStalled)
	defer cancel()
	c, err := nw.Dial(ctx, addr)
	if err != nil {
		return Answer{}, fmt.Errorf("ask identity of %s: %w", addr, err)
	}
	defer c.Close() //nolint:errcheck // nothing is sent any more
	stop := closeOnEnd(ctx, c)
	defer stop()
	a, err := askOver(c, to, q)
	if err != nil {
		return Answer{}, fmt.Errorf("ask identity of %s: %w", addr, causeOf(ctx, err))
	}
	return a, nil
}

func askOver(c net.Conn, to string, q Question) (Answer, error) {
	h := Hello{Kind: KindIdentity, Cluster: q.Cluster, From: q.From, To: to, Directory: q.Directory, Build: q.Build}
	w, err := greet(c, h)
	if err != nil {
		return Answer{}, err
	}
	a, err := readAnswer(c)
	if err != nil {
		return Answer{}, err
	}
	if a.Node != w.Node {
		return Answer{}, fmt.Errorf("identity answer of %q, handshake of %q: %w", a.Node, w.Node, ErrMalformed)
	}
	return a, nil
}

// greet sends a hello and reads the answer to it.
func greet(c net.Conn, h Hello) (Welcome, error) {
	b, err := encodeHello(h)
	if err != nil {
		return Welcome{}, err
	}
	if _, err := c.Write(b); err != nil {
		return Welcome{}, fmt.Errorf("write handshake: %w", err)
	}
	w, err := readWelcome(c)
	if err != nil {
		return Welcome{}, err
	}
	if w.Code != Accepted {
		return Welcome{}, &RefusedError{Code: w.Code, Reason: w.Reason, Node: w.Node}
	}
	return w, nil
}

// closeOnEnd makes a connection's reads and writes fail once ctx ends. The
// returned function undoes it.
func closeOnEnd(ctx context.Context, c net.Conn) (stop func() bool) {
	return context.AfterFunc(ctx, func() { _ = c.SetDeadline(time.Unix(1, 0)) })
}

// causeOf puts the reason why ctx ended in front of the error it led to.
func causeOf(ctx context.Context, err error) error {
	if ctx.Err() == nil || errors.Is(err, ErrRefused) {
		return err
	}
	return fmt.Errorf("%w: %w", context.Cause(ctx), err)
}
