package live

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestOnSharedLink_KeepsOtherLimiters checks that only the congestion share goes to the link.
func TestOnSharedLink_KeepsOtherLimiters(t *testing.T) {
	pair := []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}
	v := verdict.Verdict{Limiter: verdict.ReceiverWindow, Confidence: verdict.Medium, Candidates: pair,
		Shares: verdict.Shares{verdict.ReceiverWindow: 0.7, verdict.Congestion: 0.3},
		Evidence: []verdict.Evidence{{Limiter: verdict.ReceiverWindow, Code: verdict.ReceiveWindowFull},
			{Limiter: verdict.Congestion, Code: verdict.LossBelowBest}}}
	got := OnSharedLink(v, verdict.Values{"connections": 2})
	if got.Limiter != verdict.ReceiverWindow || got.Confidence != verdict.Medium || len(got.Candidates) != 2 {
		t.Errorf("%s, %s of %v", got.Limiter, got.Confidence, got.Candidates)
	}
	for _, e := range got.Evidence {
		if got.Shares[e.Limiter] == 0 {
			t.Errorf("%s is evidence of %s, which has no share of %v", e.Code, e.Limiter, got.Shares)
		}
	}
	sums(t, "a window and a shared link", got)
}
