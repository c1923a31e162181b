package text

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// limiterPath returns LIMITER/SUBTYPE of a document with its label for people.
func limiterPath(path string) string {
	limiter, subtype, _ := strings.Cut(path, "/")
	return verdict.LimiterPath(verdict.Name(limiter), subtype)
}

// criterionFound returns the limiter or the places of loss of a direction.
func criterionFound(c *record.Criterion) string {
	switch {
	case c.Limiter != "":
		return "limited by " + limiterPath(c.Limiter)
	case c.WaitsFor != "":
		return "the program waits most for " + c.WaitsFor
	case slices.ContainsFunc(c.Refused, func(one string) bool { return strings.HasPrefix(one, "waits:") }):
		if !c.Passed {
			return "the waits of its program are not known"
		}
		return "its program does not limit it"
	case len(c.LostAt) > 0:
		return "places of loss: " + strings.ReplaceAll(strings.Join(c.LostAt, ", "), record.Elsewhere,
			"not watched")
	case c.Passed:
		return "nothing was lost"
	}
	return "places of loss are not known"
}

// writeCriteria prints the pass or fail of each criterion.
func writeCriteria(w io.Writer, all []record.Criterion) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(w)
	t := newTable()
	for _, c := range all {
		verdict := "FAIL"
		said := criterionFound(&c) + ", refused: "
		for i, refused := range c.Refused {
			if i > 0 {
				said += ", "
			}
			said += limiterPath(refused)
		}
		if c.Passed {
			verdict = "pass"
		}
		if c.Criterion == "fail-below" {
			said = "goodput is not known"
			if c.MeasuredBps != nil {
				said = units.Rate(*c.MeasuredBps).String() + " of goodput"
			}
			said += ", at least " + units.Rate(c.LeastBps).String() + " asked"
		}
		t.row(verdict, string(c.Direction), said)
	}
	t.write(w, "")
}

// measureCSV prints a line for each direction.
func measureCSV(w io.Writer, m *record.Measure) error {
	out := NewCSVWriter(w)
	out.Write([]string{"peer", "direction", "started_at", "goodput_bps", "steady_goodput_bps", "duration_s", "bytes",
		"retransmitted_segments", "rtt_min_s", "rtt_mean_s", "mss_bytes", "limiter", "subtype", "confidence"})
	for i := range m.Directions {
		d := &m.Directions[i]
		out.Write([]string{m.Peer, string(d.Direction), m.StartedAt.Format(csvTime), known(d.GoodputBps),
			known(d.SteadyGoodputBps),
			known(d.DurationS), known(d.Bytes), known(d.RetransmittedSegment), figure(d.RTTMin.Seconds()),
			figure(d.RTTMean.Seconds()), figure(d.MSSBytes),
			string(d.Limiter), d.Subtype, string(d.Confidence)})
	}
	out.Flush()
	return out.Error()
}

// measureUDPCSV prints a line for each direction.
func measureUDPCSV(w io.Writer, m *record.MeasureUDP) error {
	out := NewCSVWriter(w)
	out.Write([]string{"peer", "direction", "started_at", "offered_bps", "goodput_bps", "duration_s", "bytes",
		"sent_datagrams",
		"received_datagrams", "lost_datagrams", "loss_ratio", "reordered_datagrams", "jitter_s"})
	for i := range m.Directions {
		d := &m.Directions[i]
		out.Write([]string{m.Peer, string(d.Direction), m.StartedAt.Format(csvTime), known(d.OfferedBps),
			known(&d.GoodputBps),
			known(&d.DurationS), known(&d.Bytes), known(&d.Sent), known(&d.Received), known(&d.Lost), known(&d.LossRatio),
			known(d.Reordered), known(&d.JitterS)})
	}
	out.Flush()
	return out.Error()
}

const csvTime = "2006-01-02T15:04:05.000Z"

// figure formats a figure in full; "" for 0, which is not known.
func figure[T int | float64](v T) string {
	if v <= 0 {
		return ""
	}
	return known(&v)
}

// known formats a figure in full; "" for nil.
func known[T int | int64 | float64](v *T) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(float64(*v), 'f', -1, 64)
}
