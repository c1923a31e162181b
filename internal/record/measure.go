package record

import (
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Host identifies an end in a report.
type Host struct {
	Address    string `json:"address,omitempty"`
	Kernel     string `json:"kernel,omitempty"`
	Congestion string `json:"congestion,omitempty"`
}

// Measure is the object that `measure --json` prints.
type Measure struct {
	Header
	Peer       string      `json:"peer"`
	Near       *Host       `json:"near,omitempty"`
	Far        *Host       `json:"far,omitempty"`
	Directions []Direction `json:"directions"`
	Criteria   []Criterion `json:"criteria,omitempty"`
	Error      *Failure    `json:"error,omitempty"`
}

// Criterion is a requirement of a measurement, and whether it passed.
type Criterion struct {
	Direction   transfer.Direction `json:"direction"`
	Criterion   string             `json:"criterion"` // fail-below or fail-on
	LeastBps    float64            `json:"least_bps,omitempty"`
	MeasuredBps *float64           `json:"measured_bps,omitempty"` // absent: not known, which does not pass
	Refused     []string           `json:"refused,omitempty"`      // LIMITER or LIMITER/SUBTYPE; lost-at:PLACE; waits:KIND
	Limiter     string             `json:"limiter,omitempty"`
	// LostAt has the places of loss as SIDE/PLACE where Refused has places; absent: none, or not
	// known, which does not pass.
	LostAt []string `json:"lost_at,omitempty"`
	// WaitsFor is the longest wait of the program, where Refused has kinds of waits.
	WaitsFor string `json:"waits_for,omitempty"`
	Passed   bool   `json:"passed"`
}
