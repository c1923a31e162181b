package report

import (
	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/sockops"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// Exec returns the document of a program's run, with a verdict on each of its connections.
func Exec(h record.Header, command []string, status int, cfg sockops.Config, r *sockops.Report) *record.Exec {
	e := &record.Exec{Header: h, Command: command, Status: status, ElapsedS: r.Took.Seconds(), ProcessesLeft: r.Left,
		Warnings: text.ExecWarnings(r), Connections: []record.ExecConnection{}}
	for i := range r.Connections {
		e.Connections = append(e.Connections, newExecConnection(&r.Connections[i], cfg, r.Waits))
	}
	return e
}

func newExecConnection(c *sockops.Connection, cfg sockops.Config, sampled []waits.Wait) record.ExecConnection {
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
		out.Program = &record.ExecAsked{Ignored: cfg.IgnoreProgramBuffers, SendBufferBytes: c.AskedSend,
			ReceiveBufferBytes: c.AskedReceive}
	}
	var asked transfer.Socket
	if c.Rule >= 0 && c.Rule < len(cfg.Rules) {
		out.Rule = "any"
		asked = cfg.Rules[c.Rule].Socket
		if to := cfg.Rules[c.Rule].To; to.IsValid() {
			out.Rule = to.String()
		}
	}
	for _, d := range []transfer.Direction{transfer.Up, transfer.Down} {
		if result := c.Result(d, asked); result != nil {
			judged := Direction(result, c.Watched(result).Judge(d == transfer.Up), nil)
			nameOwnBuffer(&judged, asked)
			judged.Waits, judged.Fix = ofProgram(sampled, judged.Verdict, record.OrZero(judged.GoodputBps), judged.Fix)
			out.Directions = append(out.Directions, judged)
		}
	}
	return out
}

// nameOwnBuffer adds the option of exec that set the limiting buffer to the first remedy of a direction.
func nameOwnBuffer(d *record.Direction, asked transfer.Socket) {
	own := plan.Setting{Where: "of exec, or of its rule", Value: "auto", Source: "fullpipe exec --help"}
	switch {
	case d.Direction == transfer.Up && d.Limiter == verdict.SendBuffer && asked.SendBuffer > 0:
		own.Role = plan.Sender
		own.Name = "--send-buffer"
	case d.Direction == transfer.Down && d.Limiter == verdict.ReceiverWindow && asked.ReceiveBuffer > 0:
		own.Role = plan.Receiver
		own.Name = "--receive-buffer"
	default:
		return
	}
	if len(d.Fix) > 0 && d.Fix[0].Action == advice.LargerWindows {
		d.Fix[0].Settings = append([]plan.Setting{own}, d.Fix[0].Settings...)
	}
}
