package main

import (
	"fmt"
	"io"
	"os"
	"strings"

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
	if f, ok := out.(*os.File); ok && isTerminal(f) {
		return &progressLine{out: out}
	}
	return &progressLine{}
}

const lineWidth = 100

func (l *progressLine) show(p tune.Progress) {
	if l.out == nil {
		return
	}
	const width = 20
	full := int(p.Done * width)
	text := fmt.Sprintf("%-4s [%s%s] %3.0f %%  ", p.Direction, strings.Repeat("=", full), strings.Repeat(" ", width-full), 100*p.Done)
	if p.BestBps > 0 {
		text += units.Rate(p.BestBps).String() + " so far  "
	}
	text += p.Doing
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
