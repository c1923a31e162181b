package text

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// PathShift formats a path's change as a sentence.
func PathShift(s *record.PathShift) string {
	where := "the path to " + s.Network
	if s.Network == "" {
		where = fmt.Sprintf("the paths to %d of %d networks at once, so this host's own or its uplink", s.Networks, s.Judged)
	}
	verb := "has changed"
	if s.Back {
		verb = "is as before"
	}
	return fmt.Sprintf("%s %s: %s since %s", where, verb, shiftText(s), s.Since.UTC().Format("2006-01-02 15:04 UTC"))
}

// shiftText formats the values before and after a change.
func shiftText(s *record.PathShift) string {
	switch {
	case s.BeforeRTTMinS != nil && s.AfterRTTMinS != nil:
		return fmt.Sprintf("minimum RTT %s instead of %s", SecondsText(*s.AfterRTTMinS), SecondsText(*s.BeforeRTTMinS))
	case s.BeforeBps != nil && s.AfterBps != nil:
		return fmt.Sprintf("it delivers %s instead of %s", units.Rate(*s.AfterBps), units.Rate(*s.BeforeBps))
	case s.BeforeBytes != nil && s.AfterBytes != nil:
		return fmt.Sprintf("packets of %.0f bytes instead of %.0f", *s.AfterBytes, *s.BeforeBytes)
	case s.BeforeRatio != nil && s.AfterRatio != nil:
		metric := "segments retransmitted"
		if s.Metric == "reordering" {
			metric = "reordering"
		}
		return fmt.Sprintf("%s %s instead of %s", metric, percent(*s.AfterRatio), percent(*s.BeforeRatio))
	case s.BeforeECN != "" || s.AfterECN != "":
		return fmt.Sprintf("%s of its new connections have ECN instead of %s", s.AfterECN, s.BeforeECN)
	}
	return s.Metric
}
