package record

import (
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// ExplainedLimiter describes a limiter, its evidence and its remedies.
type ExplainedLimiter struct {
	Limiter     verdict.Name `json:"limiter"`
	Subtype     string       `json:"subtype,omitempty"`
	Description string       `json:"what"`
	Looks       string       `json:"looks"`
	Sure        string       `json:"sure"`
	Fix         []remedy.Fix `json:"fix"`
	Lab         string       `json:"lab,omitempty"` // the command that shows one
}
