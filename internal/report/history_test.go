package report

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// TestAnotherWayIsAChange: a path whose round trip grew from 20 to 31 ms with the goodput as
// it was; one that grew from 0.1 to 0.2 ms is a host's own work.
func TestAnotherWayIsAChange(t *testing.T) {
	for _, c := range []struct {
		before, after float64
		changes       int
	}{{0.020, 0.031, 1}, {0.0001, 0.0002, 0}} {
		var runs []record.HistoryRun
		for i := range 70 {
			bps, rtt := 9e7+float64(i%7)*1e5, c.before
			if i >= 60 {
				rtt = c.after
			}
			rtt *= 1 + 0.01*float64(i%5)
			runs = append(runs, record.HistoryRun{PathKey: "k", Far: "b", Outcome: record.Done,
				StartedAt:  time.Unix(int64(i)*3600, 0),
				Directions: []record.HistoryFigure{{Direction: "up", GoodputBps: &bps, RTTMinS: &rtt, Limiter: "l"}}})
		}
		got := Changes(record.Header{}, runs).Changes
		if len(got) != c.changes {
			t.Fatalf("from %v to %v s: %+v", c.before, c.after, got)
		}
		if c.changes > 0 && (got[0].Metric != "rtt" || !got[0].At.Equal(time.Unix(60*3600, 0)) ||
			*got[0].AfterRTTMinS < 0.03 ||
			got[0].Confidence != "high") {
			t.Errorf("%+v", got[0])
		}
	}
}
