//go:build linux

package harness

import (
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
)

// TuneReport is the part of `tune --json` that the tests read.
type TuneReport struct {
	ElapsedS   float64 `json:"elapsed_s"`
	Late       *printed.Late
	Directions []struct {
		Verdict search.Verdict
		Path    struct {
			RTT        float64 `json:"rtt_min_s"`
			Capacity   float64 `json:"capacity_bps"`
			Bottleneck float64 `json:"bottleneck_bps"`
			MSS        int     `json:"mss_bytes"`
		}
		Before struct {
			Median   float64 `json:"median_bps"`
			Duration float64 `json:"duration_s"`
			Limiter  string  `json:"limiter"`
		}
		Chosen *struct {
			Automatic bool
			Window    int `json:"window_bytes"`
			Shown     bool
			Name      string
			Control   string  `json:"congestion_control"`
			Streams   int     `json:"streams"`
			PacingBps float64 `json:"pacing_bps"`
			MSS       int     `json:"mss_bytes"`
		}
		Gain *struct {
			Factor float64
			CI95   []float64
		}
		Remedies    []TuneRemedy
		Interrupted bool
	}
}

// TuneRemedy is a remedy that `tune` tried.
type TuneRemedy struct {
	Name   string
	Factor float64
	CI95   []float64
}

// Helps reports whether the whole confidence interval is above 1.
func (r TuneRemedy) Helps() bool { return len(r.CI95) == 2 && r.CI95[0] > 1 }
