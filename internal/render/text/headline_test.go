package text

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

func TestHeadline(t *testing.T) {
	loss := verdict.Evidence{Limiter: verdict.Congestion, Code: verdict.LossWithoutQueue,
		Values: verdict.Values{"retransmitted_ratio": 0.0042, "steady_bps": 6.9e6}}
	window := verdict.Evidence{Limiter: verdict.ReceiverWindow, Code: verdict.ReceiveWindowFull,
		Values: verdict.Values{"window_bytes": 65535, "rtt_s": 0.08}}
	for _, tt := range []struct {
		name  string
		v     verdict.Verdict
		facts advice.Facts
		path  float64
		want  string
	}{
		{"loss", verdict.Verdict{Limiter: verdict.Congestion, Confidence: verdict.High, Evidence: []verdict.Evidence{loss}},
			advice.Facts{Congestion: "cubic"}, 48e6,
			"6.9 Mbit/s up of about 48, limited by congestion (0.42 % loss, no queue). Try bbr."},
		{"path in another unit", verdict.Verdict{Limiter: verdict.Congestion, Confidence: verdict.High,
			Evidence: []verdict.Evidence{loss}}, advice.Facts{Congestion: "cubic"}, 1e9,
			"6.9 Mbit/s up of about 1 Gbit/s, limited by congestion (0.42 % loss, no queue). Try bbr."},
		{"path hardly faster", verdict.Verdict{Limiter: verdict.ReceiverWindow, Subtype: verdict.Fixed,
			Confidence: verdict.Medium, Evidence: []verdict.Evidence{window}}, advice.Facts{}, 7e6,
			"6.9 Mbit/s up, probably limited by receiver-window (fixed, 64 KiB at 80 ms). Enlarge the buffers of both ends."},
		{"low confidence", verdict.Verdict{Limiter: verdict.Pacing, Confidence: verdict.Low,
			Shares: verdict.Shares{verdict.Pacing: 0.8}}, advice.Facts{}, 0,
			"6.9 Mbit/s up, perhaps limited by pacing (80 % of the time). If it is pacing: raise or remove the pacing rate."},
		{"several candidates", verdict.Verdict{Limiter: verdict.SendBuffer, Confidence: verdict.Low,
			Candidates: []verdict.Name{verdict.SendBuffer, verdict.Bottleneck}}, advice.Facts{}, 0,
			"6.9 Mbit/s up, perhaps limited by send-buffer or bottleneck. Measure with twice the window."},
		{"unknown", verdict.Verdict{Limiter: verdict.Unknown, Confidence: verdict.Low}, advice.Facts{}, 0,
			"6.9 Mbit/s up, limiter unknown. Capture at the sending host."},
		{"mixed", verdict.Verdict{Limiter: verdict.Mixed, Confidence: verdict.Low,
			Shares:     verdict.Shares{verdict.Bottleneck: 0.45, verdict.SlowStart: 0.4},
			Candidates: []verdict.Name{verdict.Bottleneck, verdict.SlowStart}}, advice.Facts{}, 0,
			"6.9 Mbit/s up, perhaps limited by several things in turn (bottleneck 45 %, slow-start 40 %). " +
				"Capture at the other end as well."},
		{"no verdict", verdict.Verdict{}, advice.Facts{}, 0, "6.9 Mbit/s up."},
	} {
		var fixes []advice.Fix
		if tt.v.Limiter != "" {
			fixes = advice.Fixes(tt.v, tt.facts)
		}
		h := headline{subject: "6.9 Mbit/s up", bps: 6.9e6, pathBps: tt.path, verdict: tt.v, fixes: fixes}
		if got := h.String(); got != tt.want {
			t.Errorf("%s:\n%s\nwant\n%s", tt.name, got, tt.want)
		}
	}
}

// Each verdict has a short action, and each confidence below high shows in the headline.
func TestHeadline_EveryVerdict(t *testing.T) {
	const maxColumns = 60
	for action := range imperatives {
		if n := len([]rune(briefActions[action])); n == 0 || n > maxColumns {
			t.Errorf("%s: %q has %d columns", action, briefActions[action], n)
		}
	}
	for _, name := range verdict.Names() {
		for _, subtype := range append(verdict.Subtypes(name), "") {
			seen := map[string]verdict.Confidence{}
			for _, c := range []verdict.Confidence{verdict.High, verdict.Medium, verdict.Low} {
				clause := limitedClause(&verdict.Verdict{Limiter: name, Subtype: subtype, Confidence: c})
				if other, ok := seen[clause]; ok && name != verdict.Unknown {
					t.Errorf("%s (%s): %s and %s confidence read the same: %s", name, subtype, other, c, clause)
				}
				seen[clause] = c
			}
		}
	}
}
