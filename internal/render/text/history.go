package text

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// History prints a line for each direction of each run, with a bar against the path's best.
func History(w io.Writer, h *record.History) {
	if len(h.Runs) == 0 {
		fmt.Fprintln(w, "no result is stored")
		return
	}
	type key struct{ path, direction string }
	best := map[key]float64{}
	for _, r := range h.Runs {
		for _, f := range r.Directions {
			if f.GoodputBps != nil {
				best[key{r.PathKey, f.Direction}] = max(best[key{r.PathKey, f.Direction}], *f.GoodputBps)
			}
		}
	}
	t := newTable(5)
	t.optional = []int{6, 2, 8} // the bar, WHAT, the note
	t.row("WHEN", "ID", "WHAT", "PEER", "", "GOODPUT", "", "LIMITED BY", "")
	for _, r := range h.Runs {
		when := r.StartedAt.UTC().Format("2006-01-02 15:04:05")
		id := shortID(r.ID)
		kind := r.Kind
		far := r.Far
		note := labelsText(r.Labels)
		if r.Outcome != record.Done {
			note = strings.TrimSpace(string(r.Outcome) + " " + note)
		}
		if len(r.Directions) == 0 {
			t.row(when, id, kind, far, "", "", "", "", note)
		}
		for _, f := range r.Directions {
			goodput := "–"
			level := ""
			if f.GoodputBps != nil {
				goodput = units.Rate(*f.GoodputBps).String()
				level = Spark(*f.GoodputBps / best[key{r.PathKey, f.Direction}])
			}
			if f.RequestsPerS != nil {
				goodput = perSecond(*f.RequestsPerS)
				note = strings.TrimSpace(requestTimes(&f, "median ") + " " + note)
			}
			decided := strings.TrimSpace(DecisionText(f.Verdict, f.Strength) + " " + note)
			t.row(when, id, kind, far, f.Direction, goodput, level, f.Limiter, decided)
			when = ""
			id = ""
			kind = ""
			far = ""
			note = ""
		}
	}
	t.write(w, "")
}

// DecisionText formats the decision of a tune; "" where there is none.
func DecisionText(v search.Verdict, s search.Strength) string {
	switch {
	case v == "" || s == "":
		return ""
	case s == search.Open:
		return "undecided"
	case v == search.NoChange:
		return "no change, " + string(s)
	}
	return "change " + string(s) + " to help"
}

// shortID returns an id's last characters: ids of about the same time begin alike.
func shortID(id string) string { return id[max(len(id)-12, 0):] }

// Spark formats a share of the best as one character.
func Spark(share float64) string {
	levels := []rune("▁▂▃▄▅▆▇█")
	return string(levels[int(min(max(share, 0), 1)*float64(len(levels)-1)+0.5)])
}

func labelsText(labels map[string]string) string {
	var parts []string
	for _, name := range sortedKeys(labels) {
		parts = append(parts, name+"="+labels[name])
	}
	return strings.Join(parts, " ")
}

// Changes prints a line for each change.
func Changes(w io.Writer, c *record.Changes) {
	if len(c.Changes) == 0 {
		fmt.Fprintln(w, "no change is shown")
		return
	}
	t := newTable()
	for _, one := range c.Changes {
		t.row(one.At.UTC().Format("2006-01-02 15:04:05"), one.Far+" "+one.Direction, ChangeText(&one),
			one.Confidence+" confidence", "since "+shortID(one.RunID))
	}
	t.write(w, "")
}

// ChangeText formats the values after and before a change.
func ChangeText(one *record.PathChange) string {
	text := "limited by " + one.AfterLimiter + " instead of " + one.BeforeLimiter
	if one.BeforeRTTMinS != nil && one.AfterRTTMinS != nil {
		text = fmt.Sprintf("minimum RTT %s instead of %s", SecondsText(*one.AfterRTTMinS),
			SecondsText(*one.BeforeRTTMinS))
	}
	if one.BeforeBps != nil && one.AfterBps != nil {
		text = fmt.Sprintf("%s instead of %s", units.Rate(*one.AfterBps), units.Rate(*one.BeforeBps))
		if one.BeforeLimiter != one.AfterLimiter {
			text += ", limited by " + one.AfterLimiter + " instead of " + one.BeforeLimiter
		}
	}
	return text
}

// Difference prints two runs in columns.
func Difference(w io.Writer, d *record.Difference) {
	t := newTable()
	name := func(r *record.DifferenceRun) string { return r.Kind + " " + r.Far }
	t.row("", "first", "second")
	t.row("what", name(&d.First), name(&d.Second))
	t.row("when", d.First.StartedAt.UTC().Format("2006-01-02 15:04:05"),
		d.Second.StartedAt.UTC().Format("2006-01-02 15:04:05"))
	for i := range d.Directions {
		one := &d.Directions[i]
		first := FigureText(one.First)
		second := FigureText(one.Second)
		if one.Factor != nil {
			second += "   × " + factor(*one.Factor)
		}
		t.row(one.Direction, first, second)
	}
	for i := range d.Levels {
		one := &d.Levels[i]
		t.row(one.Direction+", all", levelText(one.Before), levelText(one.Since))
	}
	for _, v := range d.Differ {
		t.row(v.Name, orNotKnown(v.First), orNotKnown(v.Second))
	}
	t.write(w, "")
	if len(d.Differ) == 0 {
		fmt.Fprintln(w, "program, kernels, settings in force and labels are the same, as far as they are known")
	}
	writeCells(w, d.Cells)
}

// levelText formats the median of several results and their limiters, the most frequent first.
func levelText(l *record.DifferenceLevel) string {
	if l == nil {
		return notKnown
	}
	text := fmt.Sprintf("%d results, median %s", l.Runs, units.Rate(l.MedianBps))
	if l.LowBps != nil && l.HighBps != nil {
		text += fmt.Sprintf(" (%s to %s)", units.Rate(*l.LowBps), units.Rate(*l.HighBps))
	}
	if named := countedText(l.Limiters); named != "" {
		text += "; " + named
	}
	return text
}

// countedText formats limiters with their counts, the most frequent first.
func countedText(limiters map[string]int) string {
	names := slices.Sorted(maps.Keys(limiters))
	slices.SortStableFunc(names, func(a, b string) int { return limiters[b] - limiters[a] })
	var parts []string
	for _, name := range names {
		if name != "" {
			parts = append(parts, fmt.Sprintf("%s ×%d", name, limiters[name]))
		}
	}
	return strings.Join(parts, ", ")
}

// Days prints a line for each day of each direction of a path.
func Days(w io.Writer, d *record.Days) {
	if len(d.Days) == 0 {
		fmt.Fprintln(w, "no result is stored")
		return
	}
	t := newTable(3, 4, 5)
	t.optional = []int{5} // RANGE
	t.row("DAY", "PEER", "", "RESULTS", "MEAN", "RANGE", "LIMITED BY")
	for _, one := range d.Days {
		t.row(one.Day, one.Far, one.Direction, fmt.Sprint(one.Runs), units.Rate(one.MeanBps).String(),
			units.Rate(one.LeastBps).String()+" to "+units.Rate(one.MostBps).String(), countedText(one.Limiters))
	}
	t.write(w, "")
}

func orNotKnown(v *string) string {
	if v == nil {
		return notKnown
	}
	return *v
}

// FigureText formats a result's goodput and limiter.
func FigureText(f *record.Figure) string {
	switch {
	case f == nil || f.GoodputBps == nil && f.RequestsPerS == nil:
		return notKnown
	case f.RequestsPerS != nil:
		return perSecond(*f.RequestsPerS) + requestTimes(f, ", median ")
	}
	text := units.Rate(*f.GoodputBps).String()
	if f.Limiter != "" {
		text += ", limited by " + f.Limiter
	}
	return text
}

// requestTimes formats the median, after the word for it, and the p99 of a load of requests; "" where there is none.
func requestTimes(f *record.Figure, median string) (text string) {
	if f.P50S != nil {
		text = median + SecondsText(*f.P50S)
	}
	if f.P99S != nil {
		text += ", p99 " + SecondsText(*f.P99S)
	}
	return text
}

func sortedKeys(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
