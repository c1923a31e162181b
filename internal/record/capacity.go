package record

import (
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Capacity is the object that `measure --udp --capacity --json` prints.
type Capacity struct {
	Header
	Peer       string              `json:"peer"`
	Directions []CapacityDirection `json:"directions"`
	Error      *Failure            `json:"error,omitempty"`
}

// CapacityDirection is the largest rate that UDP got through one way, at the IP layer.
type CapacityDirection struct {
	Direction   transfer.Direction     `json:"direction"`
	Protocol    string                 `json:"protocol"` // "udp"
	CapacityBps float64                `json:"ip_capacity_bps"`
	AtLeast     bool                   `json:"at_least"` // the sender, not the path, set the end
	Method      string                 `json:"method"`   // ByFeedback or ByTrials
	Trials      []search.CapacityTrial `json:"trials"`   // or, by feedback, each second of the one
}

// The search methods.
const (
	ByFeedback = "feedback" // RFC 9097: the sender adjusts its rate every 50 ms to the receiver's feedback
	ByTrials   = "trials"   // whole trials of a second, by the RFC's thresholds
)
