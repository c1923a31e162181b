package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Measure prints the measurement.
func Measure(w io.Writer, m *record.Measure) {
	for i := range m.Directions {
		writeHeadline(w, measureHeadline(&m.Directions[i]))
	}
	spaceAfter(w, len(m.Directions))
	t := newTable()
	t.row("peer", m.Peer)
	t.row("near", HostText(m.Near))
	t.row("far", HostText(m.Far))
	t.write(w, "")
	for i := range m.Directions {
		fmt.Fprintln(w)
		writeDirection(w, &m.Directions[i])
	}
	writeCriteria(w, m.Criteria)
}

// HostText formats a host as its address, kernel and congestion control.
func HostText(h *record.Host) string {
	if h == nil {
		return "cannot be seen"
	}
	var parts []string
	for _, p := range []string{h.Address, h.Kernel, h.Congestion} {
		if p != "" {
			parts = append(parts, p)
		}
	}
	return strings.Join(parts, ", ")
}

func writeDirection(w io.Writer, d *record.Direction) {
	fmt.Fprintln(w, Heading(d.Direction))
	t := newTable()
	switch {
	case d.GoodputBps != nil:
		t.row("goodput", directionGoodputText(d))
	case d.Bytes != nil:
		t.row("goodput", fmt.Sprintf("not known: all %s came at one instant", units.Size(*d.Bytes)))
	}
	if d.Startup != nil && d.SteadyGoodputBps != nil && d.Startup.DurationS > 0 {
		t.row("", fmt.Sprintf("%s after %s of startup", units.Rate(*d.SteadyGoodputBps), SecondsText(d.Startup.DurationS)))
	}
	t.row("limited by", Verdict(d))
	for _, e := range d.Evidence {
		t.row("", Sentence(e))
	}
	t.row("time went to", SharesText(d.Shares))
	if said := doIf(d.Fix, d.Verdict); said != "" {
		t.row("do", said)
		operatorsRow(t, d.Limiter, d.LostAt)
	}
	if d.RTTMin > 0 {
		text := d.RTTMin.String() + " least"
		switch {
		case d.RTTLoaded > 0:
			text += ", " + d.RTTLoaded.String() + " under load"
		case d.RTTMean > 0:
			text += ", " + d.RTTMean.String() + " mean during the transfer"
		}
		t.row("round trip", text)
	}
	latencyRows(d.Latency, t)
	t.row("send buffer", bufferText(d.Windows.SendBuffer))
	t.row("receive buffer", bufferText(d.Windows.ReceiveBuffer))
	if d.RetransmittedSegment != nil {
		segments := "segments"
		if *d.RetransmittedSegment == 1 {
			segments = "segment"
		}
		t.row("retransmitted", fmt.Sprintf("%d %s", *d.RetransmittedSegment, segments))
	}
	lostTable(t, d)
	if d.CPU != nil {
		t.row("cpu", cpuText(d.CPU))
	}
	for _, warning := range d.Warnings {
		t.row("note", warning)
	}
	if d.Interrupted {
		t.row("interrupted", "these figures are of the part that was measured")
	}
	t.write(w, "  ")
}

func directionGoodputText(d *record.Direction) string {
	text := units.Rate(*d.GoodputBps).String()
	if d.Bytes != nil && *d.Bytes == 0 {
		return text + "   (nothing arrived)"
	}
	if d.Bytes != nil && d.DurationS != nil {
		text += fmt.Sprintf("   (%s in %s", units.Size(*d.Bytes), SecondsText(*d.DurationS))
		if n := len(d.Streams); n > 1 {
			text += fmt.Sprintf(" over %d streams", n)
		}
		text += ")"
	}
	return text
}

// Heading formats the heading of a direction.
func Heading(d transfer.Direction) string {
	if d == transfer.Up {
		return "UP (this host sends)"
	}
	return "DOWN (this host receives)"
}

// Verdict formats "receiver-window (fixed), high confidence".
func Verdict(d *record.Direction) string {
	text := string(d.Limiter) + verdict.Suffix(d.Subtype)
	if len(d.Candidates) > 0 {
		text += ": " + verdict.Join(d.Candidates, " or ")
	}
	return text + ", " + string(d.Confidence) + " confidence"
}

// MeasureHeadline returns the first line about a measured direction: its rate, its limiter and the remedy.
func MeasureHeadline(d *record.Direction) string { return measureHeadline(d).String() }

// SharesText lists the shares of time from the largest down, those under 1 % left out.
func SharesText(s verdict.Shares) string {
	var parts []string
	for _, n := range s.Top() {
		if s[n] >= 0.01 {
			parts = append(parts, fmt.Sprintf("%s %.0f %%", n, 100*s[n]))
		}
	}
	if len(parts) == 0 {
		return "nothing measured"
	}
	return strings.Join(parts, " · ")
}

func bufferText(b *record.Buffer) string {
	if b == nil {
		return "cannot be seen"
	}
	asked := "automatic"
	if b.RequestedBytes > 0 {
		asked = units.Size(b.RequestedBytes).String() + " asked"
	}
	parts := []string{asked}
	if b.GrantedBytes > 0 {
		granted := units.Size(b.GrantedBytes).String() + " granted"
		if b.RequestedBytes == 0 {
			granted = units.Size(b.GrantedBytes).String() + " allocated"
		}
		if b.Clipped {
			granted += " (clipped by the system)"
		}
		if b.Forced {
			granted += " (forced past the system's ceiling, as root)"
		}
		parts = append(parts, granted)
	}
	if b.EffectiveBytes > 0 {
		largest := "at most " + units.Size(b.EffectiveBytes).String() + " used"
		if b.GrantedBytes > 0 && b.EffectiveBytes > b.GrantedBytes {
			largest += " (the system checks the size only for a new segment)"
		}
		parts = append(parts, largest)
	}
	return strings.Join(parts, ", ")
}

func SecondsText(s float64) string { return units.Time(units.Seconds(s)) }
