package report

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Host is an end as a report names it.
type Host struct {
	Address    string `json:"address,omitempty"`
	Kernel     string `json:"kernel,omitempty"`
	Congestion string `json:"congestion,omitempty"`
}

// Measure is the object that `measure --json` prints.
type Measure struct {
	Header
	Peer       string      `json:"peer"`
	Near       *Host       `json:"near,omitempty"`
	Far        *Host       `json:"far,omitempty"`
	Directions []Direction `json:"directions"`
	Error      *Failure    `json:"error,omitempty"`
}

// NewHost names an end; nil where it cannot be seen.
func NewHost(e *transfer.End) *Host {
	if e == nil {
		return nil
	}
	h := &Host{Kernel: e.Kernel}
	if len(e.Streams) > 0 {
		h.Address, h.Congestion = e.Streams[0].Local.Addr().String(), e.Streams[0].Congestion
	}
	return h
}

// WriteText prints the measurement for a person.
func (m *Measure) WriteText(w io.Writer) {
	t := newTable()
	t.row("peer", m.Peer)
	t.row("near", m.Near.text())
	t.row("far", m.Far.text())
	t.write(w, "")
	for i := range m.Directions {
		fmt.Fprintln(w)
		m.Directions[i].writeText(w)
	}
}

func (h *Host) text() string {
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

func (d *Direction) writeText(w io.Writer) {
	fmt.Fprintln(w, Heading(d.Direction))
	t := newTable()
	if d.GoodputBps != nil {
		t.row("goodput", d.goodputText())
	}
	if d.Startup != nil && d.SteadyGoodputBps != nil && d.Startup.DurationS > 0 {
		t.row("", fmt.Sprintf("%s after %s of startup", units.Rate(*d.SteadyGoodputBps), secondsText(d.Startup.DurationS)))
	}
	t.row("limited by", d.VerdictText())
	for _, e := range d.Evidence {
		t.row("", e.Text)
	}
	t.row("time went to", SharesText(d.Shares))
	if d.RTTMinS != nil {
		text := secondsText(*d.RTTMinS) + " least"
		switch {
		case d.RTTLoadedS != nil:
			text += ", " + secondsText(*d.RTTLoadedS) + " under load"
		case d.RTTMeanS != nil:
			text += ", " + secondsText(*d.RTTMeanS) + " mean during the transfer"
		}
		t.row("round trip", text)
	}
	d.Latency.rows(t)
	t.row("send buffer", d.Windows.SendBuffer.text())
	t.row("receive buffer", d.Windows.ReceiveBuffer.text())
	if d.RetransmittedSegment != nil {
		segments := "segments"
		if *d.RetransmittedSegment == 1 {
			segments = "segment"
		}
		t.row("retransmitted", fmt.Sprintf("%d %s", *d.RetransmittedSegment, segments))
	}
	if d.CPU != nil {
		t.row("cpu", d.CPU.text())
	}
	for _, warning := range d.Warnings {
		t.row("note", warning)
	}
	if d.Interrupted {
		t.row("interrupted", "these figures are of the part that was measured")
	}
	t.write(w, "  ")
}

func (d *Direction) goodputText() string {
	text := units.Rate(*d.GoodputBps).String()
	if d.Bytes != nil && d.DurationS != nil {
		text += fmt.Sprintf("   (%s in %s", units.Size(*d.Bytes), secondsText(*d.DurationS))
		if n := len(d.Streams); n > 1 {
			text += fmt.Sprintf(" over %d streams", n)
		}
		text += ")"
	}
	return text
}

// Heading names a direction as people read it.
func Heading(d transfer.Direction) string {
	if d == transfer.Up {
		return "UP (this host sends)"
	}
	return "DOWN (this host receives)"
}

// VerdictText is "receiver-window (fixed), high confidence".
func (d *Direction) VerdictText() string {
	text := string(d.Limiter)
	if d.Subtype != "" {
		text += " (" + d.Subtype + ")"
	}
	if len(d.Candidates) > 0 {
		names := make([]string, len(d.Candidates))
		for i, c := range d.Candidates {
			names[i] = string(c)
		}
		text += ": " + strings.Join(names, " or ")
	}
	return text + ", " + string(d.Confidence) + " confidence"
}

// SharesText lists the shares of time from the largest down, those under 1 % left out.
func SharesText(s limiter.Shares) string {
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

func (b *Buffer) text() string {
	if b == nil {
		return "cannot be seen"
	}
	asked := "automatic"
	if b.RequestedBytes != nil {
		asked = units.Size(*b.RequestedBytes).String() + " asked"
	}
	parts := []string{asked}
	if b.GrantedBytes != nil {
		granted := units.Size(*b.GrantedBytes).String() + " granted"
		if b.Clipped {
			granted += " (clipped by the system)"
		}
		parts = append(parts, granted)
	}
	if b.EffectiveBytes != nil {
		parts = append(parts, units.Size(*b.EffectiveBytes).String()+" reached")
	}
	return strings.Join(parts, ", ")
}

func secondsText(s float64) string { return units.Time(time.Duration(s * float64(time.Second))) }
