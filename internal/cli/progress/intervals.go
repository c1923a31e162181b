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

// Intervals shows a running transfer: a line for each interval, and below them on a terminal
// a bar. Its methods may be called at the same time for two directions.
type Intervals struct {
	out   io.Writer
	every time.Duration // between lines; 0: no lines

	mu    sync.Mutex // guards what follows
	bar   *bar
	since map[transfer.Direction]*transfer.Interval // what came since the direction's last line
	last  map[transfer.Direction]stood              // how the sender stood when it was last told
	both  bool
	Plain bool // UDP: nobody tells of a sender
	began bool
}

// stood is how a sender stood at a time.
type stood struct {
	transfer.Sending
	at time.Duration
}

// NewIntervals prepares for the transfers, which run at the same time; a UDP one has no
// sender's state.
func NewIntervals(out io.Writer, every time.Duration, specs ...transfer.Spec) *Intervals {
	l := &Intervals{out: out, every: every, bar: newBar(out, specs[0]), both: len(specs) > 1,
		since: map[transfer.Direction]*transfer.Interval{}, last: map[transfer.Direction]stood{}}
	for _, s := range specs {
		l.since[s.Direction] = &transfer.Interval{}
	}
	return l
}

// Show takes in an interval of one direction.
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
	if d == l.bar.spec.Direction {
		l.bar.show(i)
	}
}

// line prints one interval above the bar and begins the next one.
func (l *Intervals) line(d transfer.Direction, i *transfer.Interval) {
	l.bar.clear()
	defer func() {
		if i.Sender != nil {
			l.last[d] = stood{*i.Sender, i.End}
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

// head names the columns, and the direction where all lines are of one.
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

// waitingFor says what the sender's kernel waited for most of the interval, by its own
// three clocks (tcp_info: busy_time, rwnd_limited, sndbuf_limited).
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

// Clear prints what came since the last lines, unless that is little, and takes the bar
// away.
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

// bar shows on a terminal how far a transfer is; elsewhere, and for short ones, it
// shows nothing.
type bar struct {
	out   io.Writer // nil: show nothing
	spec  transfer.Spec
	bytes int64
	since transfer.Interval // gathered since the bar was last drawn
	shown bool
}

// shortest is the time below which a transfer needs no bar.
const shortest = 2 * time.Second

func newBar(out io.Writer, spec transfer.Spec) *bar {
	b := &bar{spec: spec}
	if (spec.Bytes > 0 || spec.Time > shortest) && console.IsTerminal(out) {
		b.out = out
	}
	return b
}

// A bar is as wide as its terminal leaves room for beside direction, time and rate.
const (
	barWidth   = 30
	besidesBar = len("down [] 1234.5 s  99.9 Mbit/s ")
)

func (b *bar) show(i transfer.Interval) {
	b.bytes += i.Bytes
	b.since.Bytes += i.Bytes
	b.since.End = i.End
	if b.out == nil || b.since.End-b.since.Start < 200*time.Millisecond {
		return
	}
	done := float64(i.End) / float64(max(b.spec.Time, 1))
	if b.spec.Bytes > 0 {
		done = float64(b.bytes) / float64(b.spec.Bytes)
	}
	width := min(barWidth, render.Columns(b.out)-besidesBar)
	full := int(min(done, 1) * float64(width))
	rate := units.Rate(float64(b.since.Bytes) * 8 / (b.since.End - b.since.Start).Seconds())
	fmt.Fprintf(console.Raw(b.out), "\r\x1b[K%-4s [%s%s] %4.1f s  %s", b.spec.Direction, strings.Repeat("=", full),
		strings.Repeat(" ", width-full), i.End.Seconds(), rate)
	b.since = transfer.Interval{Start: i.End}
	b.shown = true
}

func (b *bar) clear() {
	if b.shown {
		fmt.Fprint(console.Raw(b.out), "\r\x1b[K")
		b.shown = false
	}
}
