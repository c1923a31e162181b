package text

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/sockops"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// execConnectionBytes returns the payload of both directions.
func execConnectionBytes(c *record.ExecConnection) (sum int64) {
	for _, d := range c.Directions {
		if d.Bytes != nil {
			sum += *d.Bytes
		}
	}
	return sum
}

// ExecWarnings formats the gaps in a program's report.
func ExecWarnings(r *sockops.Report) (lines []string) {
	if r.Refused != nil {
		lines = append(lines, "buffers above net.core.wmem_max or rmem_max were refused: "+r.Refused.Error())
	}
	for _, err := range r.Failures {
		lines = append(lines, err.Error())
	}
	if r.Missed {
		lines = append(lines, fmt.Sprintf("only the first %d connections are listed", len(r.Connections)))
	}
	return lines
}

// minJudgedBytes is the least payload of a direction with a goodput and a verdict: more than a request or a reply's
// status.
const minJudgedBytes = 64 << 10

// Exec prints the report: the connections with the most payload, and the number of the others.
func Exec(w io.Writer, e *record.Exec) {
	const shown = 20
	fmt.Fprintf(w, "exec: %s: status %d after %s, %s\n", strings.Join(e.Command, " "), e.Status, SecondsText(e.ElapsedS),
		count(len(e.Connections), "connection"))
	heaviest := slices.Clone(e.Connections)
	slices.SortStableFunc(heaviest, func(a, b record.ExecConnection) int {
		return cmp.Compare(execConnectionBytes(&b), execConnectionBytes(&a))
	})
	rest := heaviest[min(shown, len(heaviest)):]
	t := newTable(1, 2)
	t.optional = []int{5, 4, 3} // congestion, the buffers
	t.row("connection", "payload", "goodput", "send buffer", "receive buffer", "congestion", "limited by")
	for i := range heaviest[:len(heaviest)-len(rest)] {
		execConnectionRows(&heaviest[i], t)
	}
	if len(heaviest) > 0 {
		t.write(w, "  ")
	}
	if len(rest) > 0 {
		var sum int64
		for i := range rest {
			sum += execConnectionBytes(&rest[i])
		}
		fmt.Fprintf(w, "  and %s with %s together\n", count(len(rest), "lighter connection"), units.Size(sum))
	}
	if len(heaviest) > 0 {
		writeExecAction(w, heaviest[0].Directions)
	}
	writeExecNotes(w, e)
}

// writeExecAction prints what the program waited for and the action for the direction with more
// payload, if it has enough.
func writeExecAction(w io.Writer, directions []record.Direction) {
	var most *record.Direction
	for i := range directions {
		if d := &directions[i]; d.Bytes != nil && *d.Bytes >= minJudgedBytes && (most == nil || *d.Bytes > *most.Bytes) {
			most = d
		}
	}
	if most == nil {
		return
	}
	if row := Waits(most.Waits); row != "" {
		fmt.Fprintln(w, hanging(w, "  - ", row))
	}
	if action := doAbout(most.Fix, most.Verdict); action != "" {
		writeDo(w, action)
	}
}

func execConnectionRows(c *record.ExecConnection, t *table) {
	name := "to " + c.Remote
	if c.Role == "accepted" {
		name = "from " + c.Remote
	}
	send := bufferShort(c.Windows.SendBuffer)
	receive := bufferShort(c.Windows.ReceiveBuffer)
	congestion := c.Congestion
	written := false
	for i := range c.Directions {
		d := &c.Directions[i]
		if d.Bytes == nil || *d.Bytes < minJudgedBytes && execConnectionBytes(c) >= minJudgedBytes {
			continue
		}
		arrow := "sent"
		if d.Direction == transfer.Down {
			arrow = "received"
		}
		var speed, verdict string
		if *d.Bytes >= minJudgedBytes && d.GoodputBps != nil {
			speed = units.Rate(*d.GoodputBps).String()
			verdict = directionShortVerdict(d)
		}
		t.row(name, fmt.Sprintf("%s %s", units.Size(*d.Bytes), arrow), speed, send, receive, congestion, verdict)
		name = ""
		send = ""
		receive = ""
		congestion = ""
		written = true
	}
	if !written {
		payload := "none"
		if c.Unseen {
			payload = "not seen"
		}
		t.row(name, payload, "", send, receive, congestion, "")
	}
}

// directionShortVerdict returns the limiter and its confidence. The candidates are only in JSON: they are many if only
// one end was measured.
func directionShortVerdict(d *record.Direction) string {
	text := string(d.Limiter) + verdict.Suffix(d.Subtype)
	return text + ", " + string(d.Confidence) + " confidence"
}

// bufferShort returns a buffer for a table's cell.
func bufferShort(b *record.Buffer) string {
	if b == nil {
		return ""
	}
	text := "automatic"
	if b.RequestedBytes > 0 {
		text = units.Size(b.RequestedBytes).String()
	}
	if b.Clipped && b.GrantedBytes > 0 {
		text += fmt.Sprintf(" (got %s)", units.Size(b.GrantedBytes/2))
	}
	return text
}

func writeExecNotes(w io.Writer, e *record.Exec) {
	var clipped bool
	var ignored, own int
	for i := range e.Connections {
		c := &e.Connections[i]
		clipped = clipped || isClipped(c.Windows.SendBuffer) || isClipped(c.Windows.ReceiveBuffer)
		switch {
		case c.Program == nil:
		case c.Program.Ignored:
			ignored++
		default:
			own++
		}
	}
	if ignored > 0 {
		fmt.Fprintf(w, "  note: the program's own buffer sizes were ignored on %s\n", count(ignored, "connection"))
	}
	if own > 0 {
		fmt.Fprintf(w, "  note: the program set buffers of its own on %s (--ignore-program-buffers keeps it from that)\n",
			count(own, "connection"))
	}
	if clipped {
		fmt.Fprintln(w, "  note: some connections got smaller buffers than asked: they ended first, or the program set its "+
			"own")
	}
	if e.ProcessesLeft > 0 {
		fmt.Fprintf(w, "  note: %s still running; open connections keep their settings, new ones get the system's "+
			"defaults\n",
			agree(e.ProcessesLeft, "process", "is", "are"))
	}
	for _, text := range e.Warnings {
		fmt.Fprintln(w, "  note: "+text)
	}
}

func isClipped(b *record.Buffer) bool { return b != nil && b.Clipped }

func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	if strings.HasSuffix(noun, "s") {
		noun += "e"
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// agree returns a number of things with the words that agree with it.
func agree(n int, noun, one, many string) string {
	if n == 1 {
		many = one
	}
	return count(n, noun) + " " + many
}
