package report

import (
	"encoding/csv"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// WriteText prints the diagnosis for a person: the sentence about the worst connection,
// the table of at most rows connections, and with details or a single connection all that
// is known of each.
func (r *Diagnose) WriteText(w io.Writer, rows int, details bool) {
	if len(r.Connections) == 0 {
		fmt.Fprintf(w, "no TCP data in %s packets of %s\n", thousands(r.Packets), strings.Join(r.Files, ", "))
		r.writeWarnings(w)
		return
	}
	worst := &r.Connections[0]
	d := worst.worst()
	fmt.Fprintf(w, "%s → %s, %s in %s: %s\n\n", d.From, d.flow.To.AddrPort(), units.Size(d.Bytes), secondsText(d.DurationS), d.Sentence())
	shown := r.Connections[:min(len(r.Connections), rows)]
	t := newTable(2, 3, 4, 5)
	t.row("FROM", "TO", "BYTES", "TIME", "GOODPUT", "RTT", "LIMITED BY", "SURE", "LOST")
	for i := range shown {
		for j := range shown[i].Directions {
			shown[i].Directions[j].row(t)
		}
	}
	t.write(w, "")
	if rest := len(r.Connections) - len(shown); rest > 0 {
		fmt.Fprintf(w, "and %d more connections (--top %d shows them)\n", rest, len(r.Connections))
	}
	if details || len(r.Connections) == 1 {
		for i := range shown {
			shown[i].writeText(w)
		}
	}
	r.writeWarnings(w)
}

func (r *Diagnose) writeWarnings(w io.Writer) {
	for _, warning := range r.Warnings {
		fmt.Fprintln(w, "note: "+warning)
	}
	if r.Interrupted {
		fmt.Fprintln(w, "interrupted: this is what was read until then")
	}
}

func (d *CapturedDirection) row(t *table) {
	rtt, goodput := "–", "–"
	if d.RTTMinS != nil {
		rtt = secondsText(*d.RTTMinS)
	}
	if d.GoodputBps != nil {
		goodput = units.Rate(*d.GoodputBps).String()
	}
	t.row(d.From, d.flow.To.AddrPort().String(), units.Size(d.Bytes).String(), secondsText(d.DurationS), goodput, rtt,
		d.limiterText(), string(d.Confidence), secondsText(d.LostS))
}

func (d *CapturedDirection) limiterText() string {
	text := string(d.Limiter)
	if d.Subtype != "" {
		text += " (" + d.Subtype + ")"
	}
	if len(d.Candidates) > 0 {
		text += ": " + names(d.Candidates[:min(2, len(d.Candidates))], ", ")
	}
	return text
}

func (c *CapturedConnection) writeText(w io.Writer) {
	fmt.Fprintf(w, "\n%s → %s  (%s, captured near: %s)\n", c.Client, c.Server, c.StartedAt.Format("2006-01-02 15:04:05.000 MST"), c.Vantage)
	t := newTable()
	if h := c.Handshake; h != nil {
		t.row("handshake", h.text())
	}
	for _, n := range c.Notes {
		t.row("note", n)
	}
	t.write(w, "  ")
	for i := range c.Directions {
		c.Directions[i].writeText(w)
	}
}

func (h *CapturedHandshake) text() string {
	offer := func(what string, m map[string]int) string {
		var parts []string
		for _, end := range []string{"client", "server"} {
			if v, ok := m[end]; ok {
				parts = append(parts, fmt.Sprintf("%d (%s)", v, end))
			}
		}
		if len(parts) == 0 {
			return "no " + what
		}
		return what + " " + strings.Join(parts, ", ")
	}
	text := offer("MSS", h.MSS) + "; " + offer("window scale", h.WindowScale)
	for what, v := range map[string]*bool{"SACK": h.SACK} {
		text += "; " + what + " " + yesNo(v)
	}
	return text + "; timestamps " + yesNo(h.Timestamps)
}

func yesNo(v *bool) string {
	switch {
	case v == nil:
		return "not known"
	case *v:
		return "yes"
	}
	return "no"
}

func (d *CapturedDirection) writeText(w io.Writer) {
	fmt.Fprintf(w, "  FROM %s\n", d.From)
	t := newTable()
	t.row("sent", fmt.Sprintf("%s in %s, %s segments, %s sent again", units.Size(d.Bytes).Exact(), secondsText(d.DurationS), thousands(d.Segments), thousands(d.RetransmittedSegment)))
	if d.GoodputBps != nil {
		t.row("goodput", units.Rate(*d.GoodputBps).String())
	}
	if d.RTTMinS != nil {
		t.row("round trip", fmt.Sprintf("%s least, %s most", secondsText(*d.RTTMinS), secondsText(*d.RTTMaxS)))
	}
	if d.WindowMaxBytes != nil {
		t.row("window", fmt.Sprintf("%s at most; %s outstanding at most", units.Size(*d.WindowMaxBytes).Exact(), units.Size(d.OutstandingMaxBytes).Exact()))
	}
	t.row("limited by", fmt.Sprintf("%s, %s confidence", d.limiterText(), d.Confidence))
	for _, e := range d.Evidence {
		t.row("", e.Text)
	}
	t.row("time went to", SharesText(d.Shares))
	if p := d.Prediction; p != nil {
		t.row("change", p.Fix)
		t.row("expect", p.text())
		for _, s := range d.Settings {
			for _, line := range s.text() {
				t.row("to set", line)
			}
		}
	} else if fix := limiter.Remedy(d.Verdict); fix != "" {
		t.row("change", fix)
	}
	t.write(w, "    ")
}

// WriteCSV prints a line for each direction.
func (r *Diagnose) WriteCSV(w io.Writer) error {
	out := csv.NewWriter(w)
	out.Write([]string{"client", "server", "from", "started_at", "bytes", "duration_s", "goodput_bps", "rtt_min_s", "retransmitted_segments",
		"window_max_bytes", "limiter", "subtype", "confidence", "share", "lost_s", "vantage", "fix", "expect_low_bps", "expect_high_bps"})
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', 9, 64)
	}
	for i := range r.Connections {
		c := &r.Connections[i]
		for j := range c.Directions {
			d := &c.Directions[j]
			window, fix, low, high := "", limiter.Remedy(d.Verdict), "", ""
			if d.WindowMaxBytes != nil {
				window = strconv.FormatInt(*d.WindowMaxBytes, 10)
			}
			if p := d.Prediction; p != nil {
				fix, low = p.Fix, number(&p.LowBps)
				if !p.AtLeast {
					high = number(&p.HighBps)
				}
			}
			share := d.Shares[d.Limiter]
			out.Write([]string{c.Client, c.Server, d.From, c.StartedAt.Format("2006-01-02T15:04:05.000000Z"), strconv.FormatInt(d.Bytes, 10),
				number(&d.DurationS), number(d.GoodputBps), number(d.RTTMinS), strconv.FormatInt(d.RetransmittedSegment, 10), window,
				string(d.Limiter), d.Subtype, string(d.Confidence), number(&share), number(&d.LostS), c.Vantage, fix, low, high})
		}
	}
	out.Flush()
	return out.Error()
}

// thousands prints a number with separators.
func thousands(n int64) string { return strings.TrimSuffix(units.Size(n).Exact(), " bytes") }
