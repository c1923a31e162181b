package text

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestWatchedSums: what was asked for is told first, all that was followed where that is more; and what
// is mixed has no time of its own.
func TestWatchedSums(t *testing.T) {
	doc := &record.Watch{LengthS: 6, Matching: 2, Totals: record.WatchTotals{SentBytes: 1 << 20, Opened: 4, Closed: 6},
		Limited: []record.WatchLimited{{Limiter: verdict.Mixed, Direction: transfer.Up, Bytes: 1 << 20, Connections: 1},
			{Limiter: verdict.Congestion, Direction: transfer.Up, LimitedS: 3}},
		Connections: []record.WatchedConnection{{Remote: "192.0.2.1:443"}}}
	printed := func() string {
		var out strings.Builder
		watched(&out, doc)
		return out.String()
	}
	all := "watched 6 s: sent 1 MiB, received 0 B; 2 connections, 4 opened, 6 closed\n"
	if got := printed(); !strings.HasPrefix(got, all) || strings.Contains(got, "0 ns") {
		t.Error(got)
	}
	doc.Totals.ReceivedBytes = 1 << 30
	want := "watched 6 s: sent 1 MiB, received 0 B; 2 connections\n" +
		"  all that was followed: sent 1 MiB, received 1 GiB, 4 opened, 6 closed\n"
	if got := printed(); !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}

// What cannot be told apart is said of both that it may be, each in its own words.
func TestAnswerOfTwo(t *testing.T) {
	for _, two := range [][]verdict.Name{{verdict.ReceiverWindow, verdict.ReceiverApplication},
		{verdict.Bottleneck, verdict.AckPath}} {
		f := &record.WatchedDirection{Verdict: verdict.Verdict{Limiter: two[0], Candidates: two, Confidence: verdict.Low,
			Shares: verdict.Shares{two[0]: 0.6, two[1]: 0.3}}}
		got := whyAnswer(f)
		for _, want := range []string{limiters[two[0]].what, limiters[two[1]].what, string(two[0]) + " or " + string(two[1]),
			"90 % of the time"} {
			if !strings.Contains(got, want) {
				t.Errorf("%v: %q does not say %q", two, got, want)
			}
		}
	}
}
