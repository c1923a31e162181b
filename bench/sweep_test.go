//go:build linux

package bench

import (
	"fmt"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// sweepWithin runs a sweep with a budget, and again with twice the budget if its result is open.
// It returns the first and the last result.
func sweepWithin(t *testing.T, profile string, seconds int, open func(harness.SweepReport) bool,
	args ...string) (inTime, doc harness.SweepReport) {
	t.Helper()
	run := func(seconds int) (doc harness.SweepReport) {
		alone(t, func() {
			doc = harness.RunSweep(t, harness.SweepCommand(t, profile,
				append(args, "--budget", fmt.Sprintf("%ds", seconds))...))
		})
		return doc
	}
	inTime = run(seconds)
	if !open(inTime) {
		return inTime, inTime
	}
	return inTime, run(2 * seconds)
}

// more returns the gain of the second cell over the first, from runs of the same rounds.
func more(a, b harness.SweepCell) stats.Interval { return stats.Gain(a.Runs, b.Runs, 0.95) }

// TestBankSweep measures the surface of throughput over send buffer × window at 12 ms and 100 Mbit/s that an
// application note describes. Without large windows it stops growing at a send buffer of 64 kB. With them it is best
// where both equal the BDP of 150 kB, and larger ones add nothing. It takes at most seven minutes.
func TestBankSweep(t *testing.T) {
	bankOnly(t)
	const path, k64, k150 = "rate=100mbit,rtt=12ms,stack=windows-2000", 65536, 151840
	row := func(command, claim, measured, spread, verdict string) {
		record(t, bankRow{Section: "sweep", Case: "100 Mbit/s × 12 ms, Windows 2000's sender, 16 KiB writes", Claim: claim,
			Measured: measured, Spread: spread, Verdict: verdict, Command: command})
	}
	judge := func(command, claim string, g stats.Interval, meets func(float64) bool) {
		row(command, claim, fmt.Sprintf("× %.2f", g.Mid), fmt.Sprintf("%.2f to %.2f", g.Low, g.High), byInterval(meets(g.Mid),
			meets(g.Low) == meets(g.High)))
	}
	undecided := func(g stats.Interval, meets func(float64) bool) bool { return meets(g.Low) != meets(g.High) }
	little := func(v float64) bool { return v <= 1.10 } // a limiter gives more
	much := func(v float64) bool { return v >= 1.5 }

	args := []string{"--send-buffers", "16K,32K,64K,151840,303680", "--receive-buffers", "303680", "--write-sizes", "16K",
		"--time", "1s"}
	command := "fullpipe sweep lab:" + path + ",scaling=off --send-buffers 16K,32K,64K,151840,303680 --receive-buffers " +
		"303680 --write-sizes 16K"
	stops := func(flat harness.SweepReport) stats.Interval {
		return more(flat.At(k64, 303680), flat.At(303680, 303680))
	}
	_, flat := sweepWithin(t, path+",scaling=off", 50, func(flat harness.SweepReport) bool {
		return undecided(stops(flat),
			little)
	},
		args...)
	judge(command, "without scaling: a send buffer of 64 KiB carries ≥ 1.5 × that of 32 KiB", more(flat.At(32768, 303680),
		flat.At(k64, 303680)), much)
	judge(command, "without scaling: 300 kB carries ≤ 1.1 × 64 KiB, it stops growing", stops(flat), little)
	clipped := flat.At(303680, 303680)
	row(command, "without scaling: a window of 300 kB is marked as clipped to 64 KiB",
		fmt.Sprintf("reached %d bytes, clipped %v, limited by %s", clipped.ReceiveBuffer.Effective,
			clipped.ReceiveBuffer.Clipped, clipped.Limiter),
		fmt.Sprintf("%d runs", len(clipped.Runs)), passed(clipped.ReceiveBuffer.Clipped &&
			clipped.ReceiveBuffer.Effective <= 65535))

	args = []string{"--send-buffers", "64K,151840,303680", "--receive-buffers", "48K,151840,303680", "--write-sizes",
		"16K", "--time", "1s"}
	command = "fullpipe sweep lab:" + path + " --send-buffers 64K,151840,303680 --receive-buffers 48K,151840,303680 " +
		"--write-sizes 16K"
	larger := [][2]int{{303680, k150}, {k150, 303680}, {303680, 303680}}
	inTime, surface := sweepWithin(t, path, 90, func(surface harness.SweepReport) bool {
		return slices.ContainsFunc(larger, func(c [2]int) bool {
			return undecided(more(surface.At(k150, k150), surface.At(c[0], c[1])), little)
		})
	}, args...)
	knee := surface.At(k150, k150)
	judge(command, "both at the BDP carry ≥ 1.5 × a send buffer of 64 KiB", more(surface.At(k64, k150), knee), much)
	judge(command, "both at the BDP carry ≥ 1.5 × a receive buffer of 48 KiB (64 KB of window)",
		more(surface.At(k150, 49152), knee), much)
	for _, c := range larger {
		judge(command, fmt.Sprintf("larger adds nothing: %d × %d carries ≤ 1.1 × both at the BDP", c[0], c[1]),
			more(knee, surface.At(c[0], c[1])), little)
	}
	tight := 0
	for _, c := range inTime.Cells {
		if c.Tight {
			tight++
		}
	}
	row(command, "the cells are known to ±3 % in 90 s", fmt.Sprintf("%d of %d", tight, len(inTime.Cells)),
		"95 % intervals", byInterval(tight == len(inTime.Cells), tight == len(inTime.Cells)))
}
