package routing

import (
	"math"
	"unicode/utf8"
)

// JavaStringHash returns what Java's String.hashCode returns for s: h = 31*h + unit over the UTF-16 code units, with
// 32-bit wrap-around. Bytes that are not UTF-8 count as U+FFFD.
func JavaStringHash(s string) int32 {
	var h uint32
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			return javaHashRunes(h, s[i:])
		}
		h = 31*h + uint32(s[i])
	}
	return int32(h)
}

func javaHashRunes(h uint32, s string) int32 {
	for _, r := range s {
		if r >= 0x10000 { // a surrogate pair
			r -= 0x10000
			h = 31*h + 0xd800 + uint32(r>>10)
			r = 0xdc00 + r&0x3ff
		}
		h = 31*h + uint32(r)
	}
	return int32(h)
}

// javaHashASCII is JavaStringHash for bytes known to be ASCII.
func javaHashASCII(b []byte) int32 {
	var h uint32
	for _, c := range b {
		h = 31*h + uint32(c)
	}
	return int32(h)
}

// magnitude is the absolute value with a result for every input: the smallest int32 has none of its own and maps to
// 0, as masking off the sign bit does. Upstream takes Math.abs, which stays negative there.
func magnitude(h int32) int32 {
	if h == math.MinInt32 {
		return 0
	}
	if h < 0 {
		return -h
	}
	return h
}
