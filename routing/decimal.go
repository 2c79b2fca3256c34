package routing

import (
	"encoding/binary"
	"math/bits"
	"strconv"
)

// compactDecimalPrecision is the largest precision whose unscaled values all fit an int64; above it every format
// changes to a byte form.
const compactDecimalPrecision = 18

// pow10 holds the powers of ten that fit a uint64.
var pow10 = [20]uint64{
	1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19,
}

// int128 is a two's complement number: hi * 2^64 + lo.
type int128 struct {
	hi int64
	lo uint64
}

func beUint32(b []byte) uint32 { return binary.BigEndian.Uint32(b) }

func beUint64(b []byte) uint64 { return binary.BigEndian.Uint64(b) }

func (d int128) neg() int128 {
	lo, borrow := bits.Sub64(0, d.lo, 0)
	hi, _ := bits.Sub64(0, uint64(d.hi), borrow)
	return int128{hi: int64(hi), lo: lo}
}

// abs returns the magnitude; that of the smallest number is 2^127 and needs the unsigned high half.
func (d int128) abs() (hi, lo uint64) {
	if d.hi < 0 {
		d = d.neg()
	}
	return uint64(d.hi), d.lo
}

// fits reports whether d has at most precision decimal digits, 1..38.
func (d int128) fits(precision int) bool {
	hi, lo := d.abs()
	if precision < len(pow10) {
		return precision >= 0 && hi == 0 && lo < pow10[precision]
	}
	if precision > maxDecimalPrecision {
		return false
	}
	limitHi, limitLo := bits.Mul64(pow10[19], pow10[precision-19])
	return hi < limitHi || hi == limitHi && lo < limitLo
}

// minimal writes d as big-endian two's complement of the fewest bytes that keep the sign, as Java's
// BigInteger.toByteArray does, at the end of buf and returns them.
func (d int128) minimal(buf *[16]byte) []byte {
	binary.BigEndian.PutUint64(buf[:8], uint64(d.hi))
	binary.BigEndian.PutUint64(buf[8:], d.lo)
	i := 0
	for i < len(buf)-1 && (buf[i] == 0 && buf[i+1] < 0x80 || buf[i] == 0xff && buf[i+1] >= 0x80) {
		i++
	}
	return buf[i:]
}

// appendPlain appends d * 10^-scale without an exponent and with exactly scale digits after the point.
func (d int128) appendPlain(dst []byte, scale int) []byte {
	if d.hi < 0 {
		dst = append(dst, '-')
	}
	var digits [40]byte
	text := d.appendDigits(digits[:0])
	if scale <= 0 {
		return append(dst, text...)
	}
	whole := len(text) - scale
	if whole > 0 {
		dst = append(dst, text[:whole]...)
		dst = append(dst, '.')
		return append(dst, text[whole:]...)
	}
	dst = append(dst, '0', '.')
	for ; whole < 0; whole++ {
		dst = append(dst, '0')
	}
	return append(dst, text...)
}

// appendDigits appends the decimal digits of the magnitude.
func (d int128) appendDigits(dst []byte) []byte {
	hi, lo := d.abs()
	if hi == 0 {
		return strconv.AppendUint(dst, lo, 10)
	}
	q, r := bits.Div64(hi, lo, pow10[19]) // hi <= 2^63 < 10^19, so the quotient fits
	dst = strconv.AppendUint(dst, q, 10)
	for i := 18; i > 0 && r < pow10[i]; i-- {
		dst = append(dst, '0')
	}
	return strconv.AppendUint(dst, r, 10)
}
