package raftnet

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"unicode/utf8"
)

// ProtocolVersion is the version of everything that follows the magic. Nodes
// speak only to nodes of the same version.
const ProtocolVersion = 1

// handshakeHead is the fixed part of a handshake frame: magic, version, kind or
// code, body length. Frozen for all protocol versions, so that any two versions
// can tell each other apart.
const handshakeHead = 8

// maxHandshakeBody bounds the variable part; no frame a node sends comes near.
const maxHandshakeBody = 4096

// The magic differs by direction, so that a node that is connected to itself or
// to an echo service notices.
var (
	helloMagic   = [4]byte{'S', 'T', 'V', 'h'}
	welcomeMagic = [4]byte{'S', 'T', 'V', 'w'}
)

// Kind is what a connection is for.
type Kind uint8

// Frozen: protocol version 1.
const (
	KindRaft     Kind = 1 // messages of raft, see RaftLayer
	KindPeer     Kind = 2 // requests between nodes, see Peers
	KindIdentity Kind = 3 // one identity question, see AskIdentity
)

// String returns the kind's name.
func (k Kind) String() string {
	switch k {
	case KindRaft:
		return "raft"
	case KindPeer:
		return "peer"
	case KindIdentity:
		return "identity"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Code is the outcome of a handshake.
type Code uint8

// Frozen: protocol version 1.
const (
	Accepted         Code = 0
	RefusedMalformed Code = 1 // not a handshake
	RefusedVersion   Code = 2 // another protocol version
	RefusedKind      Code = 3 // a kind this node does not know
	RefusedCluster   Code = 4 // another cluster id
	RefusedNode      Code = 5 // the caller wanted another node, or claims this node's id
	RefusedDirectory Code = 6 // CheckPeer refused the directory id
	RefusedBuild     Code = 7 // the build level is below what the cluster uses
	RefusedNotReady  Code = 8 // nothing here takes this kind of connection now
)

// String returns the code's name.
func (c Code) String() string {
	names := [...]string{
		"accepted", "malformed", "protocol version", "kind", "cluster id", "node id", "directory id", "build level", "not ready",
	}
	if int(c) < len(names) {
		return names[c]
	}
	return fmt.Sprintf("code %d", uint8(c))
}

// Hello is the first thing the dialling side says. Every string is at most 255
// bytes. Cluster and Directory are empty only in an identity question.
type Hello struct {
	Kind      Kind
	Cluster   string
	From      string // node id of the dialling side
	To        string // node id it wants to reach; empty in an identity question: any
	Directory string // directory id of the dialling side
	Build     uint32 // build level of the dialling side
}

// Welcome is the answer to a Hello.
type Welcome struct {
	Code      Code
	Reason    string // at most 1,024 bytes; empty if accepted
	Cluster   string
	Node      string
	Directory string
	Build     uint32
}

// encodeHello returns the frame of h. It fails on a string that is too long.
func encodeHello(h Hello) ([]byte, error) {
	b := startHandshake(helloMagic, byte(h.Kind))
	b, err := appendStrings(b, h.Cluster, h.From, h.To, h.Directory)
	if err != nil {
		return nil, err
	}
	return sealHandshake(binary.BigEndian.AppendUint32(b, h.Build)), nil
}

// encodeWelcome returns the frame of w, with a reason that is too long cut.
func encodeWelcome(w Welcome) ([]byte, error) {
	b := startHandshake(welcomeMagic, byte(w.Code))
	b, err := appendStrings(b, w.Cluster, w.Node, w.Directory)
	if err != nil {
		return nil, err
	}
	b = binary.BigEndian.AppendUint32(b, w.Build)
	r := w.Reason
	if len(r) > maxReason {
		r = r[:maxReason]
	}
	for !utf8.ValidString(r) {
		r = r[:len(r)-1]
	}
	b = binary.BigEndian.AppendUint16(b, uint16(len(r)))
	return sealHandshake(append(b, r...)), nil
}

func startHandshake(magic [4]byte, tag byte) []byte {
	b := make([]byte, handshakeHead, 128)
	copy(b, magic[:])
	b[4], b[5] = ProtocolVersion, tag
	return b
}

func sealHandshake(b []byte) []byte {
	binary.BigEndian.PutUint16(b[6:], uint16(len(b)-handshakeHead))
	return binary.BigEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

// readHandshake reads one frame and returns its tag (kind or code) and body. It
// reads not a byte further. A frame of another version is an error that carries
// that version, whatever its body.
func readHandshake(r io.Reader, magic [4]byte) (tag byte, body []byte, err error) {
	var head [handshakeHead]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return 0, nil, fmt.Errorf("read handshake: %w", err)
	}
	if [4]byte(head[:4]) != magic {
		return 0, nil, &RefusedError{Code: RefusedMalformed, Reason: fmt.Sprintf("unknown magic %x", head[:4])}
	}
	if head[4] != ProtocolVersion {
		reason := fmt.Sprintf("protocol version %d, this node speaks %d", head[4], ProtocolVersion)
		return 0, nil, &RefusedError{Code: RefusedVersion, Reason: reason}
	}
	k := int(binary.BigEndian.Uint16(head[6:]))
	if k > maxHandshakeBody {
		return 0, nil, &RefusedError{Code: RefusedMalformed, Reason: fmt.Sprintf("body of %d bytes, limit %d", k, maxHandshakeBody)}
	}
	rest := make([]byte, k+crc32.Size)
	if _, err := io.ReadFull(r, rest); err != nil {
		return 0, nil, fmt.Errorf("read handshake body: %w", err)
	}
	sum := crc32.Update(crc32.Checksum(head[:], castagnoli), castagnoli, rest[:k])
	if sum != binary.BigEndian.Uint32(rest[k:]) {
		return 0, nil, &RefusedError{Code: RefusedMalformed, Reason: "checksum does not match"}
	}
	return head[5], rest[:k], nil
}

// readHello reads the dialling side's frame.
func readHello(r io.Reader) (Hello, error) {
	tag, body, err := readHandshake(r, helloMagic)
	if err != nil {
		return Hello{}, err
	}
	c := cursor{b: body}
	h := Hello{Kind: Kind(tag), Cluster: c.string(), From: c.string(), To: c.string(), Directory: c.string(), Build: c.u32()}
	if err := c.end(); err != nil {
		return Hello{}, &RefusedError{Code: RefusedMalformed, Reason: err.Error()}
	}
	return h, nil
}

// readWelcome reads the accepting side's frame.
func readWelcome(r io.Reader) (Welcome, error) {
	tag, body, err := readHandshake(r, welcomeMagic)
	if err != nil {
		return Welcome{}, err
	}
	c := cursor{b: body}
	w := Welcome{Code: Code(tag), Cluster: c.string(), Node: c.string(), Directory: c.string(), Build: c.u32()}
	k := int(c.u16())
	if k > maxReason {
		c.bad = true
	}
	w.Reason = c.text(k)
	if err := c.end(); err != nil {
		return Welcome{}, &RefusedError{Code: RefusedMalformed, Reason: err.Error()}
	}
	return w, nil
}
