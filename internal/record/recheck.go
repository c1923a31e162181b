package record

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/plan"
)

// Recheck is the object that `recheck --json` prints: one at the end, or with --every one
// for each visit. Each test is a measure document of its own, kept in the history.
type Recheck struct {
	Header
	Tests       []RecheckTest  `json:"tests"`
	Events      []RecheckEvent `json:"events"`
	Interrupted bool           `json:"interrupted,omitempty"`
}

// RecheckTest is one test, or one that was due and skipped.
type RecheckTest struct {
	Far        string             `json:"peer"`
	At         time.Time          `json:"at"`
	Origin     Origin             `json:"origin"` // scheduled, or a re-test of a suspicion
	RunID      string             `json:"run_id,omitempty"`
	Directions []RecheckDirection `json:"directions"`
	Bytes      *int64             `json:"bytes,omitempty"`
	TookS      *float64           `json:"took_s,omitempty"`
	// Skipped is the reason: quiet-hours, bytes-budget, time-budget, busy or policy.
	Skipped string   `json:"skipped,omitempty"`
	Error   *Failure `json:"error,omitempty"`
	// NextAt is when this far end is tested next; absent: not by this process.
	NextAt *time.Time `json:"next_at,omitempty"`
}

// RecheckDirection is a test's result in one direction, and the usual level there.
type RecheckDirection struct {
	Figure
	UsualBps  *float64          `json:"usual_bps,omitempty"` // absent: too few results
	WithinBps float64           `json:"-"`                   // how far a usual result may lie from UsualBps
	Results   int               `json:"results"`             // from which the usual level follows
	State     changepoint.State `json:"state"`
}

// RecheckEvent is a change of a path.
type RecheckEvent struct {
	// Event is dip or rise (the level differs now), changed (it stays different) or back.
	Event     changepoint.Event `json:"event"`
	Far       string            `json:"peer"`
	Direction string            `json:"direction,omitempty"` // absent: the path's
	Metric    string            `json:"metric"`              // goodput, rtt, limiter, mtu, handshake or far_kernel
	At        time.Time         `json:"at"`
	Since     time.Time         `json:"since"` // time of the first result that differed
	RunID     string            `json:"run_id,omitempty"`
	// Levels are medians; Before and After name limiters, options and kernels.
	BeforeBps     *float64     `json:"before_bps,omitempty"`
	AfterBps      *float64     `json:"after_bps,omitempty"`
	BeforeRTTMinS *float64     `json:"before_rtt_min_s,omitempty"`
	AfterRTTMinS  *float64     `json:"after_rtt_min_s,omitempty"`
	Before        string       `json:"before,omitempty"`
	After         string       `json:"after,omitempty"`
	P             *float64     `json:"p,omitempty"`
	Confidence    string       `json:"confidence"`
	Plan          *RecheckPlan `json:"plan,omitempty"`
	Text          string       `json:"text,omitempty"`
}

// RecheckPlan reports whether the settings that fullpipe applied on this host still suffice after the path changed.
type RecheckPlan struct {
	Applied []string `json:"applied"` // names of the settings that are fullpipe's
	Fits    bool     `json:"fits"`
	RateBps float64  `json:"rate_bps"` // the rate that the plan is made for
	RTTMinS float64  `json:"rtt_min_s"`
	// WindowBytes is the window that the path needs now, Settings the changes that give it.
	WindowBytes int            `json:"window_bytes"`
	Settings    []plan.Setting `json:"settings,omitempty"`
}
