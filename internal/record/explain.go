package record

import (
	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// ExplainedLimiter describes a limiter, its evidence and its remedies.
type ExplainedLimiter struct {
	Limiter     verdict.Name `json:"limiter"`
	Subtype     string       `json:"subtype,omitempty"`
	Description string       `json:"what"`
	Looks       string       `json:"looks"`
	Sure        string       `json:"sure"`
	Fix         []advice.Fix `json:"fix"`
	Lab         string       `json:"lab,omitempty"` // the command that shows one
}
