package audit

import (
	"math"
	"testing"
)

// FuzzPathOf checks that a path from a document is valid.
func FuzzPathOf(f *testing.F) {
	f.Add([]byte(`{"schema":"fullpipe/tune/v1","directions":[{"path":{"bottleneck_bps":1e8,"rtt_min_s":0.04}}]}`))
	f.Add([]byte(`{"rate_bps":1e308,"rtt_s":1e-308}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if p, err := pathOf(text); err == nil && (p.RTT < 0 || !(p.RateBps > 0) || math.IsInf(p.RateBps, 0)) {
			t.Errorf("%+v", p)
		}
	})
}
