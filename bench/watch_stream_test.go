//go:build linux

package bench

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
)

// TestBankWatchStream compares the goodput of a stream of 1 Gbit/s with and without a watch, by the link's own
// counters: runs in turn, each pair in the opposite order.
func TestBankWatchStream(t *testing.T) {
	bankOnly(t)
	program := harness.Program(t)
	testenv.Need(t, testenv.Iperf3)
	const pairs, seconds = 12, 5
	report := filepath.Join(t.TempDir(), "link.json")
	run := func(background string) (bps float64) {
		script := fmt.Sprintf(`%s
until iperf3 -c $FULLPIPE_FAR -t %d >/dev/null 2>&1; do sleep 0.1; done
test -z "$watch" || { kill -INT $watch; wait $watch || test $? = 130; }`, background, seconds)
		cmd := exec.Command(program, "lab", "rate=1gbit,rtt=1ms", "--report", report, "--far", "iperf3 -s >/dev/null", "--",
			"sh", "-euc", script)
		cmd.Env = append(os.Environ(), "F="+program)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		text, err := os.ReadFile(report)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct {
			Directions []struct {
				Direction string
				Bytes     float64 `json:"arrived_bytes"`
			}
		}
		if err := json.Unmarshal(text, &doc); err != nil {
			t.Fatal(err)
		}
		for _, d := range doc.Directions {
			if d.Direction == "up" {
				return 8 * d.Bytes / seconds
			}
		}
		t.Fatalf("no direction up in %s", text)
		return 0
	}
	var with, without []float64
	for i := range pairs {
		alone(t, func() {
			runs := []func(){func() { without = append(without, run("watch=")) },
				func() { with = append(with, run("$F watch >/dev/null & watch=$!")) }}
			if i%2 == 1 {
				slices.Reverse(runs)
			}
			for _, one := range runs {
				one()
			}
		})
	}
	ratio := stats.Gain(without, with, 0.95)
	const least = 0.99
	record(t, bankRow{Section: "watch", Case: "a stream of 1 Gbit/s in a lab, watched at its sender",
		Claim: "it loses at most 1 % by the link's counters",
		Measured: fmt.Sprintf("%+.2f %% (%.1f against %.1f Mbit/s)", 100*(ratio.Mid-1), median(with)/1e6,
			median(without)/1e6),
		Spread:  fmt.Sprintf("%+.2f to %+.2f %% (95 %%, %d pairs)", 100*(ratio.Low-1), 100*(ratio.High-1), pairs),
		Verdict: byInterval(ratio.Mid >= least, ratio.Low >= least || ratio.High < least),
		Command: "make bank RUN=TestBankWatchStream"})
}
