package record

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Predict is the object that `predict --json` prints.
type Predict struct {
	Header
	Path        PredictPath    `json:"path"`
	Direction   string         `json:"direction"`
	Connections int            `json:"connections"`
	Goodput     PredictRange   `json:"goodput"`
	Limiter     verdict.Name   `json:"limiter"`
	Subtype     string         `json:"subtype,omitempty"`
	Sure        bool           `json:"sure"`
	Candidates  []verdict.Name `json:"candidates,omitempty"`
	GainFactor  float64        `json:"gain_factor,omitempty"` // what the goodput would be without the limiter
	Next        *PredictNext   `json:"next,omitempty"`
	Time        *PredictTimes  `json:"time,omitempty"`
	BDPBytes    int64          `json:"bdp_bytes,omitempty"`
	// WindowBytes and InFlightBytes are what the receiver and the sender allow each
	// connection; absent where nothing bounds it.
	WindowBytes   int          `json:"window_bytes,omitempty"`
	InFlightBytes int          `json:"in_flight_bytes,omitempty"`
	Caps          []PredictCap `json:"caps"`
	Warnings      []string     `json:"warnings"`
}

// PredictPath is the path that was asked about.
type PredictPath struct {
	Text    string  `json:"text"`
	RateBps float64 `json:"rate_bps,omitempty"`
	RTTS    float64 `json:"rtt_s"`
}

// PredictRange is a goodput: the middle and where it will lie nine times in ten.
type PredictRange struct {
	LowBps     float64 `json:"low_bps"`
	TypicalBps float64 `json:"typical_bps"`
	HighBps    float64 `json:"high_bps"`
}

// PredictTimes is how long the stated bytes take.
type PredictTimes struct {
	LowS     float64 `json:"low_s"`
	TypicalS float64 `json:"typical_s"`
	HighS    float64 `json:"high_s"`
}

// PredictNext is what would limit without the limiter.
type PredictNext struct {
	Limiter verdict.Name `json:"limiter,omitempty"`
	PredictRange
}

// PredictCap is one formula's bound.
type PredictCap struct {
	Limiter verdict.Name `json:"limiter"`
	Bps     float64      `json:"goodput_bps"`
	Text    string       `json:"text"`
}
