package text

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// MeasureUDP prints the measurement.
func MeasureUDP(w io.Writer, m *record.MeasureUDP) {
	headlines := 0
	for i := range m.Directions {
		if d := &m.Directions[i]; d.Limiter != "" {
			subject := fmt.Sprintf("%s %s by UDP, %.2g %% lost", units.Rate(d.GoodputBps), d.Direction, 100*d.LossRatio)
			writeHeadline(w, headline{subject: subject, bps: d.GoodputBps, verdict: verdict.Verdict{Limiter: d.Limiter,
				Confidence: d.Confidence, Candidates: d.Candidates, Evidence: d.Evidence}})
			headlines++
		}
	}
	spaceAfter(w, headlines)
	t := newTable()
	t.row("peer", m.Peer)
	t.write(w, "")
	for i := range m.Directions {
		fmt.Fprintln(w)
		writeDatagrams(w, &m.Directions[i])
	}
	writeCriteria(w, m.Criteria)
}

func writeDatagrams(w io.Writer, d *record.Datagrams) {
	fmt.Fprintln(w, Heading(d.Direction)+", UDP")
	t := newTable()
	text := units.Rate(d.GoodputBps).String()
	if d.OfferedBps != nil {
		text += " of " + units.Rate(*d.OfferedBps).String() + " offered"
	}
	t.row("goodput", fmt.Sprintf("%s   (%s in %s, datagrams of %d bytes)", text, units.Size(d.Bytes),
		SecondsText(d.DurationS), d.DatagramBytes))
	t.row("lost", fmt.Sprintf("%d of %d datagrams (%.2g %%)", d.Lost, d.Sent, 100*d.LossRatio))
	name := "lost at"
	for i := range d.LostAt {
		t.row(name, datagramsLostAt(&d.LostAt[i], d))
		name = ""
	}
	switch {
	case d.Reordered == nil || d.Duplicates == nil:
		t.row("out of order", "not reported by the far end")
	default:
		t.row("out of order", fmt.Sprintf("%d", *d.Reordered))
		t.row("came twice", fmt.Sprintf("%d", *d.Duplicates))
	}
	t.row("jitter", SecondsText(d.JitterS))
	if v := d.Variation; v != nil {
		t.row("delay above least", fmt.Sprintf("%s median, %s at 95 %%, %s at 99 %%, %s largest", SecondsText(v.MedianS),
			SecondsText(v.P95S), SecondsText(v.P99S), SecondsText(v.LargestS)))
	}
	if d.Limiter != "" {
		limited := string(d.Limiter)
		if len(d.Candidates) > 0 {
			limited += ": " + verdict.Join(d.Candidates, " or ")
		}
		t.row("limited by", fmt.Sprintf("%s, %s confidence", limited, d.Confidence))
		for _, e := range d.Evidence {
			t.row("", Sentence(e))
		}
	}
	if d.CPURatio != nil {
		t.row("cpu", cpuText(&record.CPU{NearProcess: d.CPURatio, FarProcess: d.FarCPURatio}))
	}
	for _, warning := range d.Warnings {
		t.row("note", warning)
	}
	if d.Interrupted {
		t.row("interrupted", "these figures are of the part that was measured")
	}
	t.write(w, "  ")
}

// datagramsLostAt is the sentence about a place of lost datagrams.
func datagramsLostAt(l *record.LostAt, d *record.Datagrams) string {
	share := fmt.Sprintf(": %s of %s lost datagrams", Thousands(l.Segments), Thousands(d.Lost))
	here := hereOf(d.Direction)
	switch {
	case l.Place == record.Elsewhere && l.Confidence == verdict.High:
		return "neither the receiver's socket nor this host" + share + "; the way, or the far host"
	case l.Place == record.Elsewhere:
		return "neither the receiver's socket nor a counter of this host" + share + "; the way, or the far host"
	case l.Counter != "":
		return hostOf(l, here) + " " + placeNames[l.Place] + " (" + strings.Join(lostDetails(l), ", ") + ")" + share +
			fmt.Sprintf("; confidence %s (counters of all connections)", l.Confidence)
	}
	if l.Place != "socket" {
		return hostOf(l, here) + " " + placeNames[l.Place] + " (" + strings.Join(lostDetails(l), ", ") + ")" + share
	}
	return hostOf(l, here) + " " + placeNames[l.Place] + share +
		": the program reads too slowly, or the buffer is too small"
}

func formatDatagramsAsAsked(f figures) string {
	said := "it was to send " + f.rate("asked_bps") + " and did"
	if f["lost_ratio"] > 0 {
		return said + fmt.Sprintf("; the %.2g %% that were lost cost less than a tenth", 100*f["lost_ratio"])
	}
	return said
}
