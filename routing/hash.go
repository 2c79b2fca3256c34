package routing

import (
	"encoding/binary"
	"math"
	"math/bits"
)

// The constants of 32-bit Murmur3. Frozen: stored rows were placed with them.
const (
	murmurC1   = 0xcc9e2d51
	murmurC2   = 0x1b873593
	murmurAdd  = 0xe6546b64
	murmurSeed = 42
)

func murmurK(k uint32) uint32 { return bits.RotateLeft32(k*murmurC1, 15) * murmurC2 }

func murmurH(h, k uint32) uint32 { return bits.RotateLeft32(h^k, 13)*5 + murmurAdd }

func murmurFinal(h uint32) uint32 {
	h ^= h >> 16
	h *= 0x85ebca6b
	h ^= h >> 13
	h *= 0xc2b2ae35
	h ^= h >> 16
	return h
}

// murmur42 is Murmur3 with seed 42 except for the tail: each of the 0..3 bytes after the last full word is sign
// extended and mixed in as a word of its own. Fluss and Paimon share it.
func murmur42(b []byte) int32 {
	h := uint32(murmurSeed)
	n := len(b)
	for len(b) >= 4 {
		h = murmurH(h, murmurK(binary.LittleEndian.Uint32(b)))
		b = b[4:]
	}
	for _, c := range b {
		h = murmurH(h, murmurK(uint32(int32(int8(c)))))
	}
	return int32(murmurFinal(h ^ uint32(n)))
}

// murmurStandard is the usual Murmur3 x86_32 with seed 0, which Iceberg specifies.
func murmurStandard(b []byte) int32 {
	var h uint32
	n := len(b)
	for len(b) >= 4 {
		h = murmurH(h, murmurK(binary.LittleEndian.Uint32(b)))
		b = b[4:]
	}
	var k uint32
	for i := len(b) - 1; i >= 0; i-- {
		k = k<<8 | uint32(b[i])
	}
	h ^= murmurK(k) // K(0) is 0, so an empty tail changes nothing
	return int32(murmurFinal(h ^ uint32(n)))
}

// mixInt hashes a hash once more and returns a number >= 0: Fluss spreads murmur42 with it before taking the
// remainder. The smallest int32 maps to 0.
func mixInt(code int32) int32 {
	c := murmurK(uint32(code))
	c = bits.RotateLeft32(c, 13)*5 + murmurAdd
	switch r := int32(murmurFinal(c ^ 4)); {
	case r >= 0:
		return r
	case r != math.MinInt32:
		return -r
	default:
		return 0
	}
}
