package record

import "github.com/fullpipe-net/fullpipe/internal/plan"

// CapturedSettings are what to set at one end if it runs the target system: a capture
// does not say which.
type CapturedSettings struct {
	Target   string         `json:"target"`
	At       string         `json:"at"` // the end's address and port
	Settings []plan.Setting `json:"settings"`
}
