package report

import (
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestChanges_LongerRTTAtSameGoodput checks that a growth of the round trip from 20 to 31 ms at the same goodput is a
// change of the path. A growth from 0.1 to 0.2 ms is not: the hosts themselves cause that.
func TestChanges_LongerRTTAtSameGoodput(t *testing.T) {
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
				Directions: []record.Figure{{Direction: "up", GoodputBps: &bps, RTTMinS: &rtt, Limiter: "l"}}})
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

// TestDifference_OfTwoTransfers checks that the shares of time, the scatter of the rate and the settings of two
// transfers are listed if they differ.
func TestDifference_OfTwoTransfers(t *testing.T) {
	transfer := func(streams int, step float64, shares verdict.Shares) *record.Measure {
		bps, sent := 9e7, int64(3)
		d := record.Direction{Direction: "up", GoodputBps: &bps, RetransmittedSegment: &sent,
			Startup: &record.Startup{DurationS: 0.5}, Streams: make([]record.Stream, streams)}
		d.Verdict = verdict.Verdict{Limiter: "bottleneck", Shares: shares}
		for i := range 10 {
			d.Intervals = append(d.Intervals, record.Interval{StartS: float64(i), GoodputBps: bps + float64(i)*step})
		}
		return &record.Measure{Directions: []record.Direction{d}}
	}
	both := Difference(record.Header{}, transfer(1, 1e5, verdict.Shares{"bottleneck": 0.86, "slow-start": 0.137,
		"cpu": 0.003}), transfer(8, 1e6, verdict.Shares{"bottleneck": 1}))
	want := map[string][2]string{"up, time went to": {"bottleneck 86 %, slow-start 14 %", "bottleneck 100 %"},
		"up, connections":                    {"1", "8"},
		"up, 95 % interval by its intervals": {"90.2 Mbit/s to 90.8 Mbit/s", "92 Mbit/s to 98 Mbit/s"}}
	for _, d := range both.Differ {
		if w, ok := want[d.Name]; !ok || *d.First != w[0] || *d.Second != w[1] {
			t.Errorf("%s: %s and %s", d.Name, *d.First, *d.Second)
		}
		delete(want, d.Name)
	}
	if len(want) > 0 {
		t.Errorf("not listed: %v", want)
	}
}

func TestDifference_OfTwoLoads(t *testing.T) {
	one := &record.MeasureRequests{Method: "rr", RequestBytes: 200, ResponseBytes: 1000, Concurrency: 1, RequestsPerS: 900}
	two := &record.MeasureRequests{Method: "crr", RequestBytes: 200, ResponseBytes: 4096, Concurrency: 1,
		RequestsPerS: 300}
	d := Difference(record.Header{}, one, two)
	var names []string
	for _, v := range d.Differ {
		names = append(names, v.Name)
	}
	if !slices.Equal(names, []string{"connections", "responses"}) || len(d.Directions) != 1 ||
		*d.Directions[0].Second.RequestsPerS != 300 {
		t.Errorf("%v, %+v", names, d.Directions)
	}
}
