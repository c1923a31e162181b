package progress

import (
	"net/netip"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestIntervalLines(t *testing.T) {
	const all = transfer.HaveRTT | transfer.HaveRetrans | transfer.HaveLimits
	ms := func(n int) time.Duration { return time.Duration(n) * time.Millisecond }
	sender := func(at, rwnd, sndbuf int, resent int64) *transfer.Sending {
		return &transfer.Sending{Have: all, Streams: 1, RTT: ms(40), Retransmitted: resent, Busy: ms(at),
			RwndLimited: ms(rwnd), SndbufLimited: ms(sndbuf)}
	}
	var out strings.Builder
	l := NewIntervals(&out, time.Second, transfer.Spec{Direction: transfer.Up})
	for _, i := range []transfer.Interval{
		{Start: 0, End: ms(600), Bytes: 1e6, Sender: sender(600, 0, 0, 0)},
		{Start: ms(600), End: ms(1100), Bytes: 1e6, Sender: sender(1100, 10, 0, 3)},
		{Start: ms(1100), End: ms(2000), Bytes: 2e6, Sender: sender(2000, 900, 0, 3)},
		{Start: ms(2000), End: ms(3000), Bytes: 1e6, Sender: sender(3000, 900, 800, 4)},
		{Start: ms(3000), End: ms(4000), Bytes: 1e5, Sender: sender(3100, 900, 800, 4)},
		{Start: ms(4000), End: ms(4500), Bytes: 1e5},
	} {
		l.Show(transfer.Up, i)
	}
	l.Clear()
	want := `UP (this host sends)
      time      goodput       RTT  resent  waiting for
     1.1 s  14.5 Mbit/s     40 ms       3  path
     2.0 s  17.8 Mbit/s     40 ms       0  receiver's window
     3.0 s     8 Mbit/s     40 ms       1  send buffer
     4.0 s   800 kbit/s     40 ms       0  program
     4.5 s   1.6 Mbit/s         -       -  -
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

func TestIntervalLinesOfBothDirections(t *testing.T) {
	var out strings.Builder
	l := NewIntervals(&out, time.Second, transfer.Spec{Direction: transfer.Up}, transfer.Spec{Direction: transfer.Down})
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		l.Show(d, transfer.Interval{End: time.Second, Bytes: 125000})
	}
	l.Clear()
	want := `            time      goodput       RTT  resent  waiting for
  up       1.0 s     1 Mbit/s         -       -  -
  down     1.0 s     1 Mbit/s         -       -  -
`
	if out.String() != want {
		t.Errorf("got\n%s\nwant\n%s", out.String(), want)
	}
}

// narrow is a terminal with a number of columns.
type narrow struct {
	strings.Builder
	columns int
}

func (n *narrow) Columns() int { return n.columns }

// TestDrawnLinesFitTheTerminal checks that no line of bars and of the live capture wraps: one that wraps
// cannot be drawn over.
func TestDrawnLinesFitTheTerminal(t *testing.T) {
	for _, columns := range []int{60, 80, 160} {
		out := &narrow{columns: columns}
		b := newBar(out, transfer.Spec{Direction: transfer.Up, Time: 1000 * time.Second},
			transfer.Spec{Direction: transfer.Down, Time: 1000 * time.Second})
		b.out = out
		b.show(transfer.Down, transfer.Interval{End: 999 * time.Second, Bytes: 1.247e12})
		p := &Line{out: out, now: time.Now}
		p.Draw(0.5, "up  ", 99.9e6, strings.Repeat("trying ", 40))
		p.Clear()
		c := &Capture{Out: out}
		c.Show(capture.Traffic{Packets: 123456789, Connections: 120000, Span: time.Hour, Busiest: []capture.Carried{{
			From: netip.MustParseAddrPort("[2001:db8:1111:2222:3333:4444:5555:6666]:50000"),
			To:   netip.MustParseAddrPort("[2001:db8:1111:2222:3333:4444:5555:7777]:443"), Bps: 99.9e6}}})
		drawn := strings.FieldsFunc(out.String(), func(r rune) bool { return r == '\r' || r == '\n' })
		if len(drawn) != 4 {
			t.Errorf("%d columns: %q", columns, drawn)
		}
		for _, line := range drawn {
			if n := utf8.RuneCountInString(strings.TrimPrefix(line, "\x1b[K")); n >= columns {
				t.Errorf("%d columns: %d in %q", columns, n, line)
			}
		}
	}
}
