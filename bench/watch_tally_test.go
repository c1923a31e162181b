//go:build linux

package bench

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
)

// The relations of a verdict to the truth: right, open with the truth among the candidates, open without it, or
// wrong.
const (
	rightVerdict   = "right"
	openVerdict    = "open"
	astrayVerdict  = "open without the truth"
	wrongVerdict   = "wrong"
	nothingVerdict = "nothing seen"
)

// judged returns the relation of a verdict to the truth. A full link is always its own limiter, with any cause.
func (c *watchedCause) judged(s *seenByWatch) string {
	is := func(name string) bool {
		return slices.Contains(c.limiters, name) || name == "bottleneck" && s.Bps >= 0.85*c.bps
	}
	possible := s.Candidates
	if s.Limiter == "sender" {
		possible = append([]string{"application", "send-buffer"}, possible...)
	}
	open := s.Limiter == "unknown" || s.Limiter == "mixed" || s.Limiter == "sender"
	switch {
	case s.Limiter == "":
		return nothingVerdict
	case is(s.Limiter):
		return rightVerdict
	case open && slices.ContainsFunc(possible, is):
		return openVerdict
	case open:
		return astrayVerdict
	}
	return wrongVerdict
}

// watchedRow counts the verdicts of one end and tier.
type watchedRow struct {
	name  string
	of    func(*seenAtEnds) *seenByWatch
	count map[string]int // by judged, wrong ones by confidence as well
	not   []string       // the cases that were not right, with their verdicts
}

func (r *watchedRow) add(c *watchedCause, v *seenAtEnds) {
	s := r.of(v)
	how := c.judged(s)
	r.count[how]++
	if how == wrongVerdict {
		r.count[how+" "+s.Confidence]++
	}
	switch how {
	case rightVerdict:
	case openVerdict:
		r.not = append(r.not, c.name+": "+how)
	default:
		r.not = append(r.not, fmt.Sprintf("%s: %s (%s)", c.name, how, s))
	}
}

func (r *watchedRow) among(good ...string) (n among) {
	for _, how := range []string{rightVerdict, openVerdict, astrayVerdict, wrongVerdict, nothingVerdict} {
		n.all += r.count[how]
		if slices.Contains(good, how) {
			n.good += r.count[how]
		}
	}
	return n
}

func (r *watchedRow) String() string {
	return fmt.Sprintf("right %d, open with the truth %d, open without it %d, wrong %d (high %d, medium %d, low %d), "+
		"nothing seen %d", r.count[rightVerdict], r.count[openVerdict], r.count[astrayVerdict], r.count[wrongVerdict],
		r.count["wrong high"], r.count["wrong medium"], r.count["wrong low"], r.count[nothingVerdict])
}

// watchedTally counts the verdicts at both ends, by both tiers. Cases during which the machine stalled are left out.
type watchedTally struct {
	mu                    sync.Mutex
	rows                  []*watchedRow
	both, named, programs among
	unnamed, nameless     []string
	late                  int
}

func (n *watchedTally) add(t *testing.T, c *watchedCause, v *seenAtEnds) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if v.Late {
		n.late++
		t.Log("the machine stalled: left out")
		return
	}
	if n.rows == nil {
		for _, r := range []watchedRow{
			{name: "at the sender, by samples", of: func(v *seenAtEnds) *seenByWatch { return &v.Sender.Fine }},
			{name: "at the receiver, by samples", of: func(v *seenAtEnds) *seenByWatch { return &v.Receiver.Fine }},
			{name: "at the sender, by clocks alone", of: func(v *seenAtEnds) *seenByWatch { return &v.Sender.Coarse }},
			{name: "at the receiver, by clocks alone", of: func(v *seenAtEnds) *seenByWatch { return &v.Receiver.Coarse }},
		} {
			r.count = map[string]int{}
			n.rows = append(n.rows, &r)
		}
	}
	for _, r := range n.rows {
		r.add(c, v)
		t.Logf("%s: %s: %s", r.name, c.judged(r.of(v)), r.of(v))
	}
	sender, receiver := c.judged(&v.Sender.Fine), c.judged(&v.Receiver.Fine)
	n.both.count((sender == rightVerdict || sender == openVerdict && receiver == rightVerdict) &&
		receiver != wrongVerdict)
	if !slices.Contains(c.limiters, "bottleneck") && namedByClocks(c.limiters) {
		n.named.count(c.judged(&v.Sender.Coarse) == rightVerdict)
		if c.judged(&v.Sender.Coarse) != rightVerdict {
			n.unnamed = append(n.unnamed, c.name)
		}
	}
	if s := &v.Sender.Fine; c.subtype != "" {
		n.programs.count(s.Limiter == "application" && s.Subtype == c.subtype)
		if s.Subtype != c.subtype {
			n.nameless = append(n.nameless, c.name)
		}
	}
}

// report records the rows. The rows are inconclusive if the machine stalled in more than a fifth of the cases.
func (n *watchedTally) report(t *testing.T, command string) {
	if n.rows == nil {
		t.Fatal("no cause was looked at")
	}
	all := n.late + n.rows[0].among().all
	late := fmt.Sprintf("%d of %d left out: the machine stalled", n.late, all)
	row := func(name, claim string, of among, least float64, measured string, spread []string) {
		verdict := of.verdict(least)
		if 5*n.late > all {
			verdict = "inconclusive"
		}
		record(t, bankRow{Section: "watch", Case: name, Claim: claim, Measured: cmp.Or(measured, of.String()),
			Spread: strings.Join(append([]string{of.interval()}, together(spread)...), "; "), Verdict: verdict, Late: late,
			Command: command})
	}
	for i, r := range n.rows {
		sure := among{good: -r.count["wrong high"]}
		sure.all = r.among().all
		sure.good += sure.all
		switch i {
		case 0:
			row("causes "+r.name, "right in at least 90 %", r.among(rightVerdict), 0.9, r.String(), r.not)
		default:
			row("causes "+r.name, "right, or open with the truth among what is possible, in 90 %",
				r.among(rightVerdict, openVerdict), 0.9, r.String(), r.not)
		}
		row("causes "+r.name, "wrong with high confidence in at most 1 %", sure, 0.99, "", nil)
	}
	row("causes at both ends", "right at the sender, or open there and right at the receiver, which is not wrong, in 90 %",
		n.both, 0.9, "", nil)
	row("causes that the kernel's clocks tell", "named by them alone in 80 %", n.named, 0.8, "", n.unnamed)
	coarse := n.rows[2]
	row("what the kernel's clocks alone leave open at the sender", "the truth is among what they leave possible in 90 %",
		among{coarse.count[openVerdict], coarse.count[openVerdict] + coarse.count[astrayVerdict]}, 0.9, "", nil)
	row("exchanges and programs' own windows", "named in 90 %", n.programs, 0.9, "", n.nameless)
}

// together groups equal words: "wrong × 3".
func together(words []string) (all []string) {
	slices.Sort(words)
	for len(words) > 0 {
		n := 1
		for n < len(words) && words[n] == words[0] {
			n++
		}
		switch n {
		case 1:
			all = append(all, words[0])
		default:
			all = append(all, fmt.Sprintf("%s × %d", words[0], n))
		}
		words = words[n:]
	}
	return all
}

// namedByClocks reports whether the kernel's cumulative clocks name the limiter: an idle program, the
// receiver's window with what is behind it, and the send buffer.
func namedByClocks(limiters []string) bool {
	return slices.ContainsFunc(limiters, func(l string) bool {
		return slices.Contains([]string{"application", "send-buffer", "receiver-window", "receiver-application"}, l)
	})
}
