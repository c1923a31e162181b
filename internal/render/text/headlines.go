package text

import (
	"fmt"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// measureHeadline returns a measured direction's headline.
func measureHeadline(d *record.Direction) headline {
	return headline{subject: rateSubject(d.GoodputBps, string(d.Direction)), bps: record.OrZero(d.GoodputBps),
		verdict: d.Verdict, fixes: d.Fix}
}

// tuneHeadline returns a tuned direction's headline: its rate before, the path's, and the chosen setup's.
func tuneHeadline(d *record.TuneDirection) headline {
	h := headline{subject: rateSubject(&d.Before.MedianBps, string(d.Direction)), bps: d.Before.MedianBps,
		pathBps: d.Path.CapacityBps, atLeast: d.Path.AtLeast, verdict: d.Before.Verdict, fixes: d.Fix}
	if d.Before.Runs == 0 {
		h.subject = rateSubject(nil, string(d.Direction))
	}
	if d.Chosen == nil || d.Chosen.Automatic {
		if a := d.Applied; a != nil && a.Kept && a.After != nil && a.Gain != nil {
			h.do = fmt.Sprintf("the change of the hosts gives %s (× %s): applied", units.Rate(a.After.MedianBps),
				factor(a.Gain.Factor))
		}
		return h
	}
	switch name := tuneChosenName(d.Chosen); {
	case d.Delay != nil:
		h.do = fmt.Sprintf("%s shortens the round trip under load from %s to %s", name, d.Delay.Before,
			d.Delay.After)
	case d.Gain != nil && d.After != nil:
		h.do = fmt.Sprintf("%s gives %s (× %s)", name, units.Rate(d.After.MedianBps), factor(d.Gain.Factor))
		if d.IsLikely() {
			h.do = fmt.Sprintf("%s is %.0f %% likely to be better: it gave %s (× %s), which is not yet proven", name,
				math.Floor(100*d.Decision.ProbabilityRatio), units.Rate(d.After.MedianBps), factor(d.Gain.Factor))
		}
		before := d.Before.RetransmittedRatio
		after := d.After.RetransmittedRatio
		if before != nil && after != nil && search.SparesLosses(*after, *before) {
			h.do += fmt.Sprintf(" and retransmits %s instead of %s", percent(*after), percent(*before))
		}
	default:
		h.do = "use " + name
	}
	switch {
	case d.Applied == nil:
		h.do += ": apply one of the recipes below"
	case d.Applied.Kept:
		h.do += ": applied"
	default:
		h.do += "; applied and taken back: " + d.Applied.Reason
	}
	return h
}

// rfc6349Failed lists the criteria that failed, each direction by itself: ": up TCP, one connection"; "" if none did.
func rfc6349Failed(r *record.RFC6349) string {
	var failed []string
	for i := range r.Directions {
		for j := range r.Directions[i].Criteria {
			if c := &r.Directions[i].Criteria[j]; c.Verdict == rfc6349.Fail {
				failed = append(failed, string(r.Directions[i].Direction)+" "+RFC6349CriterionTitle(c))
			}
		}
	}
	if len(failed) == 0 {
		return ""
	}
	return " (" + strings.Join(failed, "; ") + ")"
}

// rfc6349Headline returns a direction's headline by its test of one connection, else by that of automatic windows.
func rfc6349Headline(d *record.RFC6349Direction) headline {
	for _, kind := range []record.RFC6349Kind{rfc6349.Full, rfc6349.Automatic} {
		if test := d.Find(kind); test != nil && test.GoodputBps != nil {
			fixes := d.Fix
			if len(fixes) > 0 && fixes[0].Limiter != test.Limiter { // of another test
				fixes = nil
			}
			return headline{subject: rateSubject(test.GoodputBps, string(d.Direction)), bps: *test.GoodputBps,
				pathBps: d.MaxTCPBps, fixes: fixes,
				verdict: verdict.Verdict{Limiter: test.Limiter, Subtype: test.Subtype, Confidence: test.Confidence}}
		}
	}
	return headline{subject: rateSubject(nil, string(d.Direction)), fixes: d.Fix}
}

// sweepHeadlines returns the headline of each direction's best cell.
func sweepHeadlines(s *record.Sweep) (all []headline) {
	for i := range s.Cells {
		c := &s.Cells[i]
		if !c.Best || !c.Measured() {
			continue
		}
		h := headline{subject: fmt.Sprintf("%s %s at best, by %s", units.Rate(c.GoodputBps), c.Direction, c.Buffers()),
			bps: c.GoodputBps, verdict: verdict.Verdict{Limiter: c.Limiter, Subtype: c.Subtype, Confidence: c.Confidence}}
		for j := range s.Paths {
			if s.Paths[j].Direction == c.Direction {
				h.fixes = s.Paths[j].Fix
			}
		}
		all = append(all, h)
	}
	return all
}

// diagnoseHeadline returns the headline of the direction with the most lost time.
func diagnoseHeadline(r *record.Diagnose, d *record.CapturedDirection) headline {
	h := headline{subject: fmt.Sprintf("%s → %s: ", d.From, d.To), verdict: d.Verdict, fixes: d.Fix}
	if n := max(r.Seen, int64(len(r.Connections))); n > 1 {
		h.subject = fmt.Sprintf("worst of %s connections: %s", Thousands(n), h.subject)
	}
	h.bps = record.OrZero(d.GoodputBps)
	if h.bps > 0 && d.SYNWaitS == 0 {
		h.subject += units.Rate(h.bps).String()
	} else {
		h.subject += units.Size(d.Bytes).String() + " " + capturedSpan(d)
	}
	if p := d.Prediction; p != nil && !p.AtLeast {
		h.pathBps = p.HighBps
	}
	return h
}

// whyHeadline returns the headline of a watched connection's heavier direction.
func whyHeadline(c *record.WatchedConnection) headline {
	f := &c.Directions[0]
	verb := "sends"
	if f.Direction == transfer.Down {
		verb = "receives"
	}
	h := headline{subject: fmt.Sprintf("%s %s %s %s %s", Owner(c), verb, units.Rate(f.GoodputBps),
		DirectionWord(f.Direction), c.Remote), bps: f.GoodputBps, verdict: f.Verdict, fixes: f.Fix}
	if fromElsewhere(f) {
		h.limited = "not limited by this host"
		h.do = "run fullpipe why on the sending host"
	}
	return h
}
