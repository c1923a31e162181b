// Package cmdflag holds the values of flags that several commands have, and their names and complaints.
package cmdflag

import (
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Period is how long something lasts, on the command line: a bare number is seconds, as
// everywhere else. A round trip is no period: there a bare number could be milliseconds.
type Period time.Duration

func (p *Period) Set(s string) error {
	v, err := units.ParseTime(WithSeconds(s))
	*p = Period(v)
	return err
}

// WithSeconds is a time's text with its unit: a bare number's is seconds.
func WithSeconds(s string) string {
	if _, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
		return strings.TrimSpace(s) + "s"
	}
	return s
}

func (p *Period) String() string {
	if *p == 0 {
		return ""
	}
	return units.Time(time.Duration(*p))
}

func (p *Period) Type() string { return "time" }

// Duration is a time on the command line, read by units.
type Duration time.Duration

func (d *Duration) Set(s string) error {
	v, err := units.ParseTime(s)
	*d = Duration(v)
	return err
}

func (d *Duration) String() string {
	if *d == 0 {
		return ""
	}
	return units.Time(time.Duration(*d))
}

func (d *Duration) Type() string { return "time" }

// MaxRTT is more than any round trip takes, seconds: what is read from a file may say anything.
const MaxRTT = 3600
