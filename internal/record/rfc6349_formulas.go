package record

import (
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Formula is one line of arithmetic with everything that went into it.
type Formula struct {
	Direction transfer.Direction `json:"direction,omitempty"`
	Name      string             `json:"name"`
	Source    string             `json:"source"`
	Formula   string             `json:"formula"` // in words
	Inputs    map[string]float64 `json:"inputs"`  // keys carry SI units
	Result    float64            `json:"result"`
	Unit      string             `json:"unit"` // of the result
	Text      string             `json:"text"` // with its numbers
}
