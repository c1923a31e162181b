//go:build linux

package kernel

import (
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// TestInsideAgainstOutside checks that both overlays are recognized: the packet sizes inside and outside, and the
// smaller capacity of gateways with a budget. On a busy machine it stays open whether the gateways or the hosts cause
// that.
func TestInsideAgainstOutside(t *testing.T) {
	for _, tt := range []struct {
		path           string
		mtu, mss       int
		slower         string // "" where a short test on a busy machine cannot show it
		possible       compare.Cause
		overheadAtMost float64
	}{
		{"rate=15mbit,rtt=10ms,vpn=gateway,crypto=2mbit/40packets", 1438, 1386, "first", compare.Capacity, 1448.0 / 1386},
		{"rate=15mbit,rtt=10ms,vpn=wireguard", 1420, 1368, "", "", 1448.0 / 1368},
	} {
		t.Run(tt.path, func(t *testing.T) {
			t.Parallel()
			doc := harness.CompareVPN(t, tt.path, "--time", "600ms", "--rounds", "2")
			if len(doc.Directions) != 1 {
				t.Fatalf("%+v", doc)
			}
			d := doc.Directions[0]
			for _, w := range []struct {
				harness.ComparedPath
				mtu, mss int
			}{{d.First, tt.mtu, tt.mss}, {d.Second, 1500, 1448}} {
				if w.MTU != w.mtu || w.MSS != w.mss || len(w.Goodputs) != 4 {
					t.Errorf("%+v, want path MTU %d and segments of %d", w.ComparedPath, w.mtu, w.mss)
				}
			}
			if tt.slower != "" && (d.Slower != tt.slower || d.Cause != tt.possible && !slices.Contains(d.Candidates,
				tt.possible)) {
				t.Errorf("the slower is %q because of %s %v, want %q and %s", d.Slower, d.Cause, d.Candidates, tt.slower,
					tt.possible)
			}
			for _, e := range d.Explanations {
				if e.Cause == compare.Overhead && e.High > tt.overheadAtMost+1e-6 {
					t.Errorf("overhead makes × %.4f, at most %.4f is possible", e.High, tt.overheadAtMost)
				}
			}
		})
	}
}
