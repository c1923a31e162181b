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
		return &progressLine{out: raw(out)}
	}
	return &progressLine{}
}

const lineWidth = 100

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
	if runes := []rune(text); len(runes) > lineWidth {
		text = string(runes[:lineWidth-1]) + "…"
	}
	fmt.Fprintf(l.out, "\r\x1b[K%s", text)
	l.shown = true
}

func (l *progressLine) clear() {
	if l.shown {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}
