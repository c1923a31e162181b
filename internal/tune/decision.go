package tune

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/search"
)

// Decision has the strength and the basis of a direction's verdict.
type Decision struct {
	Strength search.Strength
	// Probability is that of the verdict being right; 0: not computed.
	Probability float64
	Tried       []string // ways to send, by name, in the order of their first trials; windows count as one
}

// triedWindows is the name of all windows that were tried.
const triedWindows = "windows"

// decision returns the strength of the verdict.
func (l *loop) decision() Decision {
	out := &l.out
	d := Decision{Strength: search.Open, Tried: l.tried()}
	switch {
	case out.Verdict == search.Change && out.Chosen != nil && l.proof.probability > 0:
		d.Strength = search.Likely
		d.Probability = l.proof.probability
	case out.Verdict == search.Change && out.Chosen != nil:
		d.Strength = search.Shown
		d.Probability = 1 - search.ComparisonError
	case out.Verdict != search.NoChange:
	case out.Reason.Code == QueueIsShort,
		out.Reason.Code == LinkFull && l.seen.reach(search.Nearly) == len(l.seen.baselineRuns()):
		d.Strength = search.Shown
	case out.Reason.Code == LinkFull:
		d.Strength = search.Likely // a run that misses it may be one that lost, and the others lucky
	case slices.Contains([]Code{AutomaticSuffices, NearlyShown, NearlyLikely}, out.Reason.Code):
		d.Strength = search.Shown // within 5 %, or within a tenth
		d.Probability = 1 - search.ComparisonError
	default: // no candidate is expected to give 5 %
		d.Strength = search.Likely
		if p := l.compared.exceedance.probabilityBelow(tenth); p >= 1-search.LikelyChance-1e-9 {
			d.Probability = p
		}
	}
	return d
}

// tried returns the names of the ways to send other than the baseline that had a trial.
func (l *loop) tried() (names []string) {
	for i := range l.seen.trials {
		t := &l.seen.trials[i]
		name := t.Setup.besides()
		switch {
		case t.Setup == Setup{}:
			continue
		case name == "":
			name = triedWindows
		}
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}
