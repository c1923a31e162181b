package plan

import "testing"

// FuzzMeasuredPaths: paths that are taken out of a document are ones that can be planned for.
func FuzzMeasuredPaths(f *testing.F) {
	f.Add([]byte(`{"schema":"fullpipe/tune/v1","directions":[{"path":{"bottleneck_bps":1e8,"rtt_min_s":1e300,` +
		`"jitter_s":-1}}]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		paths, err := measuredPaths(text)
		if err != nil {
			return
		}
		for _, p := range paths {
			if p.RTT < 0 || p.Jitter < 0 || !(p.RateBps > 0) {
				t.Errorf("%+v", p)
			}
		}
	})
}
