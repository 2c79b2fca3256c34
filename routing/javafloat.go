package routing

import (
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// A partition name spells FLOAT and DOUBLE columns the way the JVM prints them, so the printing of JDK 17 is part of
// the format. It is not the shortest form that reads back as the same number:
//
//   - whole numbers below 2^63 are printed exactly, except that digits beyond the precision are rounded off;
//   - digits are generated from the left until the rest is within half a unit of the number's last binary place; that
//     interval excludes its ends where 64-bit arithmetic is enough ("1.9999999999999998E23"), includes the upper end
//     where it is not, and is halved for powers of two;
//   - 32-bit and 64-bit arithmetic is used as far as it goes, and it overflows for a few numbers;
//   - with an exponent at least two digits are computed ("4.9E-324", although 5E-324 would do), a leading zero among
//     them where the estimate of the exponent was one too high and rounding up would reach it ("1.0E-323").
//
// Newer JDKs print the shortest form; Fluss clients on them name a few partitions differently.

// appendJavaFloat appends Float.toString(v).
func appendJavaFloat(dst []byte, v float32) []byte {
	b := math.Float32bits(v)
	return appendJavaBinary(dst, b>>31 != 0, int(b>>23&0xff), uint64(b&(1<<23-1)), 23, 127)
}

// appendJavaDouble appends Double.toString(v).
func appendJavaDouble(dst []byte, v float64) []byte {
	b := math.Float64bits(v)
	return appendJavaBinary(dst, b>>63 != 0, int(b>>52&0x7ff), b&(1<<52-1), 52, 1023)
}

// appendJavaBinary appends a number given by the fields of its IEEE form with mantissaBits explicit mantissa bits.
func appendJavaBinary(dst []byte, negative bool, exponent int, mantissa uint64, mantissaBits, bias int) []byte {
	if exponent == 2*bias+1 && mantissa != 0 {
		return append(dst, "NaN"...)
	}
	if negative {
		dst = append(dst, '-')
	}
	if exponent == 2*bias+1 {
		return append(dst, "Infinity"...)
	}
	if exponent == 0 && mantissa == 0 {
		return append(dst, "0.0"...)
	}
	if exponent == 0 {
		exponent = 1 // subnormal: no hidden bit
	} else {
		mantissa |= 1 << mantissaBits
	}
	digits, point := javaDigits(mantissa, exponent-bias-mantissaBits)
	return appendJavaDigits(dst, digits, point)
}

// javaDigits returns the decimal digits of mantissa * 2^exp, mantissa > 0, and the position of the decimal point: the
// value is 0.d1d2d3... * 10^point.
func javaDigits(mantissa uint64, exp int) (digits []byte, point int) {
	precision := bits.Len64(mantissa)
	top := exp + precision - 1 // value is in 2^top .. 2^(top+1)
	zeros := bits.TrailingZeros64(mantissa)
	if whole := exp+zeros >= 0; whole && top <= 62 {
		return javaWholeDigits(mantissa, exp, top-precision-1)
	}
	return javaFreeDigits(mantissa, exp)
}

// javaWholeDigits handles whole numbers below 2^63. spare is the number of binary digits below the last significant
// one, less two; as many decimal digits as surely fit into them are rounded away.
func javaWholeDigits(mantissa uint64, exp, spare int) (digits []byte, point int) {
	v := mantissa
	if exp >= 0 {
		v <<= exp
	} else {
		v >>= -exp
	}
	dropped := 0
	if spare > 1 {
		for pow10[dropped+1] <= 1<<spare {
			dropped++
		}
		rest := v % pow10[dropped]
		v /= pow10[dropped]
		if dropped > 0 && rest >= pow10[dropped]/2 {
			v++
		}
	}
	digits = strconv.AppendUint(nil, v, 10)
	point = len(digits) + dropped
	for len(digits) > 1 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	return digits, point
}

// fraction is the number at hand as rest/scale * 10^point, and half as the distance within which a decimal stands for
// it. The magnitudes are those of the JVM, because its machine arithmetic overflows on some of them.
type fraction struct {
	rest, scale, half *big.Int
	point             int
	width             int // bits of the JVM's arithmetic: 32, 64 or 0 for unbounded
}

// newFraction prepares mantissa * 2^exp, with the point from an estimate that may be one too high.
func newFraction(mantissa uint64, exp int) fraction {
	precision := bits.Len64(mantissa)
	zeros := bits.TrailingZeros64(mantissa)
	odd := mantissa >> zeros
	oddBits := precision - zeros
	top := exp + precision - 1
	point := estimateExponent(mantissa, top)

	// rest = odd * 5^fives * 2^rest2, scale = 5^scale5 * 2^scale2, half = 5^fives * 2^half2
	tiny := max(0, oddBits-top-1)
	fives, scale5 := max(0, -point), max(0, point)
	rest2, scale2 := fives+tiny+top, scale5+tiny
	half2 := rest2 - precision
	rest2 -= oddBits - 1
	shared := min(rest2, scale2)
	rest2, scale2, half2 = rest2-shared, scale2-shared, half2-shared
	if oddBits == 1 {
		half2-- // below a power of two the neighbour is half as far away
	}
	if half2 < 0 {
		rest2, scale2, half2 = rest2-half2, scale2-half2, 0
	}
	f := fraction{
		rest:  scaled(odd, fives, rest2),
		scale: scaled(1, scale5, scale2),
		half:  scaled(1, fives, half2),
		point: point,
	}
	switch n := max(oddBits+rest2+fiveBits(fives), scale2+1+fiveBits(scale5+1)); {
	case n < 32:
		f.width = 32
	case n < 64:
		f.width = 64
	}
	return f
}

// scaled returns n * 5^fives * 2^twos.
func scaled(n uint64, fives, twos int) *big.Int {
	v := new(big.Int).Exp(big.NewInt(5), big.NewInt(int64(fives)), nil)
	v.Mul(v, new(big.Int).SetUint64(n))
	return v.Lsh(v, uint(twos))
}

// fiveBits is the number of bits of 5^n; beyond 5^26 the JVM rounds it up to three a power.
func fiveBits(n int) int {
	switch {
	case n == 0:
		return 0
	case n > 26:
		return 3 * n
	default:
		return scaled(1, n, 0).BitLen()
	}
}

// estimateExponent estimates the decimal exponent of mantissa from the tangent of the logarithm at 1.5, which is never
// too low and at most one too high. top is the binary exponent. The conversions keep the compiler from fusing the
// operations, which would round differently on some processors.
func estimateExponent(mantissa uint64, top int) int {
	significand := math.Ldexp(float64(mantissa), 1-bits.Len64(mantissa)) // 1 <= significand < 2
	slope := float64((significand - 1.5) * 0.289529654)
	whole := float64(float64(top) * 0.301029995663981)
	return int(math.Floor(float64(slope+0.176091259) + whole))
}

// next returns the next digit and whether the number rounded down (low) or up (high) at this digit stands for it.
func (f *fraction) next() (digit byte, low, high bool) {
	ten := big.NewInt(10)
	var q, sum, tens big.Int
	q.QuoRem(f.rest, f.scale, f.rest)
	f.rest.Mul(f.rest, ten)
	f.half.Mul(f.half, ten)
	f.wrap(f.half)
	sum.Add(f.rest, f.half)
	f.wrap(&sum)
	tens.Mul(f.scale, ten)
	digit = '0' + byte(q.Uint64())
	if f.half.Sign() <= 0 { // overflown
		return digit, true, true
	}
	// The upper end of the interval belongs to it in unbounded arithmetic only.
	c := sum.Cmp(&tens)
	return digit, f.rest.Cmp(f.half) < 0, c > 0 || c == 0 && f.width == 0
}

// wrap reduces v to a two's complement number of the arithmetic's width.
func (f *fraction) wrap(v *big.Int) {
	if f.width == 0 || v.BitLen() < f.width {
		return
	}
	low := new(big.Int).And(v, new(big.Int).SetUint64(math.MaxUint64)).Uint64()
	if f.width == 32 {
		v.SetInt64(int64(int32(uint32(low))))
		return
	}
	v.SetInt64(int64(low))
}

// javaFreeDigits generates digits until the number is told apart from its neighbours.
func javaFreeDigits(mantissa uint64, exp int) (digits []byte, point int) {
	f := newFraction(mantissa, exp)
	digit, low, high := f.next()
	if digit == '0' && !high {
		f.point-- // the estimate was too high
	} else {
		digits = append(digits, digit)
	}
	if f.point < -3 || f.point >= 8 {
		low, high = false, false // with an exponent there is at least one digit more
	}
	for !low && !high {
		digit, low, high = f.next()
		digits = append(digits, digit)
	}
	if high && (!low || f.roundsUp(digits)) {
		return increment(digits, f.point+1)
	}
	return digits, f.point + 1
}

// roundsUp decides between two candidates by distance, and by the even digit at equal distance.
func (f *fraction) roundsUp(digits []byte) bool {
	var half big.Int
	half.Mul(f.scale, big.NewInt(5)) // rest is ten times the remainder
	switch f.rest.Cmp(&half) {
	case 1:
		return true
	case 0:
		return digits[len(digits)-1]&1 != 0
	default:
		return false
	}
}

// increment adds one unit in the last place.
func increment(digits []byte, point int) ([]byte, int) {
	for i := len(digits) - 1; i >= 0; i-- {
		if digits[i] != '9' {
			digits[i]++
			return digits, point
		}
		digits[i] = '0'
	}
	digits[0] = '1'
	return digits, point + 1
}

// appendJavaDigits lays digits out: plain from 0.001 up to 10^7, else with an exponent; always one digit on either
// side of the point.
func appendJavaDigits(dst, digits []byte, point int) []byte {
	switch {
	case point > 0 && point < 8:
		whole := min(len(digits), point)
		dst = append(dst, digits[:whole]...)
		for i := whole; i < point; i++ {
			dst = append(dst, '0')
		}
		dst = append(dst, '.')
		return appendFraction(dst, digits[whole:])
	case point <= 0 && point > -3:
		dst = append(dst, '0', '.')
		for i := point; i < 0; i++ {
			dst = append(dst, '0')
		}
		return append(dst, digits...)
	default:
		dst = append(dst, digits[0], '.')
		dst = appendFraction(dst, digits[1:])
		dst = append(dst, 'E')
		return strconv.AppendInt(dst, int64(point-1), 10)
	}
}

func appendFraction(dst, digits []byte) []byte {
	if len(digits) == 0 {
		return append(dst, '0')
	}
	return append(dst, digits...)
}
