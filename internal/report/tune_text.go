package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// WriteText prints the report that a person reads first.
func (d *Tune) WriteText(w io.Writer) {
	t := newTable()
	t.row("peer", d.Peer)
	t.row("near", d.Near.text())
	t.row("far", d.Far.text())
	t.write(w, "")
	for i := range d.Directions {
		fmt.Fprintln(w)
		d.Directions[i].writeText(w)
	}
	fmt.Fprintf(w, "\n%s moved in %s; %s\n", units.Size(d.BytesSent), secondsText(d.ElapsedS), d.changed())
}

func (d *TuneDirection) writeText(w io.Writer) {
	fmt.Fprintf(w, "%s\n\n", Heading(d.Direction))
	top := newTable()
	d.Path.rows(top)
	top.row("", "")
	top.row("before", d.Before.text())
	top.row("limited by", d.Before.VerdictText())
	for _, e := range d.Before.Evidence {
		top.row("", e.Text)
	}
	top.write(w, "  ")

	fmt.Fprintln(w, "\n  tried")
	d.writeTrials(w)
	d.writeRemedies(w)

	fmt.Fprintln(w)
	end := newTable()
	if d.After != nil && d.Chosen != nil {
		end.row("after", d.After.text())
		end.row("limited by", d.After.VerdictText())
	}
	if d.Gain != nil && d.Chosen != nil {
		text := fmt.Sprintf("× %s", factor(d.Gain.Factor))
		if d.Gain.CI95 != nil {
			text += fmt.Sprintf("   (× %s to × %s with 95 %% confidence)", factor(d.Gain.CI95[0]), factor(d.Gain.CI95[1]))
		}
		end.row("gain", text)
	}
	if d.File != nil {
		end.row("file", d.File.text())
	}
	end.row("verdict", d.verdictText())
	for i, line := range d.worthDoing() {
		end.row([]string{"worth trying", ""}[min(i, 1)], line)
	}
	if d.Interrupted {
		end.row("", "interrupted: this is what was found until then")
	}
	for _, warning := range d.Warnings {
		end.row("note", warning)
	}
	end.write(w, "  ")
	d.writeSettings(w)
	if d.Applied != nil {
		d.Applied.writeText(w)
	}
}

func (p *TunePath) rows(t *table) {
	var trip []string
	if p.RTTMinS != nil {
		trip = append(trip, "round trip "+secondsText(*p.RTTMinS))
		if *p.JitterS > 0.02**p.RTTMinS {
			trip = append(trip, "jitter "+secondsText(*p.JitterS))
		}
	}
	if p.RTTLoadedS != nil {
		trip = append(trip, secondsText(*p.RTTLoadedS)+" under load")
	}
	if p.MSSBytes != nil {
		trip = append(trip, fmt.Sprintf("MSS %d", *p.MSSBytes))
	}
	if p.PathMTUBytes != nil {
		trip = append(trip, fmt.Sprintf("path MTU %d", *p.PathMTUBytes))
	}
	t.row("path", strings.Join(trip, ", "))
	if p.BottleneckBps == nil {
		return
	}
	carries := "carries "
	if p.AtLeast {
		carries = "carries at least "
	}
	t.row("", fmt.Sprintf("%s%s at the IP layer, %s of payload", carries, units.Rate(*p.BottleneckBps), units.Rate(*p.CapacityBps)))
	segments := ""
	if p.MSSBytes != nil {
		segments = fmt.Sprintf(" = %d × %d", *p.WindowBytes / *p.MSSBytes, *p.MSSBytes)
	}
	t.row("", fmt.Sprintf("so %s have to be in flight; the model's window is %s%s", units.Size(*p.BDPBytes), units.Size(*p.WindowBytes).Exact(), segments))
}

func (m *TuneMeasured) text() string {
	text := units.Rate(m.MedianBps).String()
	runs := fmt.Sprintf("%d runs", m.Runs)
	if m.Runs == 1 {
		runs = "one run"
	}
	if m.CI95Bps != nil {
		runs = fmt.Sprintf("%s to %s, %s", units.Rate(m.CI95Bps[0]), units.Rate(m.CI95Bps[1]), runs)
	}
	return text + "   (" + runs + ")"
}

// tried is all trials of one window together.
type tried struct {
	label, note string
	effective   int
	automatic   bool
	goodputs    []float64
	limiters    []string
}

func (d *TuneDirection) tried() (all []tried) {
	byLabel := map[int]int{}
	for _, t := range d.Trials {
		if t.Remedy != "" {
			continue
		}
		asked, effective := value(t.WindowBytes), value(t.EffectiveBytes)
		i, ok := byLabel[asked]
		if !ok {
			i = len(all)
			byLabel[asked] = i
			all = append(all, tried{effective: effective, automatic: t.Automatic, label: exact(effective)})
			var notes []string
			if t.Automatic {
				notes = append(notes, "automatic, as it is")
			}
			if t.Clipped {
				notes = append(notes, "asked "+exact(asked)+", clipped")
			}
			if !t.Automatic && d.Chosen != nil && value(d.Chosen.WindowBytes) == effective {
				notes = append(notes, "chosen")
			}
			all[i].note = strings.Join(notes, ", ")
		}
		all[i].goodputs = append(all[i].goodputs, t.GoodputBps)
		all[i].limiters = append(all[i].limiters, t.Limiter)
	}
	slices.SortStableFunc(all, func(a, b tried) int {
		if a.automatic != b.automatic {
			return map[bool]int{true: -1, false: 1}[a.automatic]
		}
		return cmp.Compare(a.effective, b.effective)
	})
	return all
}

const longestBar = 30

func (d *TuneDirection) writeTrials(w io.Writer) {
	all := d.tried()
	best := 0.0
	for _, t := range all {
		best = max(best, stats.Median(t.goodputs))
	}
	table := newTable(0, 1, 2)
	table.row("window", "goodput", "runs", "", "limited by", "")
	for _, t := range all {
		goodput := stats.Median(t.goodputs)
		table.row(t.label, units.Rate(goodput).String(), fmt.Sprint(len(t.goodputs)), bar(goodput/best), often(t.limiters), t.note)
	}
	table.write(w, "    ")
}

func (d *TuneDirection) writeRemedies(w io.Writer) {
	if len(d.Remedies) == 0 {
		return
	}
	table := newTable(1, 2)
	for _, r := range d.Remedies {
		verdict := "makes no difference that was shown"
		switch {
		case r.CI95[0] >= 1:
			verdict = "helps"
		case r.CI95[1] <= 1:
			verdict = "harms"
		}
		table.row(r.Name, units.Rate(r.GoodputBps).String(), "× "+factor(r.Factor), fmt.Sprintf("(× %s to × %s)", factor(r.CI95[0]), factor(r.CI95[1])), verdict)
	}
	fmt.Fprintln(w, "\n  tried besides, once each")
	table.write(w, "    ")
}

func (d *TuneDirection) verdictText() string {
	switch {
	case d.Chosen != nil && !d.Chosen.Automatic:
		return fmt.Sprintf("a window of %s: %s", units.Size(*d.Chosen.WindowBytes).Exact(), d.Reason)
	case d.Verdict == search.NoChange:
		return d.Reason
	}
	return "inconclusive, no change: " + d.Reason
}

// worthDoing is what else follows where a window is not the answer, or not all of it: the
// remedies that were shown to help by a tenth, also beyond what the window gives, and what
// the limiter calls for.
func (d *TuneDirection) worthDoing() (lines []string) {
	var chosen float64
	if d.After != nil {
		chosen = d.After.MedianBps
	}
	for _, r := range d.Remedies {
		if r.CI95[0] >= 1 && r.Factor >= 1.1 && r.GoodputBps >= 1.1*chosen {
			lines = append(lines, fmt.Sprintf("%s, which gave %s (× %s)", r.Name, units.Rate(r.GoodputBps), factor(r.Factor)))
		}
	}
	if r := limiter.Remedy(d.Before.Verdict); d.Chosen == nil && r != "" {
		lines = append(lines, r)
	}
	return lines
}

func (d *TuneDirection) writeSettings(w io.Writer) {
	if d.Chosen == nil || d.Chosen.Automatic {
		return
	}
	sends := map[string]bool{"near": d.Direction == transfer.Up, "far": d.Direction == transfer.Down}
	for _, host := range []string{"near", "far"} {
		name, role, option, buffer := "this host", "receiver", "SO_RCVBUF", d.Chosen.ReceiveBufferBytes
		if host == "far" {
			name = "the far host"
		}
		if sends[host] {
			role, option, buffer = "sender", "SO_SNDBUF", d.Chosen.SendBufferBytes
		}
		table := newTable()
		system := ""
		for _, s := range d.Settings {
			if s.Host != host {
				continue
			}
			where := s.Where
			if s.Restart {
				where += ", after a restart"
			}
			table.row(s.Name+" = "+s.Value, where)
			system = ", " + s.Target
		}
		if buffer != nil {
			table.row(fmt.Sprintf("%s = %d", option, *buffer), "in a program that sets its own, before connect() or listen()")
		}
		if len(table.rows) > 0 {
			fmt.Fprintf(w, "\n  to set on %s (%s%s)\n", name, role, system)
			table.write(w, "    ")
		}
	}
}

func (f *TuneFile) text() string {
	text := units.Size(f.Bytes).String() + " take " + long(f.BeforeS)
	if f.AfterS < f.BeforeS {
		text += " before, " + long(f.AfterS) + " after"
	}
	return text
}

// long prints a time that may last for days.
func long(s float64) string {
	d := time.Duration(s * float64(time.Second))
	switch {
	case d < 100*time.Second:
		return units.Time(d)
	case d < time.Hour:
		return fmt.Sprintf("%d min %02d s", int(d.Minutes()), int(d.Seconds())%60)
	}
	return fmt.Sprintf("%d h %02d min", int(d.Hours()), int(d.Minutes())%60)
}

// bar draws a share with eighths of a cell.
func bar(share float64) string {
	eighths := int(share*longestBar*8 + 0.5)
	text := strings.Repeat("█", eighths/8)
	if rest := eighths % 8; rest > 0 {
		text += string([]rune(" ▏▎▍▌▋▊▉")[rest])
	}
	return text
}

// often is the most frequent of some words.
func often(words []string) string {
	count := map[string]int{}
	most := ""
	for _, w := range words {
		if count[w]++; count[w] > count[most] {
			most = w
		}
	}
	return most
}

func factor(f float64) string {
	switch {
	case f < 10:
		return fmt.Sprintf("%.2f", f)
	case f < 100:
		return fmt.Sprintf("%.1f", f)
	}
	return fmt.Sprintf("%.0f", f)
}

func exact(n int) string { return strings.TrimSuffix(units.Size(n).Exact(), " bytes") }

func value(p *int) int {
	if p == nil {
		return 0
	}
	return *p
}
