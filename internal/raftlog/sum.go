package raftlog

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"

	"github.com/hashicorp/raft"
)

// sumLen is what every stored entry is longer than raft's. Frozen: log format 1.
const sumLen = 4

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

var errSum = errors.New("checksum does not match")

// entrySum covers everything of an entry that raft acts upon, so that a
// flipped bit in a term or a configuration entry is found too, which a
// checksum inside the data cannot do. AppendedAt is only for operators.
func entrySum(l *raft.Log, data []byte) uint32 {
	var head [25]byte
	binary.BigEndian.PutUint64(head[0:], l.Index)
	binary.BigEndian.PutUint64(head[8:], l.Term)
	head[16] = byte(l.Type)
	binary.BigEndian.PutUint64(head[17:], uint64(len(data)))
	c := crc32.Update(0, castagnoli, head[:])
	c = crc32.Update(c, castagnoli, data)
	return crc32.Update(c, castagnoli, l.Extensions)
}

// sealEntry returns a copy of l whose data ends with the checksum; l and its
// data stay untouched, raft still uses both.
func sealEntry(l *raft.Log) (*raft.Log, uint32) {
	sum := entrySum(l, l.Data)
	out := *l
	out.Data = make([]byte, len(l.Data)+sumLen)
	copy(out.Data, l.Data)
	binary.BigEndian.PutUint32(out.Data[len(l.Data):], sum)
	return &out, sum
}

// openEntry checks an entry read at index and cuts the checksum off.
func openEntry(index uint64, l *raft.Log) (uint32, error) {
	if l.Index != index {
		return 0, fmt.Errorf("holds index %d", l.Index)
	}
	n := len(l.Data) - sumLen
	if n < 0 {
		return 0, errors.New("shorter than its checksum")
	}
	data := l.Data[:n:n]
	sum := binary.BigEndian.Uint32(l.Data[n:])
	if entrySum(l, data) != sum {
		return 0, errSum
	}
	if n == 0 {
		data = nil
	}
	l.Data = data
	return sum, nil
}
