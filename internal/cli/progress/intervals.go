package progress

import (
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Intervals shows a running transfer: a line for each interval, and on a terminal a bar below them. Its methods may be
// called at the same time for two directions.
type Intervals struct {
	out   io.Writer
	every time.Duration // between lines; 0: no lines

	mu    sync.Mutex // guards the fields below
	bar   *bar
	since map[transfer.Direction]*transfer.Interval // since the direction's last line
	last  map[transfer.Direction]senderState        // at the direction's last line
	both  bool
	Plain bool // UDP: there is no sender's state
	began bool
}

// senderState is a sender's state at a time.
type senderState struct {
	transfer.Sending
	at time.Duration
}

// NewIntervals returns an Intervals for transfers that run at the same time.
func NewIntervals(out io.Writer, every time.Duration, specs ...transfer.Spec) *Intervals {
	l := &Intervals{out: out, every: every, bar: newBar(out, specs...), both: len(specs) > 1,
		since: map[transfer.Direction]*transfer.Interval{}, last: map[transfer.Direction]senderState{}}
	for _, s := range specs {
		l.since[s.Direction] = &transfer.Interval{}
	}
	return l
}

// Show adds an interval of one direction.
func (l *Intervals) Show(d transfer.Direction, i transfer.Interval) {
	l.mu.Lock()
	defer l.mu.Unlock()
	since := l.since[d]
	since.Bytes += i.Bytes
	since.End = i.End
	if i.Sender != nil {
		since.Sender = i.Sender
	}
	if l.every > 0 && since.End-since.Start.Truncate(l.every) >= l.every {
		l.line(d, since)
	}
	l.bar.show(d, i)
}

// line prints one interval above the bar and begins the next one.
func (l *Intervals) line(d transfer.Direction, i *transfer.Interval) {
	l.bar.clear()
	defer func() {
		if i.Sender != nil {
			l.last[d] = senderState{*i.Sender, i.End}
		}
		*i = transfer.Interval{Start: i.End, End: i.End}
	}()
	which := ""
	if l.both {
		which = fmt.Sprintf("%-6s", d)
	}
	if !l.began {
		l.began = true
		l.head(d)
	}
	rate := units.Rate(float64(i.Bytes) * 8 / (i.End - i.Start).Seconds())
	if l.Plain {
		fmt.Fprintf(l.out, "  %s%6.1f s  %11s\n", which, i.End.Seconds(), rate)
		return
	}
	rtt := "-"
	resent := "-"
	waiting := "-"
	if s := i.Sender; s != nil {
		before := l.last[d]
		if s.Have&transfer.HaveRTT != 0 {
			rtt = units.Time(s.RTT)
		}
		if s.Have&transfer.HaveRetrans != 0 {
			resent = fmt.Sprint(s.Retransmitted - before.Retransmitted)
		}
		waiting = waitingFor(s, &before.Sending, i.End-before.at)
	}
	fmt.Fprintf(l.out, "  %s%6.1f s  %11s  %8s  %6s  %s\n", which, i.End.Seconds(), rate, rtt, resent, waiting)
}

// head prints the names of the columns, and the direction if there is only one.
func (l *Intervals) head(d transfer.Direction) {
	indent := ""
	if l.both {
		indent = fmt.Sprintf("%-6s", "")
	} else {
		fmt.Fprintln(l.out, text.Heading(d))
	}
	if l.Plain {
		fmt.Fprintf(l.out, "  %s%8s  %11s\n", indent, "time", "goodput")
		return
	}
	fmt.Fprintf(l.out, "  %s%8s  %11s  %8s  %6s  %s\n", indent, "time", "goodput", "RTT", "resent", "waiting for")
}

// waitingFor returns what the sender's kernel waited for in most of the interval, by its three clocks (tcp_info:
// busy_time, rwnd_limited, sndbuf_limited).
func waitingFor(s, before *transfer.Sending, span time.Duration) string {
	if s.Have&transfer.HaveLimits == 0 || s.Streams == 0 {
		return "-"
	}
	half := span * time.Duration(s.Streams) / 2
	switch {
	case s.RwndLimited-before.RwndLimited > half:
		return "receiver's window"
	case s.SndbufLimited-before.SndbufLimited > half:
		return "send buffer"
	case s.Busy-before.Busy < half:
		return "program"
	}
	return "path"
}

// Clear prints the data since the last lines, unless that is little, and removes the bar.
func (l *Intervals) Clear() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		if i := l.since[d]; i != nil && l.every > 0 && i.End-i.Start >= l.every/4 {
			l.line(d, i)
		}
	}
	l.bar.clear()
}

// bar shows the progress of transfers that run at the same time, with the rate of each direction. It shows nothing
// for short transfers and elsewhere than on a terminal.
type bar struct {
	out   io.Writer // nil: show nothing
	specs []transfer.Spec
	ways  map[transfer.Direction]*barWay
	drawn time.Duration // end of the interval at the last drawing
	shown bool
}

// barWay is one direction of a bar.
type barWay struct {
	bytes int64             // since the start
	since transfer.Interval // since the bar was drawn
	rate  units.Rate
}

// shortest is the duration of a transfer below which there is no bar.
const shortest = 2 * time.Second

func newBar(out io.Writer, specs ...transfer.Spec) *bar {
	b := &bar{specs: specs, ways: map[transfer.Direction]*barWay{}}
	for _, s := range specs {
		b.ways[s.Direction] = &barWay{}
	}
	if (specs[0].Bytes > 0 || specs[0].Time > shortest) && console.IsTerminal(out) {
		b.out = out
	}
	return b
}

// A bar has the width that its terminal has left of directions, time and rates.
const (
	barWidth   = 30
	timeColumn = len("[] 1234.5 s")
	rateColumn = len("  down 99.9 Mbit/s ")
)

func (b *bar) show(d transfer.Direction, i transfer.Interval) {
	way := b.ways[d]
	way.bytes += i.Bytes
	way.since.Bytes += i.Bytes
	way.since.End = i.End
	if b.out == nil || i.End-b.drawn < 200*time.Millisecond {
		return
	}
	b.drawn = i.End
	done := 1.0
	rates := ""
	for _, s := range b.specs {
		w := b.ways[s.Direction]
		if span := w.since.End - w.since.Start; span > 0 {
			w.rate = units.Rate(float64(w.since.Bytes) * 8 / span.Seconds())
		}
		w.since = transfer.Interval{Start: w.since.End, End: w.since.End}
		rates += fmt.Sprintf("  %s %s", s.Direction, w.rate)
		share := float64(i.End) / float64(max(s.Time, 1))
		if s.Bytes > 0 {
			share = float64(w.bytes) / float64(s.Bytes)
		}
		done = min(done, share)
	}
	width := max(min(barWidth, render.Columns(b.out)-timeColumn-len(b.specs)*rateColumn), 1)
	full := int(done * float64(width))
	fmt.Fprintf(console.Raw(b.out), "\r\x1b[K[%s%s] %4.1f s%s", strings.Repeat("=", full),
		strings.Repeat(" ", width-full), i.End.Seconds(), rates)
	b.shown = true
}

func (b *bar) clear() {
	if b.shown {
		fmt.Fprint(console.Raw(b.out), "\r\x1b[K")
		b.shown = false
	}
}
