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

	printed "github.com/fullpipe-net/fullpipe/internal/record"
)

// capacities searches both directions of a lab's path at the IP layer.
func capacities(t *testing.T, profile, args string) []printed.CapacityDirection {
	t.Helper()
	program, err := fullpipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "measure", "lab:"+profile, "--udp", "--capacity", "-d", "both", "-t", args, "--json")
	cmd.Env = os.Environ()
	cmd.Stderr = t.Output()
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	var doc printed.Capacity
	if err := json.Unmarshal(out, &doc); err != nil || len(doc.Directions) != 2 {
		t.Fatalf("%v: %s", err, out)
	}
	return doc.Directions
}

// TestCapacityByFeedbackInTheLab holds what no busy machine may change: never more than the
// link carries, and not far less. The bank has the figures.
func TestCapacityByFeedbackInTheLab(t *testing.T) {
	undisturbed(t, func() error {
		for _, d := range capacities(t, "rate=10mbit,rtt=20ms", "4s") {
			if d.Method != printed.ByFeedback || d.AtLeast || d.CapacityBps > 10.3e6 || d.CapacityBps < 8e6 {
				return fmt.Errorf("%s: %.4g Mbit/s, at least: %v, by %s", d.Direction, d.CapacityBps/1e6, d.AtLeast, d.Method)
			}
		}
		return nil
	})
}

// TestBankCapacity searches links of known rate. Four minutes.
func TestBankCapacity(t *testing.T) {
	bankOnly(t)
	for _, c := range []struct {
		name string
		bps  float64
	}{{"rate=1mbit,rtt=40ms", 1e6}, {"rate=20mbit,rtt=40ms", 20e6}, {"rate=100mbit,rtt=40ms", 100e6},
		{"rate=400mbit,rtt=10ms", 400e6}} {
		t.Run(c.name, func(t *testing.T) {
			off := map[string][]float64{}
			for range 3 {
				for _, d := range capacities(t, c.name, "10s") {
					off[string(d.Direction)] = append(off[string(d.Direction)], 100*(d.CapacityBps/c.bps-1))
				}
			}
			for direction, all := range off {
				worst := math.Max(slices.Max(all), -slices.Min(all))
				record(t, bankRow{Section: "UDP capacity (RFC 9097)", Case: c.name + ", " + direction,
					Claim:    "the link's rate at the IP layer within 3 %",
					Measured: fmt.Sprintf("%+.2f %% (median)", median(all)), Spread: fmt.Sprintf("3 runs, %+.2f to %+.2f %%",
						slices.Min(all), slices.Max(all)),
					Verdict: quietVerdict(worst <= 3, company(t)), Command: "fullpipe measure --udp --capacity"})
			}
		})
	}
}
