package record

import "github.com/fullpipe-net/fullpipe/internal/plan"

// CapturedSettings are the recommended settings of one end if it runs the target system. A capture does not identify
// the system.
type CapturedSettings struct {
	Target   string         `json:"target"`
	At       string         `json:"at"` // the end's address and port
	Settings []plan.Setting `json:"settings"`
}
