package text

import (
	"fmt"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// Compare prints the comparison.
func Compare(w io.Writer, c *record.Compare) {
	names := [2]string{"first", "second"}
	if len(c.Directions) > 0 {
		names = wayNames(&c.Directions[0])
	}
	t := newTable()
	t.row(names[0], c.Peers[0])
	t.row(names[1], c.Peers[1])
	if c.Interrupted {
		t.row("interrupted", "these figures are of the part that was measured")
	}
	t.write(w, "")
	for i := range c.Directions {
		fmt.Fprintln(w)
		writeComparedDirection(w, &c.Directions[i])
	}
}

// wayNames returns the names of both ways. The one with the smaller segments is inside a tunnel.
func wayNames(d *record.ComparedDirection) [2]string {
	one := d.First.MSSBytes
	other := d.Second.MSSBytes
	switch {
	case one == 0 || other == 0 || one == other:
		return [2]string{"first", "second"}
	case one < other:
		return [2]string{"inside", "outside"}
	}
	return [2]string{"outside", "inside"}
}

func writeComparedDirection(w io.Writer, d *record.ComparedDirection) {
	fmt.Fprintf(w, "%s, %d and %d transfers in turn\n", Heading(d.Direction), len(d.First.GoodputsBps),
		len(d.Second.GoodputsBps))
	t := newTable(1, 2)
	names := wayNames(d)
	t.row("", names[0], names[1])
	for _, line := range []struct {
		name string
		cell func(*record.ComparedWay) string
	}{
		{"goodput", comparedWayGoodputText},
		{"95 % interval", comparedWayIntervalText},
		{"limited by", comparedWayLimiterText},
		{"segment", func(w *record.ComparedWay) string { return bytesText(w.MSSBytes) }},
		{"path MTU", func(w *record.ComparedWay) string { return bytesText(w.PathMTUBytes) }},
		{"least round trip", func(w *record.ComparedWay) string { return timeText(w.RTTMin) }},
		{"mean round trip", func(w *record.ComparedWay) string { return timeText(w.RTTMean) }},
		{"retransmitted", func(w *record.ComparedWay) string { return shareText(w.ResentRatio, "%.2g %%") }},
		{"near host busy", func(w *record.ComparedWay) string { return shareText(w.NearCPURatio, "%.0f %%") }},
		{"far host busy", func(w *record.ComparedWay) string { return shareText(w.FarCPURatio, "%.0f %%") }},
	} {
		t.row(line.name, line.cell(&d.First), line.cell(&d.Second))
	}
	t.write(w, "  ")
	fmt.Fprintln(w)
	v := newTable()
	if d.Factor != nil {
		text := "× " + factor(d.Factor.Factor)
		if d.Factor.CI95 != nil {
			text += fmt.Sprintf("   (× %s to × %s with 95 %% confidence, measured in turn)", factor(d.Factor.CI95[0]),
				factor(d.Factor.CI95[1]))
		}
		v.row(names[1]+" over "+names[0], text)
	}
	if d.Cause == compare.NoDifference {
		v.row("difference", "less than 10 %, "+string(d.Confidence)+" confidence")
	} else {
		v.row("because of", comparedDirectionCauseText(d))
		v.row("", DifferenceSentence(d))
	}
	for _, e := range d.Explanations {
		v.row("  "+string(e.Cause), fmt.Sprintf("× %s to × %s: %s", factor(e.Low), factor(e.High),
			ExplanationSentence(&e)))
	}
	v.write(w, "  ")
}

func comparedDirectionCauseText(d *record.ComparedDirection) string {
	text := string(d.Cause)
	if len(d.Candidates) > 0 {
		text += ": " + verdict.Join(d.Candidates, " or ")
	}
	return text + ", " + string(d.Confidence) + " confidence"
}

const notKnown = "not known"

func comparedWayGoodputText(w *record.ComparedWay) string {
	if w.GoodputBps == nil {
		return notKnown
	}
	return units.Rate(*w.GoodputBps).String()
}

func comparedWayIntervalText(w *record.ComparedWay) string {
	if w.CI95Bps == nil {
		return notKnown
	}
	return fmt.Sprintf("%s to %s", units.Rate(w.CI95Bps[0]), units.Rate(w.CI95Bps[1]))
}

// comparedWayLimiterText names each limiter once, the most frequent first.
func comparedWayLimiterText(w *record.ComparedWay) string {
	shares := verdict.Shares{}
	for _, name := range w.Limiters {
		shares[verdict.Name(name)]++
	}
	if len(shares) == 0 {
		return notKnown
	}
	return verdict.Join(shares.Top(), ", ")
}

func bytesText(v int) string {
	if v == 0 {
		return notKnown
	}
	return fmt.Sprintf("%d bytes", v)
}

func timeText(d units.Duration) string {
	if d == 0 {
		return notKnown
	}
	return d.String()
}

func shareText(v *float64, format string) string {
	if v == nil {
		return notKnown
	}
	return fmt.Sprintf(format, 100**v)
}
