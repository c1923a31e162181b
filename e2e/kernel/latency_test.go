//go:build linux

package kernel

import (
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestLatencyUnderLoadInTheLab judges queues of known length: with a window of W, the queue contains W less the BDP
// of the path.
func TestLatencyUnderLoadInTheLab(t *testing.T) {
	t.Parallel()
	program := harness.Program(t)
	native, stock := program+" serve --quiet", "iperf3 -s"
	for name, c := range map[string]struct {
		profile, far, args string
		method             string
		bloat              printed.Bloat
	}{
		"a long queue, up": {"rate=3mbit,rtt=20ms,queue=40bdp", native, "$FULLPIPE_FAR --window 100KiB -t 2s", "echo",
			printed.MuchBloat},
		"a long queue, down": {"rate=3mbit,rtt=20ms,queue=40bdp", native, "$FULLPIPE_FAR --window 100KiB -t 2s -d down",
			"echo", printed.MuchBloat},
		"no queue": {"rate=10mbit,rtt=40ms,queue=40bdp", native, "$FULLPIPE_FAR --window 20KiB -t 1s", "echo",
			printed.NoBloat},
		"iperf3, long queue": {"rate=3mbit,rtt=20ms,queue=40bdp", stock, "iperf3://$FULLPIPE_FAR --window 100KiB -t 2s -d " +
			"down", "ICMP", printed.MuchBloat},
		"iperf3, no queue": {"rate=10mbit,rtt=40ms,queue=40bdp", stock, "iperf3://$FULLPIPE_FAR --window 20KiB -t 1s -d " +
			"down", "ICMP", printed.NoBloat},
		"both ways, up loads": {"rate=3mbit,rtt=20ms,queue=40bdp", native, "$FULLPIPE_FAR --bidir -t 2s --window 100KiB",
			"echo", printed.MuchBloat},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if c.far == stock {
				testenv.Need(t, testenv.Iperf3)
			}
			for _, d := range harness.Measure(t, c.profile, c.far, c.args).Directions {
				l := d.Latency
				if l == nil {
					t.Fatalf("not known: %v", d.Warnings)
				}
				if l.Method[:4] != c.method || l.Bloat != c.bloat || l.LoadedProbes < 2 {
					t.Errorf("%s: %+v by %s: %s, want %s", d.Direction, l, l.Method, l.Bloat, c.bloat)
				}
			}
		})
	}
}
