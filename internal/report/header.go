// Package report turns what was measured into what people and programs read: aligned
// text and the JSON contract, whose keys carry SI units and in which an absent key
// means "not known".
package report

import "time"

// Header opens every JSON object that fullpipe prints.
type Header struct {
	Schema    string    `json:"schema"` // "fullpipe/COMMAND/v1"
	Version   string    `json:"version"`
	StartedAt time.Time `json:"started_at"`
}

// Failure is an error as users read it: on what, what went wrong, what to try.
type Failure struct {
	Argument string `json:"argument,omitempty"`
	Message  string `json:"message"`
	Try      string `json:"try,omitempty"`
}

// Text is the failure as lines for a terminal.
func (f Failure) Text() string {
	text := f.Message
	if f.Argument != "" {
		text = f.Argument + ": " + text
	}
	if f.Try != "" {
		text += "\n  try: " + f.Try
	}
	return text
}
