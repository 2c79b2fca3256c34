package autopartition

import (
	"fmt"
	"strings"
	"time"

	"github.com/stavedb/stave/catalog"
)

// shortZones are the old three-letter ids that Java still takes.
var shortZones = map[string]string{
	"ACT": "Australia/Darwin", "AET": "Australia/Sydney", "AGT": "America/Argentina/Buenos_Aires", "ART": "Africa/Cairo",
	"AST": "America/Anchorage", "BET": "America/Sao_Paulo", "BST": "Asia/Dhaka", "CAT": "Africa/Harare", "CNT": "America/St_Johns",
	"CST": "America/Chicago", "CTT": "Asia/Shanghai", "EAT": "Africa/Addis_Ababa", "ECT": "Europe/Paris",
	"IET": "America/Indiana/Indianapolis", "IST": "Asia/Kolkata", "JST": "Asia/Tokyo", "MIT": "Pacific/Apia", "NET": "Asia/Yerevan",
	"NST": "Pacific/Auckland", "PLT": "Asia/Karachi", "PNT": "America/Phoenix", "PRT": "America/Puerto_Rico",
	"PST": "America/Los_Angeles", "SST": "Pacific/Guadalcanal", "VST": "Asia/Ho_Chi_Minh",
}

// fixedZones are three-letter ids without daylight saving, in seconds east.
var fixedZones = map[string]int{"EST": -5 * 3600, "MST": -7 * 3600, "HST": -10 * 3600}

// CheckZone refuses a time zone that is not known: neither a region id such as
// "Europe/Berlin" or "UTC" nor an offset such as "GMT-8" or "GMT+05:30". The
// error is a *catalog.Error with catalog.ErrInvalidConfig that names the zone.
func CheckZone(name string) error {
	if _, ok := loadZone(name); !ok {
		return &catalog.Error{
			Code: catalog.ErrInvalidConfig,
			Message: fmt.Sprintf("'%s' is '%s', which is not a known time zone; want a region such as Europe/Berlin, or UTC, or an offset such as GMT-8",
				catalog.PropAutoZone, name),
		}
	}
	return nil
}

// loadZone finds a zone by the ids Java knows, case-sensitive.
func loadZone(name string) (*time.Location, bool) {
	if loc, ok := offsetZone(name); ok {
		return loc, true
	}
	if s, ok := fixedZones[name]; ok {
		return time.FixedZone(name, s), true
	}
	if region, ok := shortZones[name]; ok {
		name = region
	}
	if !isRegion(name) {
		return nil, false
	}
	loc, err := time.LoadLocation(name)
	return loc, err == nil
}

// isRegion keeps out names that only mean something to Go or to the zone
// directory of one machine: the local zone, and copies with leap seconds.
func isRegion(name string) bool {
	switch name {
	case "", "Local", "localtime", "posixrules", "Factory":
		return false
	}
	return !strings.HasPrefix(name, "posix/") && !strings.HasPrefix(name, "right/")
}

// offsetZone reads "GMT", a sign, one or two digits of hours up to 23, and
// perhaps two digits of minutes up to 59, after a colon or not.
func offsetZone(name string) (*time.Location, bool) {
	rest, ok := strings.CutPrefix(name, "GMT")
	if !ok || rest == "" || rest[0] != '+' && rest[0] != '-' {
		return nil, false
	}
	sign := 1
	if rest[0] == '-' {
		sign = -1
	}
	hours, minutes, colon := strings.Cut(rest[1:], ":")
	if n := len(hours); !colon && n > 2 {
		hours, minutes = hours[:n-2], hours[n-2:]
	}
	h, ok := number(hours, 1, 2, 23)
	if !ok {
		return nil, false
	}
	m := 0
	if colon || minutes != "" {
		if m, ok = number(minutes, 2, 2, 59); !ok {
			return nil, false
		}
	}
	return time.FixedZone(name, sign*(h*3600+m*60)), true
}

// number reads between least and most ASCII digits, and nothing else.
func number(s string, least, most, top int) (int, bool) {
	if len(s) < least || len(s) > most {
		return 0, false
	}
	n := 0
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return 0, false
		}
		n = n*10 + int(c-'0')
	}
	return n, n <= top
}
