package text

import (
	"io"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// DiagnoseCSV prints a line for each direction.
func DiagnoseCSV(w io.Writer, r *record.Diagnose) error {
	out := NewCSVWriter(w)
	out.Write([]string{"client", "server", "from", "started_at", "bytes", "duration_s", "goodput_bps", "rtt_min_s",
		"retransmitted_segments",
		"window_max_bytes", "limiter", "subtype", "confidence", "share", "lost_s", "vantage", "fix", "expect_low_bps",
		"expect_high_bps"})
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
			window := ""
			fix := CapturedDirectionRemedy(d)
			low := ""
			high := ""
			if d.WindowMaxBytes != nil {
				window = strconv.FormatInt(*d.WindowMaxBytes, 10)
			}
			if p := d.Prediction; p != nil {
				low = number(&p.LowBps)
				if !p.AtLeast {
					high = number(&p.HighBps)
				}
			}
			share := d.Shares[d.Limiter]
			out.Write([]string{c.Client, c.Server, d.From, c.StartedAt.Format("2006-01-02T15:04:05.000000Z"),
				strconv.FormatInt(d.Bytes, 10),
				number(&d.DurationS), number(d.GoodputBps), number(d.RTTMinS), strconv.FormatInt(d.RetransmittedSegment, 10),
				window,
				string(d.Limiter), d.Subtype, string(d.Confidence), number(&share), number(&d.LostS), c.Vantage, fix, low, high})
		}
	}
	out.Flush()
	return out.Error()
}

// Thousands prints a number with separators.
func Thousands(n int64) string { return strings.TrimSuffix(units.Size(n).Exact(), " bytes") }
