package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/capture"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// liveCapture shows on a terminal what a capture has seen: a line, and below it the
// connections that move most. Each second it is drawn over the last.
type liveCapture struct {
	out   io.Writer
	lines int // that are on the screen
}

// show draws it anew.
func (l *liveCapture) show(t capture.Traffic) {
	l.clear()
	lines := l.text(t, render.Columns(l.out)-1)
	fmt.Fprint(raw(l.out), strings.Join(lines, "\n")+"\n")
	l.lines = len(lines)
}

// clear takes it away.
func (l *liveCapture) clear() {
	if l.lines > 0 {
		fmt.Fprintf(raw(l.out), "\x1b[%dA\r\x1b[J", l.lines)
		l.lines = 0
	}
}

// text is what is drawn; no line is longer than columns.
func (l *liveCapture) text(t capture.Traffic, columns int) []string {
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
