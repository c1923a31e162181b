package record

import "github.com/fullpipe-net/fullpipe/internal/units"

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
	Rule       string         `json:"rule,omitempty"`
	Lasted     units.Duration `json:"lasted_s,omitzero"`
	Congestion string         `json:"congestion,omitempty"`
	MSSBytes   int            `json:"mss_bytes,omitempty"`
	Windows    Windows        `json:"windows"`
	Program    *ExecAsked     `json:"program,omitempty"`
	Directions []Direction    `json:"directions"`
	// Unseen says that the connection's payload could not be read.
	Unseen bool `json:"unseen,omitempty"`
}

// ExecAsked is what the program itself asked for.
type ExecAsked struct {
	Ignored            bool `json:"ignored"`
	SendBufferBytes    int  `json:"send_buffer_bytes,omitempty"`
	ReceiveBufferBytes int  `json:"receive_buffer_bytes,omitempty"`
}
