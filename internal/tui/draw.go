package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// The size of a terminal before it reports its own, and the smallest size that is drawn for.
const (
	usualWidth, usualHeight = 80, 24
	leastWidth, leastHeight = 40, 8
)

const (
	bold    = "\x1b[1m"
	faint   = "\x1b[2m"
	reverse = "\x1b[7m"
	plain   = "\x1b[0m"
)

// draw is the whole picture, as many lines as the terminal has at most.
func (m model) draw() string {
	width := max(m.wide(), leastWidth)
	height := max(m.high(), leastHeight)
	var body []string
	switch {
	case m.help:
		body = helpLines()
	case m.doc == nil:
		body = []string{"", "reading the first period …"}
	default:
		body = m.table(width, height-3)
	}
	lines := append(m.head(), body...)
	lines = lines[:min(len(lines), height-1)]
	for len(lines) < height-1 {
		lines = append(lines, "")
	}
	lines = append(lines, m.foot())
	for i, line := range lines {
		lines[i] = ansi.Truncate(line, width, "…") + plain
	}
	return strings.Join(lines, "\n")
}

func (m model) wide() int {
	if m.width == 0 {
		return usualWidth
	}
	return m.width
}

func (m model) high() int {
	if m.height == 0 {
		return usualHeight
	}
	return m.height
}

// head returns the two lines about all connections.
func (m model) head() []string {
	first := bold + "fullpipe watch" + plain
	if m.doc == nil {
		return []string{first, ""}
	}
	var up, down float64
	for i := range m.doc.Connections {
		for _, d := range m.doc.Connections[i].Directions {
			if d.Direction == transfer.Up {
				up += d.GoodputBps
			} else {
				down += d.GoodputBps
			}
		}
	}
	if m.paused { // before the figures: a narrow terminal shows it too
		first += "  " + reverse + " paused " + plain
	}
	if m.frozen {
		first += "  " + reverse + " frozen " + plain
	}
	first += fmt.Sprintf("  %d followed, %d moving; sends %s, receives %s", m.doc.Matching,
		len(m.doc.Connections)+m.doc.LeftOut, units.Rate(up), units.Rate(down))
	second := faint + "by " + m.sorting.String() + ", a row a " + m.grouping.String() + plain
	if m.filter != "" || m.typing {
		second += "  filter: " + m.filter
		if m.typing {
			second += "_"
		}
	}
	if m.doc.LostEnds > 0 {
		second += fmt.Sprintf("  %d ends lost", m.doc.LostEnds)
	}
	for _, unseen := range m.doc.Unread {
		second += "  not seen: " + unseen.Text
	}
	const shown = 3600 // seconds
	if m.shift != "" && m.doc.AtS-m.shiftAtS < shown && !m.typing {
		second = bold + "! " + m.shift + plain
	}
	return []string{first, second}
}

func (m model) foot() string {
	if m.typing {
		return faint + "type what rows have to contain; enter keeps it, esc drops it" + plain
	}
	return faint + "↑↓ enter open  / filter  g group  s sort  p pause  f freeze  ? help  q quit" + plain
}

func helpLines() []string {
	lines := []string{"",
		"enter      opens a row: shares of time, evidence, windows, remedy",
		"/          shows rows that contain a text: a program, address, unit, limiter",
		"g          rows are connections, programs, units, networks (/24, /48), ports",
		"s          sorts by goodput, by retransmissions, by round trip, by age",
		"space, p   pauses: periods are not shown meanwhile",
		"f          freezes: rows keep their places, figures go on",
		"q          quits", "",
		"Letters in a bar, an eighth of the time each:"}
	names := make([]verdict.Name, 0, len(letters))
	for name := range letters {
		names = append(names, name)
	}
	slices.Sort(names)
	for some := range slices.Chunk(names, 3) {
		line := ""
		for _, name := range some {
			line += fmt.Sprintf(" %c %-22s", letters[name].letter, name)
		}
		lines = append(lines, line)
	}
	return lines
}

// table draws the rows and, below them, the details of the open one.
func (m model) table(width, height int) []string {
	all := m.shown()
	if len(all) == 0 {
		return []string{"", "nothing moves that fits"}
	}
	var detail []string
	at := slices.IndexFunc(all, func(r row) bool { return r.key == m.selected })
	if m.open && at >= 0 {
		detail = m.detail(all[at], width)
		detail = detail[:min(len(detail), max(height-4, 1))]
	}
	room := max(height-1-len(detail), 1)
	first := min(max(at-room/2, 0), max(len(all)-room, 0))
	some := all[first:min(first+room, len(all))]

	columns := columnsFor(width)
	if m.grouping != byConnection {
		columns[0].title = strings.ToUpper(m.grouping.String())
		columns.widen(some)
	}
	lines := []string{faint + columns.line(head) + plain}
	for _, r := range some {
		drawn := columns.line(func(c column) string { return c.cell(r) })
		if r.key == m.selected {
			drawn = reverse + strings.ReplaceAll(drawn, plain, plain+reverse) + plain
		}
		lines = append(lines, drawn)
	}
	return append(lines, detail...)
}

// detail returns the details of a row.
func (m model) detail(r row, width int) []string {
	lines := []string{strings.Repeat("─", width)}
	add := func(label, words string) {
		if words == "" {
			return
		}
		for i, line := range strings.Split(ansi.Wordwrap(words, max(width-12, 20), ""), "\n") {
			if i > 0 {
				label = ""
			}
			lines = append(lines, fit(label, 10)+"  "+line)
		}
	}
	add("goodput", sparkline(m.past[r.key])+"  "+units.Rate(r.bps).String())
	var times []string
	for _, name := range r.shares.Top() {
		times = append(times, fmt.Sprintf("%s %.0f %%", name, 100*r.shares[name]))
	}
	add("time", bar(r.shares)+"  "+strings.Join(times, ", "))
	add("RTT", trips(r))
	c := r.connection
	d := r.direction
	if c == nil {
		add("limited", r.limited)
		return lines
	}
	add("limited", fmt.Sprintf("%s, %s confidence", r.limited, d.Confidence))
	add("do", text.Advice(d))
	for _, e := range d.Evidence {
		add("because", e.Text)
	}
	add("waits", text.Waits(d.Waits))
	var windows []string
	size := func(name string, bytes int64) {
		if bytes > 0 {
			windows = append(windows, name+" "+units.Size(bytes).String())
		}
	}
	if d.Direction == transfer.Up {
		size("send buffer granted", c.SendBufferBytes)
		size("peer's window", d.OfferedBytes)
		size("in flight", d.InFlightBytes)
	} else {
		size("receive buffer granted", c.ReceiveBufferBytes)
		size("window offered", d.OfferedBytes)
	}
	add("windows", strings.Join(windows, ", "))
	var whose []string
	for _, word := range []string{c.Unit, c.Container, c.Congestion} {
		if word != "" {
			whose = append(whose, word)
		}
	}
	add("of", strings.Join(append([]string{c.Local}, whose...), ", "))
	return lines
}

// sparkline is a row of values, the tallest of them a full block.
func sparkline(values []float64) string {
	if len(values) == 0 || slices.Max(values) <= 0 {
		return ""
	}
	most := slices.Max(values)
	var b strings.Builder
	for _, v := range values {
		b.WriteString(text.Spark(v / most))
	}
	return b.String()
}
