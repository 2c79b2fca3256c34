package routing

import "strconv"

// civil is a date of the proleptic Gregorian calendar, with a year 0, as java.time counts.
type civil struct {
	year       int64
	month, day int
}

const daysPer400Years = 146_097

// civilFromDays converts days since 1970-01-01. Years are counted from March within eras of 400 years, so that the
// leap day is the last of its year and month lengths follow one linear formula.
func civilFromDays(days int64) civil {
	days += 719_468 // days from 0000-03-01 to 1970-01-01
	era := floorDiv(days, daysPer400Years)
	doe := days - era*daysPer400Years                        // day of era, 0..146096
	yoe := (doe - doe/1460 + doe/36_524 - doe/146_096) / 365 // year of era, 0..399
	doy := doe - (365*yoe + yoe/4 - yoe/100)                 // day of the March year, 0..365
	mp := (5*doy + 2) / 153                                  // month from March, 0..11
	c := civil{year: yoe + era*400, day: int(doy-(153*mp+2)/5) + 1}
	if mp < 10 {
		c.month = int(mp) + 3
	} else {
		c.month = int(mp) - 9
		c.year++
	}
	return c
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// clock is a point within a day.
type clock struct {
	hour, minute, second int
	nano                 int64 // 0..999999999
}

// splitMillis splits milliseconds since the epoch, and the nanoseconds above them, into day and time of day.
func splitMillis(millis, nanos int64) (civil, clock) {
	day := floorDiv(millis, millisPerDay)
	rest := millis - day*millisPerDay
	return civilFromDays(day), clockFromMillis(rest, nanos)
}

func clockFromMillis(millisOfDay, nanos int64) clock {
	seconds := int(millisOfDay / 1000)
	return clock{
		hour: seconds / 3600, minute: seconds / 60 % 60, second: seconds % 60,
		nano: millisOfDay%1000*nanosPerMilli + nanos,
	}
}

// appendPadded appends n with at least width digits, of which a minus sign counts as one, like printf's %0*d.
func appendPadded(dst []byte, n int64, width int) []byte {
	if n < 0 {
		dst = append(dst, '-')
		n = -n
		width--
	}
	for limit := int64(10); width > 1; width-- {
		if n < limit {
			for ; width > 1; width-- {
				dst = append(dst, '0')
			}
			break
		}
		limit *= 10
	}
	return strconv.AppendInt(dst, n, 10)
}

// appendISOYear appends a year as ISO-8601 and java.time do: four digits, more only with a sign.
func appendISOYear(dst []byte, year int64) []byte {
	switch {
	case year > 9999:
		dst = append(dst, '+')
	case year < 0:
		dst = append(dst, '-')
		year = -year
	}
	return appendPadded(dst, year, 4)
}

// appendISODateTime appends "2023-10-25T12:01:13.182". Whole minutes drop the seconds unless seconds is set; a
// fraction has 3, 6 or 9 digits.
func appendISODateTime(dst []byte, millis, nanos int64, seconds bool) []byte {
	d, c := splitMillis(millis, nanos)
	dst = appendISOYear(dst, d.year)
	dst = append(dst, '-')
	dst = appendPadded(dst, int64(d.month), 2)
	dst = append(dst, '-')
	dst = appendPadded(dst, int64(d.day), 2)
	dst = append(dst, 'T')
	dst = appendPadded(dst, int64(c.hour), 2)
	dst = append(dst, ':')
	dst = appendPadded(dst, int64(c.minute), 2)
	if !seconds && c.second == 0 && c.nano == 0 {
		return dst
	}
	dst = append(dst, ':')
	dst = appendPadded(dst, int64(c.second), 2)
	switch {
	case c.nano == 0:
	case c.nano%1_000_000 == 0:
		dst = append(dst, '.')
		dst = appendPadded(dst, c.nano/1_000_000, 3)
	case c.nano%1000 == 0:
		dst = append(dst, '.')
		dst = appendPadded(dst, c.nano/1000, 6)
	default:
		dst = append(dst, '.')
		dst = appendPadded(dst, c.nano, 9)
	}
	return dst
}
