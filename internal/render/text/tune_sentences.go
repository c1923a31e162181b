package text

import (
	"cmp"
	"fmt"
	"math"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// TuneReason formats the reason of a direction's verdict.
func TuneReason(d *tune.Direction) string {
	v := d.Reason.Values
	share := fmt.Sprintf("%.0f %%", 100*v["share"])
	noise := fmt.Sprintf("single runs differ by %.2g %%", 100*v["noise"])
	needed := units.Size(d.Path.Window).Exact()
	switch d.Reason.Code {
	case tune.AtCeilings:
		if d.Path.Window > d.Chosen.Window*5/4 {
			return "the most that the systems' ceilings allow; the path needs " + needed
		}
		return "the most that the systems' ceilings allow"
	case tune.BetterBelowCeilings:
		return "shown to be better than today's settings; the systems' ceilings keep one connection's window below the " +
			needed + " that the path needs"
	case tune.LinkFull:
		return "automatic sizing reaches " + share + " of the most that the path carried in any run: nothing to change"
	case tune.NearlyShown:
		return "automatic sizing reaches " + share + " of the best that any window gave, shown to be 95 % or more: nothing " +
			"to change"
	case tune.Indistinguishable:
		return "automatic sizing gives " + share + " of what the best window gave, and " +
			"" + noise + "; the difference is too small to matter: nothing to change"
	case tune.NearlyLikely:
		return "automatic sizing reaches " + share + " of the best that any window gave, shown to be 91 % or more: " +
			"the gain of another one is too small to prove, and to matter"
	case tune.AutomaticSuffices:
		return "automatic sizing reaches " + share + " of the best that any window gave: nothing to change"
	case tune.TooLittleMeasured:
		return strings.TrimSuffix("too little was measured to say: "+wouldDecide(d.Open), ": ")
	case tune.ScatteredGain:
		return fmt.Sprintf("%s gave × %.2f in the median of all runs, but the runs scatter too "+
			"much to prove it: %s",
			d.Open.Setup, d.Open.Gain, wouldDecide(d.Open))
	case tune.PromisingRemedy:
		return fmt.Sprintf("%s gave × %.2f %s, not proven yet: %s", d.Open.Setup, d.Open.Gain, inRuns(d.Open.Runs),
			wouldDecide(d.Open))
	case tune.NeedsRuns:
		return needsRuns(d.Open)
	case tune.PromisingWindow:
		return fmt.Sprintf("%s seems to give × %.2f, and %s, so that is not proven yet: %s", d.Open.Setup, d.Open.Gain,
			noise, wouldDecide(d.Open))
	case tune.WindowsUndecided:
		return "automatic sizing gives " + share + " of what the best window gave, and " + noise + ", so it is not " +
			"decided yet whether another window is better: " + wouldDecide(d.Open)
	case tune.LikelyBetter:
		return likelyBetter(d)
	case tune.HostDisturbed:
		return tuneDisturbed(d)
	}
	return tuneSentences[d.Reason.Code]
}

// tuneSentences are the reasons without values.
var tuneSentences = map[tune.Code]string{
	tune.NothingMeasured:     "nothing was measured",
	tune.CutShort:            "interrupted before it was decided",
	tune.SegmentsVanish:      "full segments vanish on the way, and no smaller ones were shown to pass",
	tune.SmallerSegmentsPass: "full segments vanish on the way, these pass",
	tune.QueueShortened:      "shown to shorten the queue and to keep the rate",
	tune.QueueIsShort:        "a transfer hardly lengthens the round trip: nothing to change",
	tune.GainsMoreThanTakes:  "shown to gain more than it takes from another flow on the link",
	tune.Better:              "shown to be better than today's settings",
	tune.AsFast:              "at least 95 % of today's rate, with clearly fewer retransmissions",
	tune.SmallestWindow:      "the smallest window that is shown to reach 98 % of the best",
	tune.BetterWindow:        "shown to be better than today's settings; a somewhat smaller window might do as well",
	tune.NothingHelps:        "no trial gives 5 % more than today's settings: nothing is changed",
	tune.NothingShown:        "no trial was shown to be better than today's settings: nothing is changed",
	tune.FasterChanged:       "shown to be faster with the change",
	tune.AsFastChanged:       "the rate stays within 5 % with the change, with clearly fewer retransmissions",
	tune.SlowerChanged:       "the path is slower with the change",
}

// TuneOpen names the open question.
func TuneOpen(d *tune.Direction) string {
	switch d.Reason.Code {
	case tune.TooLittleMeasured:
		return "another way to send"
	case tune.WindowsUndecided:
		return "another window"
	}
	return d.Open.Setup.String()
}

// wouldDecide formats the budget that would decide the open question; "" if there is none.
func wouldDecide(o *tune.Open) string {
	switch {
	case o == nil:
		return ""
	case o.Budget == 0:
		return "runs scatter so much that no budget of a reasonable length would decide"
	}
	return fmt.Sprintf("--budget %s would decide, if these figures last", tune.Shortest(o.Budget))
}

// needsRuns formats a gain that scattered runs did not show, and the runs that would.
func needsRuns(o *tune.Open) string {
	gave := fmt.Sprintf("%s gave × %.2f %s, and single runs scatter too much to prove it", o.Setup, o.Gain,
		runsAgainst(o.Runs, o.Baseline))
	more := "one more run"
	if o.More != 1 {
		more = fmt.Sprintf("%d more runs", o.More)
	}
	if o.Budget == 0 {
		return fmt.Sprintf("%s: it needs about %s, more than a budget of a reasonable length allows", gave, more)
	}
	return fmt.Sprintf("%s: it needs about %s: --budget %s", gave, more, tune.Shortest(o.Budget))
}

// likelyBetter formats a gain that is probable, and the run that would prove it.
func likelyBetter(d *tune.Direction) string {
	text := fmt.Sprintf("%.0f %% likely to be better than today's settings by %s, not yet proven: ",
		math.Floor(100*d.Decision.Probability), strings.TrimPrefix(runsAgainst(d.Open.Runs, d.Open.Baseline), "in "))
	if d.Open.Budget == 0 {
		return text + "runs scatter so much that no budget of a reasonable length would prove it"
	}
	return text + fmt.Sprintf("run tune with --budget %s to prove it", tune.Shortest(d.Open.Budget))
}

// runsAgainst formats unequal numbers of runs.
func runsAgainst(n, baseline int) string {
	return fmt.Sprintf("%s against %d of automatic", inRuns(n), baseline)
}

func inRuns(n int) string {
	if n == 1 {
		return "in one run"
	}
	return fmt.Sprintf("in %d runs", n)
}

// mostlyBusy is the busy share of a host's processors above which other programs are named as the cause.
const mostlyBusy = 0.9

// tuneDisturbed formats a measurement's disturbance and its remedy.
func tuneDisturbed(d *tune.Direction) string {
	u := d.Disturbed
	starved := cmp.Or(u.NearStarved, u.FarStarved)
	if starved == nil {
		return "the lab was too late to be believed, so this result does not describe the " +
			"path: measure again when this host is less busy"
	}
	host := "this host"
	if u.NearStarved == nil {
		host = "the far host"
	}
	by := "a CPU quota or its priority keeps it off the idle processors"
	switch {
	case record.OrZero(u.HostBusy) >= mostlyBusy:
		by = fmt.Sprintf("other programs use its processors, which were %.0f %% busy", 100**u.HostBusy)
	case u.HostBusy == nil:
		by = "other programs use its processors, or its share of them is used up"
	}
	return fmt.Sprintf("%s, the %s, had no core for the data %.0f %% of the time (%s), so this "+
		"result does not describe the path: measure again when %s is "+
		"idle", host, u.End(d.Direction), 100**starved, by, host)
}

// TuneWarnings formats a direction's warnings.
func TuneWarnings(all []tune.Statement) (lines []string) {
	for i := range all {
		lines = append(lines, tuneWarning(&all[i]))
	}
	return lines
}

func tuneWarning(s *tune.Statement) string {
	v := s.Values
	switch s.Code {
	case tune.NarrowerMTU:
		return fmt.Sprintf("the path carries packets of %.0f bytes, less than its first link's %.0f", v["mtu"], v["first"])
	case tune.HandshakeRewritten:
		return fmt.Sprintf("the two ends disagree on %s: something on the path changes the "+
			"handshake",
			strings.Join(s.Names, " and "))
	case tune.NoRTT:
		return "no end could measure the round trip"
	case tune.NotTried:
		return fmt.Sprintf("%s could not be tried: %v", s.Setup, s.Err)
	case tune.BudgetSpent:
		return "the baseline took the whole budget: nothing was searched"
	case tune.RetransmitsMuch:
		today := ""
		if before, ok := v["retransmitted_before"]; ok {
			today = ", automatic " + percent(before)
		}
		return fmt.Sprintf("%s retransmits %s of what it sends%s: retransmissions take capacity from others on the path",
			s.Setup, percent(v["retransmitted"]), today)
	case tune.TakesMoreThanGains:
		return fmt.Sprintf("%s was not shown to gain more than it takes: next to another flow it gives × %.2f and leaves "+
			"that one × %.2f", s.Setup, v["factor"], v["others"])
	}
	if v["low"] > 1 {
		return fmt.Sprintf("too few runs of %s to prove its gain (× %.2f to × %.2f so far)",
			s.Setup, v["low"], v["high"])
	}
	return fmt.Sprintf("the final comparison of %s with today's settings showed no gain (× "+
		"%.2f to × %.2f)", s.Setup,
		v["low"], v["high"])
}

// TuneAppliedReason formats the reason why a change of the hosts was kept or undone.
func TuneAppliedReason(a *tune.Applied) string {
	v := a.Reason.Values
	reason := tuneSentences[a.Reason.Code]
	switch a.Reason.Code {
	case tune.HostNotSet:
		return "the host could not be put into the state that the proof asks for (see fullpipe status): " +
			a.Reason.Err.Error()
	case tune.ProofCutShort:
		return "the proof was cut short: " + a.Reason.Err.Error()
	case tune.CostsGoodput:
		reason = fmt.Sprintf("the change costs goodput (× %.2f)", v["factor"])
	case tune.LikelyChanged:
		reason = fmt.Sprintf("likely to be faster, not proven (× %.2f to × %.2f): kept by --accept-likely", v["low"],
			v["high"])
	case tune.NoGainShown:
		reason = fmt.Sprintf("no gain was shown (× %.2f to × %.2f)", v["low"], v["high"])
	}
	switch {
	case a.Marked == nil:
		return reason
	case *a.Marked == 0:
		return reason + "; no queue on the way marked anything"
	}
	return fmt.Sprintf("%s; queues marked %d segments instead of dropping them", reason, *a.Marked)
}

// tunePurposes has the text of each purpose of a trial.
var tunePurposes = map[search.Purpose]string{
	search.AutomaticSizing: "automatic sizing",
	search.ModelWindow:     "the model's window",
	search.WideWindow:      "a window out of the way",
	search.SuspectedStall:  "was that a stall?",
	search.MoreRoom:        "there is room for more here",
	search.LessEnough:      "is less enough?",
	search.OnceMore:        "once more, to be sure",
	search.AutomaticAsGood: "is automatic as good?",
	search.WindowEnough:    "is this window enough?",
	tune.IdlePath:          "asking for the round trip",
	tune.Today:             "today's settings",
	tune.TodayLonger:       "today's settings, for longer",
	tune.AnythingPasses:    "does anything get through?",
	tune.SegmentsPass:      "do smaller segments pass?",
	tune.BetweenLosses:     "the path's rate between losses",
	tune.FillsAgain:        "does it fill the link again?",
	tune.StaysFull:         "does the link stay full?",
	tune.PathLimit:         "how far the path goes",
	tune.SeveralStreams:    "do several connections carry more?",
	tune.BelowCapacity:     "does it lose less below the path's capacity?",
	tune.Candidate:         "does this help?",
	tune.ComparedWith:      "the baseline",
	tune.ProofBefore:       "proof: before",
	tune.ProofAfter:        "proof: after",
	tune.Alone:             "alone on the link",
	tune.ProofUnchanged:    "proof: as it was",
	tune.ProofChanged:      "proof: with the change",
}

// TunePurpose formats the purpose of a trial.
func TunePurpose(p search.Purpose) string { return tunePurposes[p] }

// TuneProgress formats the current step of tune.
func TuneProgress(p tune.Progress) string {
	other := p.Setup
	other.Window = 0
	setup := p.Setup.String()
	switch {
	case p.Purpose == tune.IdlePath:
		return TunePurpose(p.Purpose)
	case p.Setup == tune.Setup{}:
		setup = "automatic sizing"
	case other != tune.Setup{}:
		setup = other.String()
	}
	return "trying " + setup + ": " + TunePurpose(p.Purpose)
}
