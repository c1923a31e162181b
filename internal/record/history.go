package record

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// History is the object that `history --json` prints, the oldest run first.
type History struct {
	Header
	Runs []HistoryRun `json:"runs"`
}

// HistoryRun summarizes one stored record.
type HistoryRun struct {
	ID         string            `json:"id"`
	PathKey    string            `json:"path_key"`
	Far        string            `json:"peer"`
	Kind       string            `json:"kind"`
	StartedAt  time.Time         `json:"started_at"`
	Origin     Origin            `json:"origin"`
	Outcome    Outcome           `json:"outcome"`
	Labels     map[string]string `json:"labels,omitempty"`
	Directions []Figure          `json:"directions"`
}

// Figure is one direction's result. GoodputBps is payload.
type Figure struct {
	Direction  string   `json:"direction"`
	GoodputBps *float64 `json:"goodput_bps,omitempty"`
	RTTMinS    *float64 `json:"rtt_min_s,omitempty"`
	Limiter    string   `json:"limiter,omitempty"`
	// RetransmittedRatio is the count of retransmitted segments over the segments that the payload fills.
	RetransmittedRatio *float64 `json:"retransmitted_ratio,omitempty"`
	// Verdict and Strength are the decision of a tune; absent for other commands and documents of older versions.
	Verdict  search.Verdict  `json:"verdict,omitempty"`
	Strength search.Strength `json:"strength,omitempty"`
	// LostAt are the places that dropped packets, of most bytes first: SIDE/PLACE, or between-hosts.
	LostAt []string `json:"lost_at,omitempty"`
	// RequestsPerS, P50S and P99S are of a load of requests.
	RequestsPerS *float64 `json:"requests_per_s,omitempty"`
	P50S         *float64 `json:"p50_s,omitempty"`
	P99S         *float64 `json:"p99_s,omitempty"`
}

// Changes is the object that `history changes --json` prints.
type Changes struct {
	Header
	Changes []PathChange `json:"changes"`
}

// PathChange is a change of a path's level or limiter.
type PathChange struct {
	PathKey       string    `json:"path_key"`
	Far           string    `json:"peer"`
	Direction     string    `json:"direction"`
	At            time.Time `json:"at"`
	RunID         string    `json:"run_id"` // the first run after the change
	Metric        string    `json:"metric"` // goodput, limiter or rtt
	BeforeBps     *float64  `json:"before_bps,omitempty"`
	AfterBps      *float64  `json:"after_bps,omitempty"`
	BeforeRTTMinS *float64  `json:"before_rtt_min_s,omitempty"`
	AfterRTTMinS  *float64  `json:"after_rtt_min_s,omitempty"`
	P             *float64  `json:"p,omitempty"`
	BeforeLimiter string    `json:"before_limiter,omitempty"`
	AfterLimiter  string    `json:"after_limiter,omitempty"`
	Confidence    string    `json:"confidence"`
}

// Difference is the object that `history compare --json` prints.
type Difference struct {
	Header
	First      DifferenceRun         `json:"first"`
	Second     DifferenceRun         `json:"second"`
	Directions []DifferenceDirection `json:"directions"`
	// Levels are those of all results of the series before and since a time, where asked for.
	Levels []DifferenceLevels `json:"levels,omitempty"`
	// Cells are those that two sweeps both measured. They agree on each axis with several values.
	Cells []DifferenceCell `json:"cells,omitempty"`
	// Differ lists the different settings in force, program properties and labels.
	Differ []DifferentValue `json:"differ"`
}

// DifferenceRun identifies one of the two runs.
type DifferenceRun struct {
	ID        string    `json:"id,omitempty"`
	Far       string    `json:"peer"`
	Kind      string    `json:"kind"`
	StartedAt time.Time `json:"started_at"`
}

// DifferenceDirection is one direction of both runs; absent values were not measured.
type DifferenceDirection struct {
	Direction string   `json:"direction"`
	First     *Figure  `json:"first,omitempty"`
	Second    *Figure  `json:"second,omitempty"`
	Factor    *float64 `json:"second_over_first,omitempty"`
}

// DifferenceCell is a cell of two sweeps.
type DifferenceCell struct {
	First  DifferenceCellFigure `json:"first"`
	Second DifferenceCellFigure `json:"second"`
	Factor float64              `json:"second_over_first"`
}

// DifferenceCellFigure is a measured cell of one sweep.
type DifferenceCellFigure struct {
	SweepSetup
	GoodputBps float64      `json:"goodput_bps"`
	Limiter    verdict.Name `json:"limiter,omitempty"`
}

// DifferentValue is a property that differs between the runs; absent values are not known.
type DifferentValue struct {
	Name   string  `json:"name"`
	First  *string `json:"first,omitempty"`
	Second *string `json:"second,omitempty"`
}

// Split separates a document from the samples in it.
func Split(text []byte) (doc, samples []byte, err error) {
	if err := checkSize(text); err != nil {
		return nil, nil, err
	}
	var object map[string]json.RawMessage
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, nil, fmt.Errorf("no JSON object: %w", err)
	}
	samples = object["samples"]
	if samples == nil {
		return text, nil, nil
	}
	decoded, err := Decode(text, nil)
	if err != nil {
		return nil, nil, err
	}
	if doc, err = Encode(decoded); err != nil {
		return nil, nil, err
	}
	return doc, samples, nil
}
