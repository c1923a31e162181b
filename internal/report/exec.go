package report

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/steer"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Exec is what `exec` reports of a program's connections.
type Exec struct {
	Header
	Command       []string         `json:"command"`
	Status        int              `json:"status"`
	ElapsedS      float64          `json:"elapsed_s"`
	Connections   []ExecConnection `json:"connections"`
	ProcessesLeft int              `json:"processes_left,omitempty"`
	Warnings      []string         `json:"warnings,omitempty"`
}

// ExecConnection is one connection of the program.
type ExecConnection struct {
	Role   string `json:"role"` // "opened" or "accepted"
	Local  string `json:"local"`
	Remote string `json:"remote"`
	// Rule is the destination of the rule that the connection followed: "any" or a prefix.
	Rule       string      `json:"rule,omitempty"`
	LastedS    *float64    `json:"lasted_s,omitempty"`
	Congestion string      `json:"congestion,omitempty"`
	MSSBytes   *int        `json:"mss_bytes,omitempty"`
	Windows    Windows     `json:"windows"`
	Program    *ExecAsked  `json:"program,omitempty"`
	Directions []Direction `json:"directions"`
	// Unseen says that the connection's payload could not be read.
	Unseen bool `json:"unseen,omitempty"`
}

// ExecAsked is what the program itself asked for.
type ExecAsked struct {
	Ignored            bool `json:"ignored"`
	SendBufferBytes    *int `json:"send_buffer_bytes,omitempty"`
	ReceiveBufferBytes *int `json:"receive_buffer_bytes,omitempty"`
}

// NewExec describes a steered program's run and judges each of its connections.
func NewExec(h Header, command []string, status int, cfg steer.Config, r *steer.Report) *Exec {
	e := &Exec{Header: h, Command: command, Status: status, ElapsedS: r.Took.Seconds(), ProcessesLeft: r.Left,
		Warnings: r.Warnings, Connections: []ExecConnection{}}
	for i := range r.Connections {
		e.Connections = append(e.Connections, newExecConnection(&r.Connections[i], cfg.Rules, cfg.IgnoreProgramBuffers))
	}
	if r.Missed {
		e.Warnings = append(e.Warnings, fmt.Sprintf("only the first %d connections are listed", len(r.Connections)))
	}
	return e
}

func newExecConnection(c *steer.Connection, rules []steer.Rule, ignored bool) ExecConnection {
	s := &c.Stream
	out := ExecConnection{Role: "accepted", Local: s.Local.String(), Remote: s.Remote.String(), Congestion: s.Congestion,
		Windows: Windows{newBuffer(s.SendBuffer), newBuffer(s.ReceiveBuffer)}, Directions: []Direction{}, Unseen: !c.Seen()}
	if c.Opened {
		out.Role = "opened"
	}
	if c.Lasted > 0 {
		out.LastedS = seconds(c.Lasted)
	}
	if s.Handshake != nil {
		out.MSSBytes = &s.Handshake.MSS
	}
	if c.AskedSend > 0 || c.AskedReceive > 0 {
		out.Program = &ExecAsked{ignored, known(c.AskedSend), known(c.AskedReceive)}
	}
	var asked transfer.Socket
	if c.Rule >= 0 && c.Rule < len(rules) {
		out.Rule, asked = "any", rules[c.Rule].Socket
		if to := rules[c.Rule].To; to.IsValid() {
			out.Rule = to.String()
		}
	}
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		if result := c.Result(d, asked); result != nil {
			out.Directions = append(out.Directions, NewDirection(result, limiter.Judge(result), nil))
		}
	}
	return out
}

// bytes is the payload of both directions.
func (c *ExecConnection) bytes() (sum int64) {
	for _, d := range c.Directions {
		if d.Bytes != nil {
			sum += *d.Bytes
		}
	}
	return sum
}

// worth is the payload from which a direction's speed says something: a request line or
// a reply's status does not.
const worth = 64 << 10

// WriteText prints the account for a person: the heaviest connections, the rest counted.
func (e *Exec) WriteText(w io.Writer) {
	const shown = 20
	fmt.Fprintf(w, "exec: %s: status %d after %s, %s\n", strings.Join(e.Command, " "), e.Status, secondsText(e.ElapsedS),
		count(len(e.Connections), "connection"))
	heaviest := slices.Clone(e.Connections)
	slices.SortStableFunc(heaviest, func(a, b ExecConnection) int { return cmp.Compare(b.bytes(), a.bytes()) })
	rest := heaviest[min(shown, len(heaviest)):]
	t := newTable(1, 2)
	t.row("connection", "payload", "goodput", "send buffer", "receive buffer", "congestion", "limited by")
	for i := range heaviest[:len(heaviest)-len(rest)] {
		heaviest[i].rows(t)
	}
	if len(heaviest) > 0 {
		t.write(w, "  ")
	}
	if len(rest) > 0 {
		var sum int64
		for i := range rest {
			sum += rest[i].bytes()
		}
		fmt.Fprintf(w, "  and %s with %s together\n", count(len(rest), "lighter connection"), units.Size(sum))
	}
	e.writeNotes(w)
}

func (c *ExecConnection) rows(t *table) {
	name := "to " + c.Remote
	if c.Role == "accepted" {
		name = "from " + c.Remote
	}
	send, receive, congestion := c.Windows.SendBuffer.short(), c.Windows.ReceiveBuffer.short(), c.Congestion
	written := false
	for i := range c.Directions {
		d := &c.Directions[i]
		if d.Bytes == nil || *d.Bytes < worth && c.bytes() >= worth {
			continue
		}
		arrow := "sent"
		if d.Direction == transfer.Down {
			arrow = "received"
		}
		speed, verdict := "", ""
		if *d.Bytes >= worth && d.GoodputBps != nil {
			speed, verdict = units.Rate(*d.GoodputBps).String(), d.shortVerdict()
		}
		t.row(name, fmt.Sprintf("%s %s", units.Size(*d.Bytes), arrow), speed, send, receive, congestion, verdict)
		name, send, receive, congestion, written = "", "", "", "", true
	}
	if !written {
		payload := "none"
		if c.Unseen {
			payload = "not seen"
		}
		t.row(name, payload, "", send, receive, congestion, "")
	}
}

// shortVerdict leaves the candidates to the JSON: they are many where only one end is
// seen.
func (d *Direction) shortVerdict() string {
	text := string(d.Limiter)
	if d.Subtype != "" {
		text += " (" + d.Subtype + ")"
	}
	return text + ", " + string(d.Confidence) + " confidence"
}

// short is a buffer in a table's cell.
func (b *Buffer) short() string {
	text := "automatic"
	if b.RequestedBytes != nil {
		text = units.Size(*b.RequestedBytes).String()
	}
	if b.Clipped && b.GrantedBytes != nil {
		text += fmt.Sprintf(" (got %s)", units.Size(*b.GrantedBytes/2))
	}
	return text
}

func (e *Exec) writeNotes(w io.Writer) {
	var clipped bool
	var ignored, own int
	for i := range e.Connections {
		c := &e.Connections[i]
		clipped = clipped || c.Windows.SendBuffer.Clipped || c.Windows.ReceiveBuffer.Clipped
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
		fmt.Fprintf(w, "  note: the program set buffers of its own on %s (--ignore-program-buffers keeps it from that)\n", count(own, "connection"))
	}
	if clipped {
		fmt.Fprintln(w, "  note: some connections got smaller buffers than asked: they ended first, or the program set its own")
	}
	if e.ProcessesLeft > 0 {
		fmt.Fprintf(w, "  note: %s still running; connections that stand keep what they have, new ones get the system's defaults\n",
			isAre(e.ProcessesLeft, "process"))
	}
	for _, text := range e.Warnings {
		fmt.Fprintln(w, "  note: "+text)
	}
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func isAre(n int, what string) string {
	if n == 1 {
		return "1 " + what + " is"
	}
	return fmt.Sprintf("%d %ses are", n, what)
}
