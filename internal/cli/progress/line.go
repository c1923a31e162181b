// Package progress shows on a terminal how far a long command is.
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

// Line shows on a terminal what a long loop is doing; elsewhere it shows
// nothing.
type Line struct {
	out   io.Writer // nil: show nothing
	shown bool
}

// NewLine returns a line that out shows if it is a terminal.
func NewLine(out io.Writer) *Line {
	if console.IsTerminal(out) {
		return &Line{out: out}
	}
	return &Line{}
}

// Show shows how far a tuning is.
func (l *Line) Show(p tune.Progress) {
	l.Draw(p.Done, string(p.Direction)+"  ", p.BestBps, text.TuneProgress(p))
}

// Draw shows a share (0 to 1) as a bar, and what is being done.
func (l *Line) Draw(share float64, before string, bestBps float64, doing string) {
	if l.out == nil {
		return
	}
	const width = 20
	full := int(share * width)
	text := fmt.Sprintf("%s[%s%s] %3.0f %%  ", before, strings.Repeat("=", full), strings.Repeat(" ", width-full),
		100*share)
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

// cut is a text that fits so many columns: a line that wraps cannot be drawn again.
func cut(text string, columns int) string {
	if runes := []rune(text); len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return text
}

// Capture shows on a terminal what a capture has seen: a line, and below it the
// connections that move most. Each second it is drawn over the last.
type Capture struct {
	Out   io.Writer
	lines int // that are on the screen
}

// Show draws it anew.
func (l *Capture) Show(t capture.Traffic) {
	l.Clear()
	lines := l.text(t, render.Columns(l.Out)-1)
	fmt.Fprint(console.Raw(l.Out), strings.Join(lines, "\n")+"\n")
	l.lines = len(lines)
}

// Clear takes it away.
func (l *Capture) Clear() {
	if l.lines > 0 {
		fmt.Fprintf(console.Raw(l.Out), "\x1b[%dA\r\x1b[J", l.lines)
		l.lines = 0
	}
}

// text is what is drawn; no line is longer than columns.
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
