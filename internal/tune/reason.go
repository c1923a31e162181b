package tune

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// reason is the verdict in words.
func (l *loop) reason() string {
	out := &l.out
	share := fmt.Sprintf("%.0f %%", 100*l.answer.Share)
	clipped := out.Chosen != nil && l.answer.Clipped && out.Chosen.besides() == ""
	switch {
	case out.Interrupted && out.Chosen == nil:
		return "interrupted before it was decided"
	case l.swallows() && out.Chosen == nil:
		return "full segments vanish on the way, and no smaller ones were shown to pass"
	case l.swallows():
		return "full segments vanish on the way, these pass"
	case clipped && out.Path.Window > out.Chosen.Window*5/4:
		return "the most that the systems' ceilings allow; the path needs " + units.Size(out.Path.Window).Exact()
	case clipped:
		return "the most that the systems' ceilings allow"
	case l.cfg.Goal == Latency && out.Chosen != nil:
		return "shown to shorten the queue and to keep the rate"
	case l.cfg.Goal == Latency && out.Verdict == search.NoChange:
		return "a transfer adds so little to the round trip that nobody notices: nothing to change"
	case l.cfg.Goal == Fair && out.Chosen != nil:
		return "shown to gain more than it takes from another flow on the link"
	case out.Chosen != nil && l.winner != Setup{} && l.answer.Clipped:
		return "shown to be better than what there is; the systems' ceilings keep one connection's window below the " +
			units.Size(out.Path.Window).Exact() + " that the path needs"
	case out.Chosen != nil && l.winner != Setup{}:
		return "shown to be better than what there is"
	case out.Chosen != nil && out.Shown:
		return "the smallest window that is shown to reach 98 % of the best"
	case out.Chosen != nil:
		return "shown to be better than what there is; a somewhat smaller window might do as well"
	case out.Verdict == search.NoChange && l.answer.Verdict != search.NoChange && l.full(search.Nearly):
		return fmt.Sprintf("automatic sizing reaches %.0f %% of the most that the path carried in any run: nothing to change",
			100*min(1, out.Before.Interval.Mid/out.Path.CapacityBps))
	case out.Verdict == search.NoChange && l.nearly() && l.searched.Reaches(search.Nearly):
		return "automatic sizing reaches " + share + " of the best that any window gave, shown to be 95 % or more: nothing " +
			"to change"
	case out.Verdict == search.NoChange && l.nearly() && !l.searched.Alike():
		return fmt.Sprintf("automatic sizing gives %s of what the best window gave, and single runs differ by %.2g %%, so "+
			"that nobody could tell one from the other: nothing to change", share, 100*l.answer.Noise.Dev)
	case out.Verdict == search.NoChange && l.nearly():
		return "automatic sizing reaches " + share + " of the best that any window gave, shown to be 91 % or more: what " +
			"another one may give is too little to tell from chance, and to matter"
	case out.Verdict == search.NoChange && l.answer.Verdict != search.NoChange:
		return "nothing that was tried gives 5 % more than what there is: nothing is changed"
	case out.Verdict == search.NoChange:
		return "automatic sizing reaches " + share + " of the best that any window gave: nothing to change"
	case len(out.Trials) < 3 && len(out.Remedies) == 0:
		out.Open = l.more()
		if out.Open != nil {
			return "too little was measured to say: " + wouldTake(out.Open.Budget)
		}
		return "too little was measured to say"
	}
	if reason, open := l.open(); open != nil {
		out.Open = open
		return reason
	}
	return "nothing that was tried was shown to be better than what there is: nothing is changed"
}
