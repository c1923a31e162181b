package record

import (
	"fmt"

	"github.com/fullpipe-net/fullpipe/internal/steer"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
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
			out.Directions = append(out.Directions, NewDirection(result, live.Judge(result), nil))
		}
	}
	return out
}
