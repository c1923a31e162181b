package timeline

import (
	"cmp"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestTimeline_Gives compares windows of programs with the goodput, in segments of 1460 bytes.
func TestTimeline_Gives(t *testing.T) {
	for _, test := range []struct {
		name                        string
		window, base, goodput, link float64 // bytes, seconds, bytes/s
		want                        bool
	}{
		{"a window each round trip", 2 << 20, 0.1, 20e6, 0, true},
		{"a window in two round trips", 2 << 20, 0.1, 10.4e6, 0, false},
		{"a window in eight round trips", 22_108, 0.021, 150e3, 0, false},
		{"faster than the path", 2 << 20, 0.1, 15e6, 16e6, false},
		{"as fast as the path", 2 << 20, 0.1, 20e6, 22e6, true},
		{"no round trip", 2 << 20, 0, 20e6, 0, false},
	} {
		line := timeline{baseRTT: test.base, goodput: test.goodput, pathPace: test.link}
		if got := line.gives(test.window); got != test.want {
			t.Errorf("%s: %v", test.name, got)
		}
	}
}

// TestTimeline_PathRate gives the best rate only where it lasted for the time of the full link.
func TestTimeline_PathRate(t *testing.T) {
	for _, test := range []struct {
		capacity, delivered, took float64 // bytes/s, bytes, seconds
		key                       string
		bps                       float64
	}{
		{1e6, 9e6, 10, "best_bps", 8e6},
		{1e6, 7.7e6, 10, "best_bps", 8e6},
		{1e6, 7.6e6, 10, "mean_bps", 6.08e6},
		{1e6, 1e6, 10, "mean_bps", 0.8e6},
		{1e6, 0, 0, "best_bps", 8e6},
	} {
		line := timeline{capacity: test.capacity, time: map[verdict.Name]float64{verdict.Bottleneck: test.took},
			delivered: map[verdict.Name]float64{verdict.Bottleneck: test.delivered}}
		v := verdict.Values{}
		line.pathRate(verdict.Bottleneck, v)
		if len(v) != 1 || v[test.key] != test.bps {
			t.Errorf("%.2g bytes in %.2g s: %v", test.delivered, test.took, v)
		}
	}
}

// TestJudge_CutOutOfAConnection checks that a capture which begins in the middle of a connection does not count the
// bytes that were in flight then: the rate of a few round trips is that of the connection.
func TestJudge_CutOutOfAConnection(t *testing.T) {
	const mss = 1460
	for _, segments := range []int{8, 44} { // a window
		for _, rtt := range []int64{3 * ms, 60 * ms} {
			for _, trips := range []int64{5, 9, 30} {
				x := newTape(rtt, 0)
				each := rtt / int64(segments)
				for i := range segments * int(trips+20) {
					at := 2*rtt + int64(i)*each
					x.data(at, i*mss, mss, 0)
					x.ack(at+rtt-1000, (i+1)*mss, segments*mss)
				}
				slices.SortStableFunc(x.all, func(a, b flow.Segment) int { return cmp.Compare(a.At, b.At) })
				x.all = slices.DeleteFunc(x.all, func(s flow.Segment) bool { return s.At < 8*rtt || s.At > (8+trips)*rtt })
				g, d := x.judge(t)
				if want := mss * 8e9 / float64(each); g.GoodputBps < 0.9*want || g.GoodputBps > 1.04*want {
					t.Errorf("%d segments, %d ms, %d round trips: %.0f bit/s, want %.0f; %d bytes, %d acknowledged", segments,
						rtt/ms, trips, g.GoodputBps, want, d.Bytes, d.Acked)
				}
			}
		}
	}
}
