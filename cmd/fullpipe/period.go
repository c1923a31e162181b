package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// period is how long something lasts, on the command line: a bare number is seconds, as
// everywhere else. A round trip is no period: there a bare number could be milliseconds.
type period time.Duration

func (p *period) Set(s string) error {
	v, err := units.ParseTime(withSeconds(s))
	*p = period(v)
	return err
}

// withSeconds is a time's text with its unit: a bare number's is seconds.
func withSeconds(s string) string {
	if _, err := strconv.ParseFloat(strings.TrimSpace(s), 64); err == nil {
		return strings.TrimSpace(s) + "s"
	}
	return s
}

func (p *period) String() string {
	if *p == 0 {
		return ""
	}
	return units.Time(time.Duration(*p))
}

func (p *period) Type() string { return "time" }
