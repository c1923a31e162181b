package text

import (
	"fmt"
	"io"

	"github.com/fullpipe-net/fullpipe/internal/predict"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Predict prints the prediction.
func Predict(w io.Writer, d *record.Predict) {
	t := newTable()
	t.wraps = true
	t.row("path", d.Path.Text)
	t.row("goodput", predictRangeText(d.Range))
	t.row("limited by", predictLimiterText(d))
	if d.Time.Typical > 0 {
		t.row("time", fmt.Sprintf("%s, %s to %s", d.Time.Typical, d.Time.Low, d.Time.High))
	}
	if n := d.Next; n != nil {
		text := predictRangeText(n.Range)
		if n.Limiter != "" {
			text += ", limited by " + string(n.Limiter)
		}
		label := "without it"
		switch d.Limiter {
		case verdict.Bottleneck:
			label = "on twice the line"
		case verdict.Mixed:
			label = "without them"
		}
		t.row(label, text)
	}
	if d.BDPBytes > 0 {
		t.row("bandwidth-delay product", both(d.BDPBytes))
	}
	t.row("receive window", bound(d.WindowBytes))
	t.row("limit of data in flight", bound(d.InFlightBytes))
	for _, warning := range d.Warnings {
		t.row("note", warning.Text)
	}
	t.write(w, "")
	if len(d.Caps) == 0 {
		return
	}
	fmt.Fprintln(w, "\nthe rate that each would allow alone")
	caps := newTable(1)
	caps.wraps = true
	for _, c := range d.Caps {
		caps.row(string(c.Limiter), units.Rate(c.Bps).String(), c.Text)
	}
	caps.write(w, "  ")
}

func predictRangeText(r predict.Range) string {
	if r.Typical == 0 {
		return notKnown
	}
	return fmt.Sprintf("%s, %s to %s", units.Rate(r.Typical), units.Rate(r.Low), units.Rate(r.High))
}

func predictLimiterText(d *record.Predict) string {
	text := string(d.Limiter) + verdict.Suffix(d.Subtype)
	switch {
	case d.Limiter == verdict.Mixed && len(d.Candidates) > 1:
		return text + ": " + verdict.Join(d.Candidates, ", ") + " together; none alone would " +
			"give 10 % more"
	case d.Limiter == verdict.Mixed:
		return text + ": none of them alone would give 10 % more"
	case len(d.Candidates) > 1:
		return text + ", not sure: " + verdict.Join(d.Candidates, " or ")
	case !d.Sure:
		return text + ", not sure"
	}
	return text
}

func bound(bytes int) string {
	if bytes == 0 {
		return "none"
	}
	return units.Size(bytes).Exact()
}
