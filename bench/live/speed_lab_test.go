//go:build linux

package live

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
)

// TestSpeedTestNamesTheCause checks the limiters that a browser's user is shown, on links that a slow machine can
// fill too.
func TestSpeedTestNamesTheCause(t *testing.T) {
	clean, loss := []string{"rate=10mbit,rtt=40ms"}, []string{"rate=20mbit,rtt=40ms,loss=1%"}
	for _, c := range []harness.SpeedCase{
		{Name: "a clean line", Paths: clean, Limiters: []string{"bottleneck"}, MinBps: 8.5e6, MaxBps: 9.7e6},
		{Name: "loss", Paths: loss, Limiters: []string{"congestion"}, MinBps: 1e6, MaxBps: 12e6},
		{Name: "a small window", Paths: []string{"rate=20mbit,rtt=80ms,near.stack=windows-xp"},
			Limiters: []string{"receiver-window"},
			MinBps:   3e6, MaxBps: 8e6},
		{Name: "a clean line, up", Paths: clean, Upload: true, Limiters: []string{"bottleneck"}, MinBps: 8.5e6,
			MaxBps: 9.7e6},
		{Name: "loss, up", Paths: loss, Upload: true, Limiters: []string{"congestion"}, MinBps: 1e6, MaxBps: 12e6},
		{Name: "the server's window, up", Paths: []string{"rate=20mbit,rtt=80ms,far.stack=windows-xp"}, Upload: true,
			Limiters: []string{"receiver-window"}, MinBps: 3e6, MaxBps: 8e6},
	} {
		t.Run(c.Name, func(t *testing.T) {
			d, right, open := c.Judge(t, harness.NewSpeedLab(t, c.Paths[0]).RunTest(t, c.Query(6000), 0))
			t.Logf("%.2f Mbit/s, %s, %s", d.GoodputBps/1e6, d.Limiter, d.Confidence)
			if !right && !open || !c.CauseActed(d) {
				t.Errorf("%+v, want %v", d, c.Limiters)
			}
		})
	}
}
