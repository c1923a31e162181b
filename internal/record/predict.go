package record

import (
	"github.com/fullpipe-net/fullpipe/internal/predict"
)

// Predict is the object that `predict --json` prints.
type Predict struct {
	Header
	Path        PredictPath `json:"path"`
	Direction   string      `json:"direction"`
	Connections int         `json:"connections"`
	predict.Answer
}

// PredictPath is the path of a prediction.
type PredictPath struct {
	Text    string  `json:"text"`
	RateBps float64 `json:"rate_bps,omitempty"`
	RTTS    float64 `json:"rtt_s"`
}
