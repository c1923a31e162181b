// Package progress shows the progress of a long command on a terminal.
package progress

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Line shows the progress of a long loop on a terminal. Elsewhere it shows nothing.
type Line struct {
	out   io.Writer // nil: show nothing
	now   func() time.Time
	shown bool

	startedAt time.Time
	start     float64 // share at startedAt
	last      float64 // share
}

// NewLine returns a line that out shows if it is a terminal.
func NewLine(out io.Writer) *Line {
	if console.IsTerminal(out) {
		return &Line{out: out, now: time.Now}
	}
	return &Line{}
}

// Show shows the progress of a tuning.
func (l *Line) Show(p tune.Progress) { l.ShowPart(p, 0, 1) }

// ShowPart shows the progress of part n, from 0, of a number of equal parts in one bar. The bar never goes back.
func (l *Line) ShowPart(p tune.Progress, n, parts int) {
	l.Draw(max(l.last, (float64(n)+p.Done)/float64(parts)), string(p.Direction)+"  ", p.BestBps, text.TuneProgress(p))
}

// Draw shows a share (0 to 1) as a bar after before, the time left, and the present step. A share that falls begins
// another part of the loop.
func (l *Line) Draw(share float64, before string, bestBps float64, doing string) {
	if l.out == nil {
		return
	}
	if l.startedAt.IsZero() || share < l.last {
		l.startedAt = l.now()
		l.start = share
	}
	l.last = share
	left := ""
	if done := share - l.start; done > 0 && share < 1 {
		rest := float64(l.now().Sub(l.startedAt)) * (1 - share) / done
		left = "about " + units.Time(max(time.Duration(rest).Round(time.Second), time.Second)) + " left  "
	}
	const width = 20
	full := int(share * width)
	text := fmt.Sprintf("%s[%s%s] %3.0f %%  %s", before, strings.Repeat("=", full), strings.Repeat(" ", width-full),
		100*share, left)
	if bestBps > 0 {
		text += units.Rate(bestBps).String() + " so far  "
	}
	text = render.Line(text + doing)
	fmt.Fprintf(console.Raw(l.out), "\r\x1b[K%s", cut(text, render.Columns(l.out)-1))
	l.shown = true
}

// Clear removes the line.
func (l *Line) Clear() {
	if l.shown {
		fmt.Fprint(console.Raw(l.out), "\r\x1b[K")
	}
}

// cut shortens a text to a number of columns, because a line that wraps cannot be drawn over.
func cut(text string, columns int) string {
	if runes := []rune(text); len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return text
}

// Capture shows a live capture on a terminal: totals, and below them the busiest connections. Each second it is
// drawn over the previous one.
type Capture struct {
	Out   io.Writer
	lines int // on the screen
}

// Show draws it again.
func (l *Capture) Show(t capture.Traffic) {
	l.Clear()
	lines := l.text(t, render.Columns(l.Out)-1)
	fmt.Fprint(console.Raw(l.Out), strings.Join(lines, "\n")+"\n")
	l.lines = len(lines)
}

// Clear removes it.
func (l *Capture) Clear() {
	if l.lines > 0 {
		fmt.Fprintf(console.Raw(l.Out), "\x1b[%dA\r\x1b[J", l.lines)
		l.lines = 0
	}
}

// text returns the drawn lines, none longer than columns.
func (l *Capture) text(t capture.Traffic, columns int) []string {
	lines := []string{fmt.Sprintf("%s  %s packets, %s connections", units.Time(t.Span.Round(time.Second)),
		text.Thousands(t.Packets), text.Thousands(int64(t.Connections)))}
	for _, c := range t.Busiest {
		lines = append(lines, fmt.Sprintf("  %11s  %s → %s", units.Rate(c.Bps), c.From, c.To))
	}
	for i := range lines {
		lines[i] = cut(lines[i], columns)
	}
	return lines
}
