package report

import (
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/sockops"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// Exec returns the document of a program's run, with a verdict on each of its connections.
func Exec(h record.Header, command []string, status int, cfg sockops.Config, r *sockops.Report) *record.Exec {
	e := &record.Exec{Header: h, Command: command, Status: status, ElapsedS: r.Took.Seconds(), ProcessesLeft: r.Left,
		Warnings: text.ExecWarnings(r), Connections: []record.ExecConnection{}}
	for i := range r.Connections {
		e.Connections = append(e.Connections, newExecConnection(&r.Connections[i], cfg.Rules, cfg.IgnoreProgramBuffers))
	}
	return e
}

func newExecConnection(c *sockops.Connection, rules []sockops.Rule, ignored bool) record.ExecConnection {
	s := &c.Stream
	out := record.ExecConnection{Role: "accepted", Local: s.Local.String(), Remote: s.Remote.String(),
		Congestion: s.Congestion, Lasted: units.Duration(c.Lasted),
		Windows: record.Windows{SendBuffer: record.NewBuffer(&s.SendBuffer),
			ReceiveBuffer: record.NewBuffer(&s.ReceiveBuffer)},
		Directions: []record.Direction{}, Unseen: !c.Seen()}
	if c.Opened {
		out.Role = "opened"
	}
	if s.Handshake != nil {
		out.MSSBytes = s.Handshake.MSS
	}
	if c.AskedSend > 0 || c.AskedReceive > 0 {
		out.Program = &record.ExecAsked{Ignored: ignored, SendBufferBytes: c.AskedSend,
			ReceiveBufferBytes: c.AskedReceive}
	}
	var asked transfer.Socket
	if c.Rule >= 0 && c.Rule < len(rules) {
		out.Rule = "any"
		asked = rules[c.Rule].Socket
		if to := rules[c.Rule].To; to.IsValid() {
			out.Rule = to.String()
		}
	}
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		if result := c.Result(d, asked); result != nil {
			out.Directions = append(out.Directions, Direction(result, live.Judge(result), nil))
		}
	}
	return out
}
