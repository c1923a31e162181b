package tui

import (
	"fmt"
	"math"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// letters are the limiters' letters in a bar. Colours (ANSI 31 to 36) only add to them.
var letters = map[verdict.Name]struct {
	letter rune
	colour int
}{
	verdict.Application: {'a', 36}, verdict.SendBuffer: {'s', 33}, verdict.ReceiverWindow: {'w', 33},
	verdict.ReceiverApplication: {'r', 36}, verdict.Congestion: {'c', 31}, verdict.Bottleneck: {'b', 32},
	verdict.LocalQueue: {'q', 32}, verdict.AckPath: {'k', 31}, verdict.SlowStart: {'i', 34},
	verdict.NagleDelayedAck: {'n', 35}, verdict.MTUBlackHole: {'m', 31}, verdict.Pacing: {'p', 34},
	verdict.CPU: {'u', 35}, verdict.Sender: {'e', 36}, verdict.Unknown: {'?', 0}, verdict.Mixed: {'x', 0},
}

// column is a column of the table.
type column struct {
	title string
	width int
	right bool
	from  int // the narrowest terminal that has it
	cell  func(row) string
}

type columns []column

// columnsFor returns the columns that fit a terminal. Program and far end share the remaining width.
func columnsFor(width int) columns {
	const gap = 2
	all := columns{
		{"PROGRAM", 0, false, 0, func(r row) string {
			if r.connections > 1 {
				return fmt.Sprintf("%s (%d)", r.name, r.connections)
			}
			return r.name
		}},
		{"FAR END", 0, false, 0, func(r row) string { return r.where }},
		{"GOODPUT", 13, false, 0, func(r row) string { return text.Decimal(units.Rate(r.bps).String(), 3) }},
		{"RTT (LEAST)", 17, true, 104, trips},
		{"RETR", 6, true, 120, retransmitted},
		{"AGE", 6, true, 120, func(r row) string { return age(r.followed) }},
		{"LIMITED BY", 22, false, 0, func(r row) string { return r.limited }},
		{"TIME", 8, false, 92, func(r row) string { return bar(r.shares) }},
	}
	var some columns
	left := width
	for _, c := range all {
		if width >= c.from {
			some = append(some, c)
			left -= c.width + gap
		}
	}
	left = max(left+gap, 20)
	some[0].width = left * 2 / 5
	some[1].width = left - some[0].width
	return some
}

// leastFar is what groups' far ends need: "from 12 far ends".
const leastFar = 16

// widen gives the names of groups what they need of the far ends' room.
func (all columns) widen(rows []row) {
	longest := 0
	for _, r := range rows {
		longest = max(longest, ansi.StringWidth(all[0].cell(r)))
	}
	if more := min(longest-all[0].width, all[1].width-leastFar); more > 0 {
		all[0].width += more
		all[1].width -= more
	}
}

func head(c column) string { return c.title }

// line is one line of the table, each cell as wide as its column.
func (all columns) line(cell func(column) string) string {
	cells := make([]string, len(all))
	for i, c := range all {
		if c.right {
			cells[i] = right(cell(c), c.width)
		} else {
			cells[i] = fit(cell(c), c.width)
		}
	}
	return strings.Join(cells, "  ")
}

// retransmitted returns the retransmitted share of the payload.
func retransmitted(r row) string {
	switch {
	case r.resent <= 0:
		return ""
	case r.resent < 0.001:
		return "<0.1 %"
	case r.resent < 0.0995:
		return fmt.Sprintf("%.1f %%", 100*r.resent)
	}
	return fmt.Sprintf("%.0f %%", math.Min(99, 100*r.resent))
}

func trips(r row) string {
	switch {
	case r.rtt > 0 && r.least > 0:
		return text.SecondsText(r.rtt) + " (" + text.SecondsText(r.least) + ")"
	case r.rtt > 0:
		return text.SecondsText(r.rtt)
	}
	return ""
}

// age is a time in its largest unit.
func age(s float64) string {
	switch {
	case s < 60:
		return fmt.Sprintf("%.0f s", s)
	case s < 3600:
		return fmt.Sprintf("%.0f min", math.Floor(s/60))
	case s < 100*3600:
		return fmt.Sprintf("%.0f h", math.Floor(s/3600))
	}
	return fmt.Sprintf("%.0f d", math.Floor(s/86400))
}

// bar is shares of time as eight letters, the largest first.
func bar(shares verdict.Shares) string {
	const cells = 8
	var b strings.Builder
	used := 0
	sum := 0.0
	for _, name := range shares.Top() {
		sum += shares[name]
		n := min(int(math.Round(sum*cells)), cells) - used
		if n <= 0 {
			continue
		}
		sign := letters[name]
		if sign.letter == 0 {
			sign.letter = '?'
		}
		cell := strings.Repeat(string(sign.letter), n)
		if sign.colour > 0 {
			cell = fmt.Sprintf("\x1b[%dm%s%s", sign.colour, cell, plain)
		}
		b.WriteString(cell)
		used += n
	}
	return b.String() + strings.Repeat("·", cells-used)
}

// fit cuts or pads text to a number of columns.
func fit(s string, columns int) string {
	s = ansi.Truncate(s, columns, "…")
	return s + strings.Repeat(" ", max(columns-ansi.StringWidth(s), 0))
}

func right(s string, columns int) string {
	s = ansi.Truncate(s, columns, "…")
	return strings.Repeat(" ", max(columns-ansi.StringWidth(s), 0)) + s
}
