package text

import (
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestWatchedSums prints the sums of the selected connections, then those of all where they are more. Mixed time has no
// time of its own.
func TestWatchedSums(t *testing.T) {
	doc := &record.Watch{LengthS: 6, Matching: 2, Totals: record.WatchTotals{SentBytes: 1 << 20, Opened: 4, Closed: 6},
		Limited: []record.WatchLimited{{Limiter: verdict.Mixed, Direction: transfer.Up, Bytes: 1 << 20, Connections: 1},
			{Limiter: verdict.Congestion, Direction: transfer.Up, LimitedS: 3}},
		Connections: []record.WatchedConnection{{Remote: "192.0.2.1:443"}}}
	printed := func() string {
		var out strings.Builder
		writeWatched(&out, doc)
		return out.String()
	}
	all := "watched 6 s: sent 1 MiB, received 0 B; 2 connections, 4 opened, 6 closed\n"
	if got := printed(); !strings.HasPrefix(got, all) || strings.Contains(got, "0 ns") {
		t.Error(got)
	}
	doc.Matching = 12_345
	doc.Totals.Opened = 1_234_567
	doc.Totals.Closed = 1_234_567
	terminal := narrow{&strings.Builder{}}
	writeWatched(terminal, doc)
	if first, rest, _ := strings.Cut(terminal.String(), "\n"); len(first) > 80 || !strings.HasPrefix(rest, "        12") {
		t.Errorf("on 80 columns: %q", terminal.String())
	}
	doc.Matching = 2
	doc.Totals.Opened = 4
	doc.Totals.Closed = 6
	doc.Totals.ReceivedBytes = 1 << 30
	want := "watched 6 s: sent 1 MiB, received 0 B; 2 connections\n" +
		"  all that was followed: sent 1 MiB, received 1 GiB, 4 opened, 6 closed\n"
	if got := printed(); !strings.HasPrefix(got, want) {
		t.Error(got)
	}
}

// TestAnswerOfTwo names both limiters of an ambiguous verdict.
func TestAnswerOfTwo(t *testing.T) {
	for _, two := range [][]verdict.Name{{verdict.ReceiverWindow, verdict.ReceiverApplication},
		{verdict.Bottleneck, verdict.AckPath}} {
		f := &record.WatchedDirection{Verdict: verdict.Verdict{Limiter: two[0], Candidates: two, Confidence: verdict.Low,
			Shares: verdict.Shares{two[0]: 0.6, two[1]: 0.3}}}
		got := whyAnswer(f)
		for _, want := range []string{limiters[two[0]].cause, limiters[two[1]].cause,
			string(two[0]) + " or " + string(two[1]), "90 % of the time"} {
			if !strings.Contains(got, want) {
				t.Errorf("%v: %q does not say %q", two, got, want)
			}
		}
	}
}

// TestDecimal aligns the decimal points of rates and sizes.
func TestDecimal(t *testing.T) {
	for text, want := range map[string]string{"31 Mbit/s": " 31.0  Mbit/s", "31.9 Mbit/s": " 31.9  Mbit/s",
		"637 Mbit/s": "637    Mbit/s", "6.02 kbit/s": "  6.02 kbit/s", "2 Mbit/s": "  2.00 Mbit/s",
		"0 bit/s": "  0    bit/s"} {
		if got := Decimal(text, 3); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
	if got := Decimal("2653 B", 4); got != "2653    B" {
		t.Errorf("%q", got)
	}
}

// narrow is a terminal of 80 columns.
type narrow struct{ *strings.Builder }

func (narrow) Columns() int { return 80 }

// TestWatchRows_Narrow names the limiter within 80 columns and leaves out the way back of a transfer.
func TestWatchRows_Narrow(t *testing.T) {
	limited := verdict.Verdict{Limiter: verdict.ReceiverWindow, Shares: verdict.Shares{verdict.ReceiverWindow: 0.96}}
	doc := &record.Watch{Matching: 1, Connections: []record.WatchedConnection{{PID: 8279, Program: "python3",
		Remote: "198.151.100.107:32794", Directions: []record.WatchedDirection{
			{Direction: transfer.Up, Bytes: 10 << 20, GoodputBps: 31e6, RTT: units.Duration(22500 * time.Microsecond),
				RTTMin: units.Duration(20 * time.Millisecond), Verdict: limited},
			{Direction: transfer.Down, Bytes: 20 << 10, GoodputBps: 60e3, Verdict: verdict.Verdict{Limiter: verdict.Unknown,
				Candidates: []verdict.Name{verdict.Application}}},
		}}}}
	out := narrow{&strings.Builder{}}
	WatchRows(out, doc, 9)
	want := "  program        connection                goodput        limited by\n" +
		"  python3[8279]  to 198.151.100.107:32794   31.0  Mbit/s  receiver-window 96 %\n"
	if out.String() != want {
		t.Errorf("got\n%swant\n%s", out.String(), want)
	}
}

// TestLimited_FromElsewhere omits the candidates that a receiving host cannot separate.
func TestLimited_FromElsewhere(t *testing.T) {
	elsewhere := []verdict.Name{verdict.Application, verdict.SendBuffer, verdict.Congestion, verdict.Bottleneck}
	for _, c := range []struct {
		direction  transfer.Direction
		candidates []verdict.Name
		want       bool
	}{
		{transfer.Down, elsewhere, true}, {transfer.Up, elsewhere, false}, {transfer.Down, nil, false},
		{transfer.Down, append([]verdict.Name{verdict.ReceiverWindow}, elsewhere...), false},
	} {
		d := &record.WatchedDirection{Direction: c.direction, Verdict: verdict.Verdict{Limiter: verdict.Unknown,
			Candidates: c.candidates}}
		got := Limited(d)
		if (got == "not this host") != c.want || c.direction == transfer.Down && strings.Contains(got, "application") {
			t.Errorf("%+v: %q", c, got)
		}
	}
	full := &record.WatchedDirection{Direction: transfer.Down, Verdict: verdict.Verdict{Limiter: verdict.Bottleneck,
		Confidence: verdict.Low, Shares: verdict.Shares{verdict.Bottleneck: 0.97}}}
	if got := Limited(full); got != "probably bottleneck 97 %" {
		t.Errorf("%q", got)
	}
}
