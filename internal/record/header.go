// Package record defines the documents of every command: --json prints them, the history stores them and the renderers
// read them. Keys carry SI units; an absent key means "not known", never 0.
package record

import (
	"time"
)

// Header opens every JSON object that fullpipe prints.
type Header struct {
	Schema    string    `json:"schema"` // "fullpipe/COMMAND/v1"
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
	*Envelope
	Late *Late `json:"late,omitempty"` // in a lab
}

// Failure is an error as users read it: its argument, its cause and a remedy.
type Failure struct {
	Code     string `json:"code"` // stable: docs/exit-status.md
	Argument string `json:"argument,omitempty"`
	Message  string `json:"message"`
	Try      string `json:"try,omitempty"`
}

// CommandFailed is the object that any command prints with --json when it fails without a result.
type CommandFailed struct {
	Header
	Error *Failure `json:"error"`
}
