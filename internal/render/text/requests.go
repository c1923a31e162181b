package text

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// MeasureRequests prints a load of requests.
func MeasureRequests(w io.Writer, m *record.MeasureRequests) {
	switch {
	case m.Turns == nil:
		writeParts(w, part{render.Answer, m.Peer + ": no request was answered."})
	default:
		writeRequests(w, m.Peer, &m.Requests)
	}
	spaceAfter(w, 1)
	t := newTable()
	t.row("peer", m.Peer)
	t.row("near", HostText(m.Near))
	t.row("far", HostText(m.Far))
	t.row("load", loadText(m))
	t.row("rate", rateText(m))
	if m.NotStarted > 0 {
		t.row("", Thousands(m.NotStarted)+
			" requests were due and had no free connection until the end; the times leave them out")
	}
	if m.Failed > 0 {
		t.row("", counted(m.Failed, "connection")+" failed")
	}
	if len(m.Statuses) > 0 {
		t.row("statuses", statusesText(m.Statuses))
	}
	if m.RTTMinS != nil {
		t.row("round trip", SecondsText(*m.RTTMinS)+" least")
	}
	for _, warning := range m.Warnings {
		t.row("note", warning)
	}
	if m.Interrupted {
		t.row("interrupted", "these figures are of the part that was measured")
	}
	t.write(w, "")
	writeRequestsCriteria(w, m.Criteria)
	if m.Turns != nil {
		fmt.Fprintln(w)
		writeTurns(w, &m.Requests)
	}
}

func loadText(m *record.MeasureRequests) string {
	text := fmt.Sprintf("%s requests, %s responses, %d at a time", units.Size(m.RequestBytes),
		units.Size(m.ResponseBytes), m.Concurrency)
	if m.OfferedPerS != nil {
		text += ", " + perSecond(*m.OfferedPerS) + " asked"
	}
	if m.Method == "crr" {
		text += ", each on a new connection"
	}
	return text
}

func rateText(m *record.MeasureRequests) string {
	text := perSecond(m.RequestsPerS)
	if m.ConnectionsPerS != nil {
		text += fmt.Sprintf(", %s connections/s", number(*m.ConnectionsPerS))
	}
	return text + " for " + SecondsText(m.DurationS)
}

// statusesText lists status codes, and says how many responses were no success.
func statusesText(all []record.StatusCount) string {
	var counts []string
	var unsuccessful int64
	for _, s := range all {
		counts = append(counts, fmt.Sprintf("%s × %d", Thousands(s.Count), s.Status))
		if s.Status/100 != 2 {
			unsuccessful += s.Count
		}
	}
	text := strings.Join(counts, ", ")
	if unsuccessful > 0 {
		text += fmt.Sprintf(": %s without success, which the times include", counted(unsuccessful, "response"))
	}
	return text
}

func perSecond(v float64) string { return number(v) + " requests/s" }

// number formats a rate of things with three digits or more.
func number(v float64) string {
	if v >= 100 {
		return Thousands(int64(v + 0.5))
	}
	return strconv.FormatFloat(v, 'g', 3, 64)
}
