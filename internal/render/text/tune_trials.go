package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// tried combines all trials of one window.
type tried struct {
	label, note string
	effective   int
	automatic   bool
	goodputs    []float64
	retransmits []float64 // shares of the bytes sent, where known
	limiter     string
}

func tuneDirectionTried(d *record.TuneDirection) (all []tried) {
	byLabel := map[int]int{}
	for _, t := range d.Trials {
		if t.Remedy != "" {
			continue
		}
		asked := t.WindowBytes
		effective := t.EffectiveBytes
		i, ok := byLabel[asked]
		if !ok {
			i = len(all)
			byLabel[asked] = i
			label := "not known"
			if effective > 0 {
				label = exact(effective)
			}
			all = append(all, tried{effective: effective, automatic: t.Automatic, label: label, limiter: t.Limiter})
			var notes []string
			if t.Automatic {
				notes = append(notes, "today's setting: automatic")
				all[i].limiter = string(d.Before.Limiter)
			}
			if t.Clipped {
				notes = append(notes, "asked "+exact(asked)+", clipped")
			}
			if c := d.Chosen; !t.Automatic && c != nil && c.WindowBytes == effective {
				note := "chosen"
				if c.CongestionControl != "" || c.Streams > 0 || c.PacingBps > 0 || c.MSSBytes > 0 {
					note = "the chosen window by itself"
				} else if d.After != nil {
					all[i].limiter = string(d.After.Limiter)
				}
				notes = append(notes, note)
			}
			all[i].note = strings.Join(notes, ", ")
		}
		all[i].goodputs = append(all[i].goodputs, t.GoodputBps)
		if t.RetransmittedRatio != nil {
			all[i].retransmits = append(all[i].retransmits, *t.RetransmittedRatio)
		}
	}
	slices.SortStableFunc(all, func(a, b tried) int {
		switch {
		case a.automatic == b.automatic:
			return cmp.Compare(a.effective, b.effective)
		case a.automatic:
			return -1
		}
		return 1
	})
	return all
}

// longestBar and shortestBar bound the bars of trials, in columns.
const (
	longestBar  = 30
	shortestBar = 6
)

// tuneDirectionWriteTrials prints the table of windows. On a narrow terminal its bars are shorter.
func tuneDirectionWriteTrials(w io.Writer, d *record.TuneDirection) {
	table := tuneTrials(d, longestBar)
	if wider := table.width() + 4 - render.Columns(w); wider > 0 {
		table = tuneTrials(d, max(longestBar-wider, shortestBar))
	}
	table.write(w, "    ")
}

func tuneTrials(d *record.TuneDirection, barColumns int) *table {
	all := tuneDirectionTried(d)
	best := 0.0
	for _, t := range all {
		best = max(best, stats.Typical(t.goodputs))
	}
	table := newTable(0, 1, 2, 6)
	table.wraps = true
	heading := ""
	if slices.ContainsFunc(all, func(t tried) bool { return len(t.retransmits) > 0 }) {
		heading = "retransmitted"
	}
	table.row("window", "goodput", "runs", "", "limited by", "", heading)
	for _, t := range all {
		goodput := stats.Typical(t.goodputs)
		retransmitted := ""
		if len(t.retransmits) > 0 {
			retransmitted = percent(stats.Median(t.retransmits))
		}
		table.row(t.label, units.Rate(goodput).String(), fmt.Sprint(len(t.goodputs)), bar(goodput/best, barColumns),
			t.limiter, t.note, retransmitted)
	}
	return table
}

func tuneDirectionWriteRemedies(w io.Writer, d *record.TuneDirection) {
	if table := tuneRemedies(d); table != nil {
		fmt.Fprintln(w, "\n  "+tuneRemediesHeading(d))
		table.write(w, "    ")
	}
}

func tuneRemediesHeading(d *record.TuneDirection) string {
	heading := "also tried, in turn with the baseline"
	switch d.Goal {
	case string(tune.Latency):
		heading += "; ×: how much shorter the round trip under load is"
	case string(tune.Fair):
		heading += ", each next to another flow; ×: of the mean of both"
	}
	return heading
}

// tuneRemedies returns the table of remedies; nil if only windows were tried.
func tuneRemedies(d *record.TuneDirection) *table {
	if len(d.Remedies) == 0 {
		return nil
	}
	table := newTable(1, 2)
	table.wraps = true
	for _, r := range d.Remedies {
		var interval, others string
		chosen := d.Chosen != nil && d.Chosen.Name == r.Name
		if r.CI95 != nil {
			interval = fmt.Sprintf("(%s–%s)", factor(r.CI95[0]), factor(r.CI95[1]))
		}
		if r.OthersFactor != nil {
			others = "; others keep × " + factor(*r.OthersFactor)
		}
		if chosen {
			others += "; chosen"
		}
		if r.RetransmittedRatio != nil {
			others += "; " + percent(*r.RetransmittedRatio) + " retransmitted"
		}
		verdict := remedyVerdict(&r, chosen && d.IsLikely()) + others
		table.row(r.Name, units.Rate(r.GoodputBps).String(), "× "+factor(r.Factor), interval, verdict)
	}
	return table
}

// remedyVerdict formats the outcome of a remedy's trials; without proof it is open, not refuted. likely says that it is
// chosen without a proof.
func remedyVerdict(r *record.TuneRemedy, likely bool) string {
	runs := inRuns(r.Runs)
	if r.BaselineRuns > 0 {
		runs = runsAgainst(r.Runs, r.BaselineRuns)
	}
	base := ""
	if r.Reference != "" {
		base = " with " + r.Reference
	}
	switch {
	case likely:
		return "likely helps" + base + ", " + runs
	case r.CI95 != nil && r.CI95[0] > 1:
		return "helps" + base + ", " + runs
	case r.CI95 != nil && r.CI95[1] < 1:
		return "harms" + base + ", " + runs
	case r.Factor >= 1.1:
		return "not proven" + base + ", " + runs
	}
	return "no gain seen" + base + ", " + runs
}

// bar draws a share with eighths of a cell; NaN gives no bar.
func bar(share float64, columns int) string {
	if !(share > 0) {
		return ""
	}
	eighths := int(min(share, 1)*float64(columns)*8 + 0.5)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return text
}
