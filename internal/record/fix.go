package record

import (
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Fix is one thing to do about a limiter, or, where the verdict is open, what tells its
// candidates apart.
type Fix struct {
	Limiter verdict.Name  `json:"limiter"`
	Action  remedy.Action `json:"action"`
	Text    string        `json:"text,omitempty"` // the same in the imperative; filled in where documents are printed
	// Scope is program, route, host or network; absent where nothing is changed.
	Scope    remedy.Scope   `json:"scope,omitempty"`
	End      remedy.End     `json:"end"`
	Settings []plan.Setting `json:"settings"`
	Expected *Expected      `json:"expected,omitempty"` // absent: not known
	Source   string         `json:"source"`
}

// Expected is the goodput that a fix would give.
type Expected struct {
	LowBps  float64 `json:"low_bps"`
	HighBps float64 `json:"high_bps,omitempty"`
	AtLeast bool    `json:"at_least"` // what limits next is not known
}
