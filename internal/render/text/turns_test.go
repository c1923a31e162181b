package text

import (
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

func TestRequestsAnswer(t *testing.T) {
	ms := func(v float64) float64 { return v / 1000 }
	stages := func(cause string, median, slowest float64) []record.Stage {
		return []record.Stage{{Stage: "request", Cause: "propagation", MedianS: ms(3), SlowestS: ms(3)},
			{Stage: "response", Cause: cause, MedianS: ms(median), SlowestS: ms(slowest)}}
	}
	for name, c := range map[string]struct {
		stages []record.Stage
		stalls []record.Stall
		median float64
		max    float64
		want   string
		cause  string
	}{
		"stalls": {stages("tail-loss-probe", 0, 230),
			[]record.Stall{{Cause: "tail-loss-probe", From: "client", Count: 10, TimeS: 2.2},
				{Cause: "fast-retransmit", From: "server", Count: 2, TimeS: 0.1}}, 6, 240,
			" 12 waits for retransmissions took 2.3 s in all, mostly for a retransmission timer (tail-loss" +
				" probe).", "tail-loss-probe"},
		"a slow server now and then": {stages("server", 2, 300), nil, 6, 310,
			" Compared with it, the slowest waited 298 ms longer for the server's program." +
				" Of the median, 2 ms is the server's program.", "server"},
		"a slow server always": {stages("server", 50, 55), nil, 56, 60,
			" Of the median, 50 ms is the server's program.", "server"},
		"a long path": {stages("server", 0.9, 0.9), nil, 4, 5, " Of the median, 3 ms is the path's round trip.", ""},
	} {
		answer, causes := requestsAnswer(&record.Requests{Stages: c.stages, Stalls: c.stalls,
			Turns: &record.Turns{Count: 400, P50S: ms(c.median), MaxS: ms(c.max)}})
		if cause := strings.Join(slices.Compact(causes), " "); !strings.HasSuffix(answer, c.want) || cause != c.cause {
			t.Errorf("%s: %q, %s; want %q, %s", name, answer, cause, c.want, c.cause)
		}
	}
}
