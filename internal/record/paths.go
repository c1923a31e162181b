package record

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/search"
)

// Paths is the object that the page's API returns: the paths of the history, the one with the newest result first.
type Paths struct {
	Header
	Paths []KeptPath `json:"paths"`
}

// KeptPath is one path with its newest results.
type KeptPath struct {
	PathKey    string          `json:"path_key"`
	Far        string          `json:"peer"`
	Label      string          `json:"label,omitempty"`
	Runs       int             `json:"runs"`
	NewestAt   time.Time       `json:"newest_at"`
	Directions []KeptDirection `json:"directions"`
}

// KeptDirection is one direction of a path: its newest results, each against those before.
type KeptDirection struct {
	Direction string      `json:"direction"`
	Results   []KeptPoint `json:"results"` // the oldest first
}

// AcceptedLabel is the label of a result whose limiter and rate somebody accepted: later results like it are no
// trouble.
const AcceptedLabel = "accepted"

// Standing compares a result with the earlier results of its path.
type Standing string

// The closed list.
const (
	AsUsual   Standing = "usual"
	Lower     Standing = "lower"  // by more than is usual, and by 15 % at least
	Higher    Standing = "higher" // likewise
	TooFew    Standing = "few"    // fewer than five results before it
	NoFigures Standing = "none"   // it failed, or has no goodput
)

// StandingOf compares a goodput with the usual range of its path.
func StandingOf(bps float64, usual changepoint.Past) Standing {
	switch usual.Beyond(bps) {
	case -1:
		return Lower
	case 1:
		return Higher
	}
	return AsUsual
}

// KeptPoint is one result of a direction.
type KeptPoint struct {
	ID         string    `json:"id"`
	StartedAt  time.Time `json:"started_at"`
	Outcome    Outcome   `json:"outcome"`
	GoodputBps *float64  `json:"goodput_bps,omitempty"`
	RTTMinS    *float64  `json:"rtt_min_s,omitempty"`
	Limiter    string    `json:"limiter,omitempty"`
	// RetransmittedRatio is the count of retransmitted segments over the segments that the payload fills.
	RetransmittedRatio *float64 `json:"retransmitted_ratio,omitempty"`
	// Verdict and Strength are the decision of a tune; absent for other commands.
	Verdict  search.Verdict  `json:"verdict,omitempty"`
	Strength search.Strength `json:"strength,omitempty"`

	Against Standing `json:"against"`
	// Accepted reports whether somebody accepted the limiter and the rate of this result.
	Accepted bool `json:"accepted,omitempty"`
	// UsualBps is the median of the results before it, at most 48.
	UsualBps *float64 `json:"usual_bps,omitempty"`
}
