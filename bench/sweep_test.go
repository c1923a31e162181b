//go:build linux

package bench

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// sweepInTurns runs a sweep with the machine to itself for less than a minute at a time: each turn continues where
// the one before was cut off. It returns the result after the budget, and the result after up to three more budgets
// while the first is open.
func sweepInTurns(t *testing.T, profile string, seconds int, open func(harness.SweepReport) bool,
	more ...string) (inTime,
	doc harness.SweepReport) {
	t.Helper()
	args := append([]string{"--resume", filepath.Join(t.TempDir(), "journal")}, more...)
	const turn = 50
	for spent := 0; ; {
		left := turn
		if spent < seconds {
			left = min(turn, seconds-spent)
		}
		spent += left
		alone(t, func() {
			doc = harness.RunSweep(t, harness.SweepCommand(t, profile, append(args, "--budget", fmt.Sprintf("%ds", spent))...))
		})
		if spent <= seconds {
			inTime = doc
		}
		if doc.Complete || spent >= seconds && !open(doc) || spent >= mostTurns*seconds {
			return inTime, doc
		}
	}
}

// more returns the gain of the second cell over the first, from runs of the same rounds.
func more(a, b harness.SweepCell) stats.Interval { return stats.Gain(a.Runs, b.Runs, 0.95) }

// TestBankSweep measures the surface of throughput over send buffer × window at 12 ms and 100 Mbit/s that an
// application note describes. Without large windows it stops growing at a send buffer of 64 kB. With them it is best
// where both equal the BDP of 150 kB, and larger ones add nothing. It takes at most four minutes.
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
	_, flat := sweepInTurns(t, path+",scaling=off", 50, func(flat harness.SweepReport) bool {
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
	inTime, surface := sweepInTurns(t, path, 90, func(surface harness.SweepReport) bool {
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

// TestBankSweepPredicts compares a sweep's prediction with later measurements. It takes at most three minutes.
func TestBankSweepPredicts(t *testing.T) {
	bankOnly(t)
	const path = "rate=50mbit,rtt=20ms,stack=windows-2000"
	const grid = "--send-buffers 8K-1M:x1.6 --receive-buffers 8K-1M:x1.6 --write-sizes 4K"
	args := append(strings.Fields(grid), "--time", "400ms", "--precision", "5%", "--resume", filepath.Join(t.TempDir(),
		"journal"))
	var before, after harness.SweepReport
	alone(t, func() {
		before = harness.RunSweep(t, harness.SweepCommand(t, path, append(args, "--repeats", "1", "--budget", "25s")...))
	})
	for _, budget := range []string{"75s", "125s", "175s"} {
		alone(t, func() {
			after = harness.RunSweep(t, harness.SweepCommand(t, path, append(args, "--repeats", "3", "--budget", budget)...))
		})
	}
	predicted, right, farthest := 0, 0, 0.0
	for i, c := range before.Cells {
		runs := after.Cells[i].Runs
		if !c.Predicted || len(runs) < 3 {
			continue
		}
		predicted++
		off := math.Abs(math.Log(stats.Median(runs) / c.Goodput)) // one stalled run moves no median
		farthest = math.Max(farthest, off)
		if off <= 0.05 {
			right++
		}
	}
	record(t, bankRow{Section: "sweep", Case: "50 Mbit/s × 20 ms, 121 cells",
		Claim:    "≥ 95 % of the predicted cells measure within 5 % of the prediction",
		Measured: fmt.Sprintf("%d of %d", right, predicted), Spread: fmt.Sprintf("farthest off %.1f %%, medians of 3 runs "+
			"of 400 ms", 100*(math.Exp(farthest)-1)),
		Verdict: byInterval(float64(right) >= 0.95*float64(predicted), predicted >= 8), Command: "fullpipe sweep lab:" +
			path + " " + grid + " --budget 25s, then --repeats 3"})
}
