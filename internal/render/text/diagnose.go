package text

import (
	_ "embed"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// CapturedDirectionSentence returns the verdict in one line: the limiter, the remedy and the expected gain.
func CapturedDirectionSentence(d *record.CapturedDirection) string {
	text := "limited by " + string(d.Limiter)
	switch d.Limiter {
	case verdict.Unknown:
		text = "its limiter is not known"
	case verdict.Mixed:
		text = "limited by several things in turn"
	}
	text += verdict.Suffix(d.Subtype)
	if len(d.Candidates) > 0 {
		text += ": " + verdict.Join(d.Candidates, " or ")
	}
	if len(d.Evidence) > 0 {
		text += " because " + Sentence(d.Evidence[0])
	}
	if p := d.Prediction; p != nil {
		text += "; " + CapturedDirectionRemedy(d) + "; expect " + capturedPredictionText(p)
	} else if fix := CapturedDirectionRemedy(d); fix != "" {
		text += "; " + fix
	}
	return text + "."
}

func capturedPredictionText(p *record.CapturedPrediction) string {
	if p.AtLeast {
		return fmt.Sprintf("at least %s (the next limiter is not known)", units.Rate(p.LowBps))
	}
	return fmt.Sprintf("%s to %s", units.Rate(p.LowBps), units.Rate(p.HighBps))
}

func RateText(bps *float64) string {
	if bps == nil {
		return "–"
	}
	return units.Rate(*bps).String()
}

// CapturedConnectionRowID and the next functions serve the page's template.
func CapturedConnectionRowID(c *record.CapturedConnection) string {
	return c.Client + "-" + c.Server + "-" + c.StartedAt.Format("150405.000000000")
}

// CapturedDirectionLimited formats the limiter with its subtype and candidates.
func CapturedDirectionLimited(d *record.CapturedDirection) string {
	return capturedDirectionLimiterText(d)
}

// CapturedConnectionHandshakeText formats the handshake in one line.
func CapturedConnectionHandshakeText(c *record.CapturedConnection) string {
	if c.Handshake == nil {
		return "not captured"
	}
	return capturedHandshakeText(c.Handshake)
}

// CapturedDirectionRemedy returns the first remedy.
func CapturedDirectionRemedy(d *record.CapturedDirection) string {
	v := d.Verdict // of a document without fixes
	if d.Prediction != nil && d.Prediction.Limiter != "" {
		v.Limiter = d.Prediction.Limiter
	}
	return doAbout(d.Fix, v)
}

// ConnectionsLeftOut formats the numbers of connections seen, followed and judged; "" if all were judged.
func ConnectionsLeftOut(r *record.Diagnose) string {
	if r.Seen == 0 {
		return ""
	}
	return fmt.Sprintf("%s connections were seen: those with the most bytes were followed (%s) and judged (%s)",
		Thousands(r.Seen), Thousands(r.Followed), Thousands(int64(len(r.Connections))))
}

// Diagnose prints the diagnosis: the sentence about the worst connection, a table of at
// most rows connections, and with details or a single connection all figures of each.
func Diagnose(w io.Writer, r *record.Diagnose, rows int, details bool) {
	if r.Trust != nil {
		fmt.Fprintln(w, "reliable: "+TrustLine(r.Trust))
	}
	if left := ConnectionsLeftOut(r); left != "" {
		fmt.Fprintln(w, left)
	}
	if len(r.Connections) == 0 && r.Unmatched > 0 {
		fmt.Fprintf(w, "no connection matches --host and --port: %s TCP segments of other connections are in %s\n",
			Thousands(r.Unmatched), strings.Join(r.Files, ", "))
		diagnoseWriteWarnings(w, r)
		return
	}
	if len(r.Connections) == 0 {
		fmt.Fprintf(w, "no TCP data in %s packets of %s\n", Thousands(r.Packets), strings.Join(r.Files, ", "))
		diagnoseWriteWarnings(w, r)
		return
	}
	details = details || len(r.Connections) == 1
	listed := r.Connections
	if !details { // requests to one server have one answer
		listed = slices.DeleteFunc(slices.Clone(listed), func(c record.CapturedConnection) bool {
			return r.ServerOf(&c) != nil
		})
	}
	shown := listed[:min(len(listed), rows)]
	worst := &r.Connections[0]
	switch server := r.ServerOf(worst); {
	case server != nil:
		writeRequests(w, fmt.Sprintf("%s (%s)", server.Server, counted(server.Connections, "connection")),
			&server.Requests)
		writeTurns(w, &server.Requests)
	case r.Tiny:
		fmt.Fprintln(w, hanging(w, "", nothingToDiagnose(r)))
	case worst.Leads():
		writeRequests(w, worst.Client+" → "+worst.Server, &worst.Requests)
	default:
		writeHeadline(w, diagnoseHeadline(r, worst.Worst()))
		if !details {
			capturedWhy(worst.Worst()).write(w, "  ")
		}
	}
	fmt.Fprintln(w)
	writeServers(w, r.Servers)
	if len(shown) > 0 {
		writeConnections(w, shown)
	}
	if rest := len(listed) - len(shown); rest > 0 {
		fmt.Fprintf(w, "and %d more connections (--top %d shows them)\n", rest, len(listed))
	}
	if details {
		for i := range shown {
			writeCapturedConnection(w, &shown[i])
		}
	}
	writeRequestsCriteria(w, r.Criteria)
	diagnoseWriteWarnings(w, r)
}

// writeConnections prints the table of connections, a row for each direction.
func writeConnections(w io.Writer, shown []record.CapturedConnection) {
	t := newTable(2, 3, 4, 5)
	t.optional = []int{5, 3, 2, 7} // RTT, TIME, BYTES, SURE
	t.row("FROM", "TO", "BYTES", "TIME", "GOODPUT", "RTT", "LIMITED BY", "SURE", "TIME LOST")
	for i := range shown {
		for j := range shown[i].Directions {
			capturedDirectionRow(&shown[i].Directions[j], t)
		}
	}
	t.write(w, "")
}

// capturedWhy returns the rows of a direction's first evidence, its remedy and the expected rate.
func capturedWhy(d *record.CapturedDirection) *table {
	t := newTable()
	if len(d.Evidence) > 0 {
		t.row("because", Sentence(d.Evidence[0]))
	}
	t.row("do", CapturedDirectionRemedy(d))
	operatorsRow(t, d.Limiter, nil)
	if p := d.Prediction; p != nil {
		t.row("expect", capturedPredictionText(p))
	}
	return t
}

// nothingToDiagnose formats that all connections carried too little for a verdict.
func nothingToDiagnose(r *record.Diagnose) string {
	largest := int64(0)
	for i := range r.Connections {
		for _, d := range r.Connections[i].Directions {
			largest = max(largest, d.Bytes)
		}
	}
	subject := "of " + Thousands(max(r.Seen, int64(len(r.Connections)))) + " connections none"
	if len(r.Connections) == 1 {
		subject = "no direction of the only connection"
	}
	return fmt.Sprintf("there is nothing to diagnose: %s carried more than %s, which fits any connection's first window",
		subject, units.Size(largest))
}

func diagnoseWriteWarnings(w io.Writer, r *record.Diagnose) {
	for _, warning := range r.Warnings {
		fmt.Fprintln(w, "note: "+warning.Text)
	}
	if r.Interrupted {
		fmt.Fprintln(w, "interrupted: the result covers the capture until then")
	}
}

func capturedDirectionRow(d *record.CapturedDirection, t *table) {
	rtt := "–"
	goodput := "–"
	if d.RTTMinS != nil {
		rtt = SecondsText(*d.RTTMinS)
	}
	if d.GoodputBps != nil {
		goodput = units.Rate(*d.GoodputBps).String()
	}
	t.row(d.From, d.To, units.Size(d.Bytes).String(), CapturedDirectionTime(d), goodput, rtt,
		capturedDirectionLimiterText(d), string(d.Confidence), SecondsText(d.LostS))
}

// CapturedDirectionTime formats the time of the data and of the lost SYNs before it. TIME LOST is part of both.
func CapturedDirectionTime(d *record.CapturedDirection) string {
	text := "–" // at one instant
	if d.DurationS > 0 {
		text = SecondsText(d.DurationS)
	}
	if d.SYNWaitS > 0 {
		text += " + " + SecondsText(d.SYNWaitS) + " SYN wait"
	}
	return text
}

// capturedSpan formats the time from the first to the last data.
func capturedSpan(d *record.CapturedDirection) string {
	if d.DurationS <= 0 {
		return "at one instant"
	}
	return "in " + CapturedDirectionTime(d)
}

func capturedDirectionLimiterText(d *record.CapturedDirection) string {
	text := string(d.Limiter) + verdict.Suffix(d.Subtype)
	if len(d.Candidates) > 0 {
		text += ": " + verdict.Join(d.Candidates[:min(2, len(d.Candidates))], ", ")
	}
	return text
}

func writeCapturedConnection(w io.Writer, c *record.CapturedConnection) {
	fmt.Fprintf(w, "\n%s\n", hanging(w, "", fmt.Sprintf("%s → %s (%s, captured near: %s)", c.Client, c.Server,
		c.StartedAt.Format("2006-01-02 15:04:05.000 MST"), c.Vantage)))
	t := newTable()
	if h := c.Handshake; h != nil {
		t.row("handshake", capturedHandshakeText(h))
	}
	for _, n := range c.Notes {
		t.row("note", n.Text)
	}
	t.write(w, "  ")
	writeTurns(w, &c.Requests)
	for i := range c.Directions {
		writeCapturedDirection(w, &c.Directions[i], c.Leads())
	}
}

func capturedHandshakeText(h *record.CapturedHandshake) string {
	offer := func(option string, m map[string]int) string {
		var parts []string
		for _, end := range []string{"client", "server"} {
			if v, ok := m[end]; ok {
				parts = append(parts, fmt.Sprintf("%d (%s)", v, end))
			}
		}
		if len(parts) == 0 {
			return "no " + option
		}
		return option + " " + strings.Join(parts, ", ")
	}
	text := offer("MSS", h.MSS) + "; " + offer("window scale", h.WindowScale)
	return text + "; SACK " + yesNo(h.SACK) + "; timestamps " + yesNo(h.Timestamps)
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

// writeCapturedDirection prints a direction. Requests have a remedy of their own: a program without data to send waits
// for the other end.
func writeCapturedDirection(w io.Writer, d *record.CapturedDirection, requests bool) {
	fmt.Fprintf(w, "  FROM %s\n", d.From)
	t := newTable()
	t.row("sent", fmt.Sprintf("%s %s, %s segments, %s retransmitted", units.Size(d.Bytes).Exact(),
		capturedSpan(d), Thousands(d.Segments), Thousands(d.RetransmittedSegment)))
	if d.GoodputBps != nil {
		t.row("goodput", units.Rate(*d.GoodputBps).String())
	}
	if d.RTTMinS != nil && d.RTTMaxS != nil {
		t.row("round trip", fmt.Sprintf("%s least, %s most", SecondsText(*d.RTTMinS), SecondsText(*d.RTTMaxS)))
	}
	if d.WindowMaxBytes != nil {
		t.row("window", fmt.Sprintf("at most %s; at most %s in "+
			"flight", units.Size(*d.WindowMaxBytes).Exact(),
			units.Size(d.OutstandingMaxBytes).Exact()))
	}
	if d.Trust != nil {
		t.row("reliable", TrustLine(d.Trust))
	}
	t.row("limited by", fmt.Sprintf("%s, %s confidence", capturedDirectionLimiterText(d), d.Confidence))
	for _, e := range d.Evidence {
		t.row("", Sentence(e))
	}
	t.row("time went to", SharesText(d.Shares))
	betweenRows(t, d.Between)
	if d.Program != nil {
		t.row("program", programWindowText(d.Program))
	}
	if requests && d.Limiter == verdict.Application {
		t.write(w, "    ")
		return
	}
	if p := d.Prediction; p != nil {
		t.row("change", CapturedDirectionRemedy(d))
		t.row("expect", capturedPredictionText(p))
		for _, s := range d.Settings {
			for _, line := range capturedSettingsText(&s) {
				t.row("to set", line)
			}
		}
	} else if fix := CapturedDirectionRemedy(d); fix != "" {
		t.row("change", fix)
	}
	t.write(w, "    ")
}
