package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// progressLine shows on a terminal what a long loop is doing; elsewhere it shows
// nothing.
type progressLine struct {
	out   io.Writer // nil: show nothing
	shown bool
}

func newProgressLine(out io.Writer) *progressLine {
	if isTerminal(out) {
		return &progressLine{out: out}
	}
	return &progressLine{}
}

func (l *progressLine) show(p tune.Progress) {
	l.draw(p.Done, string(p.Direction)+"  ", p.BestBps, p.Doing)
}

// draw shows a share (0 to 1) as a bar, and what is being done.
func (l *progressLine) draw(share float64, before string, bestBps float64, doing string) {
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
	fmt.Fprintf(raw(l.out), "\r\x1b[K%s", cut(text, render.Columns(l.out)-1))
	l.shown = true
}

func (l *progressLine) clear() {
	if l.shown {
		fmt.Fprint(raw(l.out), "\r\x1b[K")
	}
}

// cut is a text that fits so many columns: a line that wraps cannot be drawn again.
func cut(text string, columns int) string {
	if runes := []rune(text); len(runes) > columns {
		return string(runes[:columns-1]) + "…"
	}
	return text
}
