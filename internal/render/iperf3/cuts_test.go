package iperf3

import (
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// replaySender simulates a sender of 1 MiB each 100 ms. It returns the lines printed during the test and all
// lines.
func replaySender(p iperf3.Params, every, ran time.Duration) (live, all string) {
	const perStep, step = 1 << 20, 100 * time.Millisecond
	account := &iperf3.TestResult{Params: p}
	cuts := NewIntervals(account, every, false)
	var lines strings.Builder
	t := Text{W: &lines}
	doc := Begin(account, Options{Interval: every})
	doc.Start.Test = &Test{Protocol: "TCP", Streams: max(p.Streams, 1)}
	sample := transfer.Sample{Cwnd: 10 << 10}
	for sample.At = step; sample.At <= ran; sample.At += step {
		sample.Program += perStep
		n := cuts.Completed()
		t.Intervals(doc, n, cuts.Add(transfer.Interval{Direction: transfer.Up, End: sample.At,
			Samples: []transfer.Sample{sample}}))
	}
	live = lines.String()
	near := &transfer.End{Streams: []transfer.Stream{{Samples: []transfer.Sample{sample}}}}
	t.Intervals(doc, cuts.Completed(),
		cuts.All([]transfer.Outcome{{TCP: &transfer.Result{Near: near}}})[cuts.Completed():])
	return live, lines.String()
}

// Each interval is printed at its end. A short last one without data is left out.
func TestIntervals_PrintedWhileTestRuns(t *testing.T) {
	const head, s = "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd\n", time.Second
	line := func(span, amount, rate, more string) string {
		return "[  5]   " + span + "   sec  " + amount + "  " + rate + "    0   10.0 KBytes       " + more + "\n"
	}
	full := func(span string) string { return line(span, "10.0 MBytes", "83.9 Mbits/sec", "") }
	for name, tt := range map[string]struct {
		params     iperf3.Params
		every, ran time.Duration
		live, rest string
	}{
		"by time": {iperf3.Params{Time: 3}, s, 3 * s, head + full("0.00-1.00") + full("1.00-2.00"), full("2.00-3.00")},
		// The sender waits for ACKs after its time; no more data was written.
		"late": {iperf3.Params{Time: 1}, s, s, "", head + line("0.00-1.00", "10.0 MBytes", "83.9 Mbits/sec", "")},
		"by bytes": {iperf3.Params{Num: 1 << 30}, s, 2500 * time.Millisecond, head + full("0.00-1.00") + full("1.00-2.00"),
			line("2.00-2.60", "5.00 MBytes", "69.9 Mbits/sec", "")},
		"one interval": {iperf3.Params{Time: 2}, 0, 2 * s, "", head + line("0.00-2.00", "20.0 MBytes", "83.9 Mbits/sec", "")},
		"omitted": {iperf3.Params{Time: 2, Omit: 1}, s, 3 * s, head +
			line("0.00-1.00", "10.0 MBytes", "83.9 Mbits/sec", "(omitted)") + full("0.00-1.00"), full("1.00-2.00")},
	} {
		live, all := replaySender(tt.params, tt.every, tt.ran)
		if live != tt.live || all != tt.live+tt.rest {
			t.Errorf("%s: while it ran\n%s\nwant\n%s\nin all\n%s\nwant\n%s", name, live, tt.live, all, tt.live+tt.rest)
		}
	}
}

// An interval is complete when both directions have it. The remainder of a single direction is kept.
func TestIntervals_BothDirections(t *testing.T) {
	cuts := NewIntervals(&iperf3.TestResult{Params: iperf3.Params{UDP: true, Both: true, Time: 9}}, time.Second, true)
	add := func(d transfer.Direction, end time.Duration) []Interval {
		return cuts.Add(transfer.Interval{Direction: d, End: end, Flows: []transfer.FlowInterval{{Bytes: 1000, Packets: 10,
			Lost: 1, Jitter: 2 * time.Millisecond}}})
	}
	if got := add(transfer.Up, 1001*time.Millisecond); len(got) != 0 {
		t.Errorf("one direction alone is complete: %+v", got)
	}
	got := add(transfer.Down, 1002*time.Millisecond)
	if len(got) != 1 || len(got[0].Streams) != 2 || got[0].Streams[0].Sender || !got[0].Streams[1].Sender ||
		*got[0].Sum.Lost != 1 || *got[0].Sum.JitterMs != 2 || *got[0].Reverse.Packets != 10 ||
		got[0].Reverse.JitterMs != nil {
		t.Fatalf("%+v", got)
	}
	add(transfer.Up, 2*time.Second)
	all := cuts.All(nil)
	if len(all) != 2 || all[1].Sum != nil || all[1].Reverse == nil || cuts.Completed() != 1 {
		t.Errorf("%+v", all)
	}
}
