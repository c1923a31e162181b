package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

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
	if spec.Bytes > 0 || spec.Time > shortest {
		if f, ok := out.(*os.File); ok && isTerminal(f) {
			b.out = out
		}
	}
	return b
}

func isTerminal(f *os.File) bool {
	info, err := f.Stat()
	null, bad := os.Stat(os.DevNull)
	return err == nil && info.Mode()&os.ModeCharDevice != 0 && os.Getenv("TERM") != "dumb" && (bad != nil || !os.SameFile(info, null))
}

const barWidth = 30

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
	full := int(min(done, 1) * barWidth)
	rate := units.Rate(float64(b.since.Bytes) * 8 / (b.since.End - b.since.Start).Seconds())
	fmt.Fprintf(b.out, "\r\x1b[K%-4s [%s%s] %4.1f s  %s", b.spec.Direction, strings.Repeat("=", full),
		strings.Repeat(" ", barWidth-full), i.End.Seconds(), rate)
	b.since = transfer.Interval{Start: i.End}
	b.shown = true
}

func (b *bar) clear() {
	if b.shown {
		fmt.Fprint(b.out, "\r\x1b[K")
	}
}
