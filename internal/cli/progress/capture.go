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
	"github.com/fullpipe-net/fullpipe/internal/units"
)

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
