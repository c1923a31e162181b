package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// WatchLines prints a period: a line of sums, then the heaviest connections.
func WatchLines(w io.Writer, d *record.Watch, rows int) {
	fmt.Fprintf(w, "%s  %s, %d moving; sent %s, received %s since the beginning", SecondsText(d.AtS),
		count(d.Matching, "connection"),
		len(d.Connections)+d.LeftOut, units.Size(d.Totals.SentBytes), units.Size(d.Totals.ReceivedBytes))
	if d.LostEnds > 0 {
		fmt.Fprintf(w, "; %s lost", count(int(d.LostEnds), "end"))
	}
	fmt.Fprintln(w)
	for i := range d.PathChanges {
		fmt.Fprintln(w, "  ! "+PathShift(&d.PathChanges[i]))
	}
	if len(d.Connections) > 0 {
		t := watchedTable(d, rows, nil, "payload")
		t.cutLast(render.Columns(w) - 2)
		t.write(w, "  ")
	}
	writeLeftOut(w, d, rows)
}

// WatchRows prints the heaviest connections as a table. On a narrow terminal it leaves out the payload, then the
// round trip.
func WatchRows(w io.Writer, d *record.Watch, rows int) {
	without := []string{"payload", "round trip (least)"}
	t := watchedTable(d, rows, watchedTitles)
	for i := 0; i < len(without) && t.width()+2 > render.Columns(w); i++ {
		t = watchedTable(d, rows, watchedTitles, without[:i+1]...)
	}
	t.cutLast(render.Columns(w) - 2)
	t.write(w, "  ")
	writeLeftOut(w, d, rows)
}

func writeLeftOut(w io.Writer, d *record.Watch, rows int) {
	if left := d.LeftOut + max(len(d.Connections)-rows, 0); left > 0 {
		fmt.Fprintf(w, "  and %s\n", count(left, "lighter connection"))
	}
}

var watchedTitles = []string{"program", "connection", "payload", "goodput", "round trip (least)", "limited by"}

// watchedTable returns a table of the heaviest connections without some of the columns. head is its first row; nil:
// none.
func watchedTable(d *record.Watch, rows int, head []string, without ...string) *table {
	t := newTable()
	row := func(cells []string) {
		var some []string
		for i, cell := range cells {
			if !slices.Contains(without, watchedTitles[i]) {
				if watchedTitles[i] == "round trip (least)" {
					t.right[len(some)] = true
				}
				some = append(some, cell)
			}
		}
		t.row(some...)
	}
	if head != nil {
		row(head)
	}
	for i := range d.Connections[:min(rows, len(d.Connections))] {
		c := &d.Connections[i]
		for j := range c.Directions {
			if !IsWayBack(c, j) {
				row(watchedCells(c, j))
			}
		}
	}
	return t
}

func watchedCells(c *record.WatchedConnection, direction int) []string {
	d := &c.Directions[direction]
	trip := ""
	if d.RTT > 0 {
		trip = d.RTT.String()
		if d.RTTMin > 0 {
			trip += " (" + d.RTTMin.String() + ")"
		}
	}
	return []string{Owner(c), DirectionWord(d.Direction) + " " + c.Remote, Decimal(units.Size(d.Bytes).String(), 4),
		Decimal(units.Rate(d.GoodputBps).String(), 3), trip, LimitedCell(c, direction)}
}

// wayBackShare is the share of the heavier direction's payload up to which the lighter one is its way back.
const wayBackShare = 0.02

// IsWayBack reports whether a direction carries only the replies to the heavier one, such as ssh's window messages
// during a transfer, or that its requests explain both. Tables leave it out.
func IsWayBack(c *record.WatchedConnection, direction int) bool {
	if direction == 0 {
		return false
	}
	if c.RequestsLead() {
		return true
	}
	lighter := &c.Directions[direction]
	tooLittle := lighter.Limiter == verdict.Unknown && len(lighter.Candidates) == 0
	return tooLittle || float64(lighter.Bytes) <= wayBackShare*float64(c.Directions[0].Bytes)
}

// Decimal pads a number with a unit so that the decimal points of a column are aligned: at least three digits, the
// integer part to a width, the fraction to three.
func Decimal(text string, integer int) string {
	number, unit, _ := strings.Cut(text, " ")
	whole, fraction, _ := strings.Cut(number, ".")
	if digits := len(whole) + len(fraction); digits < 3 && whole != "0" && unit != "B" {
		fraction += strings.Repeat("0", 3-digits)
	}
	if fraction != "" {
		fraction = "." + fraction
	}
	return fmt.Sprintf("%*s%-3s %s", integer, whole, fraction, unit)
}

// DirectionWord returns the word before the far end of a direction: "to" or "from".
func DirectionWord(d transfer.Direction) string {
	if d == transfer.Up {
		return "to"
	}
	return "from"
}

// Owner returns the process, unit or container of a connection for one cell: "ssh[2]", or "rsync[1], by its ssh[2]"
// where its parent was asked for.
func Owner(c *record.WatchedConnection) string {
	name := processText(cmp.Or(c.Script, c.Program, c.Unit, c.Container, "?"), c.PID)
	if c.ParentPID > 0 {
		name = processText(cmp.Or(c.ParentProgram, "?"), c.ParentPID) + ", by its " + name
	}
	return name
}

func processText(name string, pid int) string {
	if pid > 0 {
		name += fmt.Sprintf("[%d]", pid)
	}
	return name
}

// Limited formats a direction's limiter in a few words.
func Limited(d *record.WatchedDirection) string {
	if fromElsewhere(d) {
		return "not this host"
	}
	text := string(d.Limiter) + verdict.Suffix(d.Subtype)
	if d.Direction == transfer.Down && d.Limiter == verdict.Bottleneck && d.Confidence == verdict.Low {
		text = "probably " + text
	}
	if share, ok := d.Shares[d.Limiter]; ok && d.Limiter != verdict.Unknown {
		text += " " + percent(share)
	}
	open := d.Limiter == verdict.Unknown || d.Limiter == verdict.Mixed || d.Limiter == verdict.Sender
	if open && len(d.Candidates) > 0 && (d.Direction == transfer.Up || len(d.Candidates) <= 2) { // a receiver has nine
		text += ": " + candidatesText(d.Candidates)
	}
	return text
}

// fromElsewhere reports whether the sender or the path limits the rate to this host and it is not known which.
func fromElsewhere(d *record.WatchedDirection) bool {
	return d.Direction == transfer.Down && d.Limiter == verdict.Unknown && len(d.Candidates) > 2 &&
		!slices.Contains(d.Candidates, verdict.ReceiverWindow) && !slices.Contains(d.Candidates, verdict.ReceiverApplication)
}

func candidatesText(names []verdict.Name) string {
	const shown = 4
	var words []string
	for _, n := range names[:min(shown, len(names))] {
		words = append(words, string(n))
	}
	if len(names) > shown {
		words = append(words, "…")
	}
	return strings.Join(words, ", ")
}
