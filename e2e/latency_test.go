//go:build linux

package e2e

import (
	"encoding/json"
	"fmt"
	"math"
	"os"
	"os/exec"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/probe"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// measuredIn runs a measure at the near end of a lab with a far end's program; the
// fields are those of the JSON.
func measuredIn(t *testing.T, profile, far, args string) (doc printed.Measure) {
	t.Helper()
	return measuredBy(t, profile, far, "", args)
}

// measuredBy is the same with something before the program's name.
func measuredBy(t *testing.T, profile, far, before, args string) (doc printed.Measure) {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "lab", profile, "--far", far, "--", "bash", "-euc",
		"until (exec 3<>/dev/tcp/$FULLPIPE_FAR/5201) 2>/dev/null; do sleep 0.02; done; "+before+program+" measure "+args+
			" --json")
	cmd.Env = append(os.Environ(), "FULLPIPE_KEY="+probe.NewKey().String())
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Directions) == 0 {
		t.Fatalf("%v: %s", err, out)
	}
	return doc
}

// TestLatencyUnderLoadInTheLab judges queues of which the length is known: with a window
// of W the queue holds what the path does not.
func TestLatencyUnderLoadInTheLab(t *testing.T) {
	t.Parallel()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
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
				needIperf3(t)
			}
			for _, d := range measuredIn(t, c.profile, c.far, c.args).Directions {
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

// TestBankLatency compares the added time with what arithmetic says that the queue holds.
// Three minutes.
func TestBankLatency(t *testing.T) {
	bankOnly(t)
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	const rate, rtt = 50e6, 0.020
	for _, window := range []float64{192 << 10, 256 << 10, 512 << 10} {
		for _, direction := range []string{"up", "down"} {
			want := window*1500/1448*8/rate - rtt // with the headers of full packets
			var off []float64
			runs := exact{want: 5}
			for runs.more() {
				args := fmt.Sprintf("$FULLPIPE_FAR --window %.0f -t 4s -d %s", window, direction)
				doc := measuredIn(t, "rate=50mbit,rtt=20ms,queue=40bdp", program+" serve --quiet", args)
				if !runs.keep(doc.Late) {
					continue
				}
				d := doc.Directions[0]
				if d.Latency == nil || d.Latency.AddedS == nil {
					t.Fatalf("not known: %+v", d.Latency)
				}
				off = append(off, *d.Latency.AddedS/want-1)
			}
			if len(off) == 0 {
				t.Errorf("window %.0f KiB, %s: the lab was too late in every run", window/1024, direction)
				continue
			}
			worst := math.Max(slices.Max(off), -slices.Min(off))
			record(t, runs.into(bankRow{Section: "Latency under load", Case: fmt.Sprintf("50 Mbit/s, 20 ms, window %.0f KiB, %s",
				window/1024, direction),
				Claim:    fmt.Sprintf("small packets wait the queue's %.0f ms longer, within 10 %%", 1000*want),
				Measured: fmt.Sprintf("%+.1f %% (median)", 100*median(off)), Spread: fmt.Sprintf("%d runs, %+.1f to %+.1f %%",
					len(off), 100*slices.Min(off), 100*slices.Max(off)),
				Verdict: passed(worst <= 0.10), Command: "fullpipe measure --window W"}))
		}
	}
}
