//go:build linux

package bench

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// bankTuneCases returns the paths that `make bank` measures, first those of the founding documents and of today.
// FULLPIPE_BANK_CASES is their number, as 12 or 12-20, or a list of paths, separated by semicolons.
func bankTuneCases() []string {
	if asked := os.Getenv("FULLPIPE_BANK_CASES"); strings.Contains(asked, "rate=") {
		return strings.Split(asked, ";")
	}
	cases := []string{
		"up rate=100mbit,rtt=12ms,stack=windows-2000",
		"down rate=20mbit,rtt=30ms",
		"up rate=100mbit,rtt=40ms,stack=windows-2000",
		"down rate=100mbit,rtt=80ms,stack=server-2012,app=cygwin",
		"up rate=10mbit,rtt=85ms,jitter=10ms,stack=windows-2000",
		"up rate=200mbit,rtt=20ms,stack=windows-xp",
		"down rate=50mbit,rtt=60ms,loss=0.1%,stack=windows-2000",
		"up rate=2mbit,rtt=300ms,stack=windows-95",
		"down rate=100mbit,rtt=20ms,queue=0.3bdp",
		"up rate=500mbit,rtt=30ms,stack=linux-6.1",
		"up rate=256kbit,rtt=600ms,stack=linux-6.1",
	}
	rng := rand.New(rand.NewPCG(2026, 1))
	for len(cases) < 60 {
		rate := 64e3 * math.Pow(1e9/64e3, rng.Float64())
		rtt := 0.5e-3 * math.Pow(600e-3/0.5e-3, rng.Float64())
		if bdp := rate / 8 * rtt; bdp < 4*1460 || bdp > 16<<20 {
			continue
		}
		stacks := []string{"linux-6.1", "linux-6.18", "windows-95", "windows-2000", "windows-xp", "server-2012"}
		text := fmt.Sprintf("%s rate=%.0fbit,rtt=%.2fms,stack=%s", []string{"up", "down"}[rng.IntN(2)], rate, 1000*rtt,
			stacks[rng.IntN(len(stacks))])
		if rng.Float64() < 0.3 {
			text += fmt.Sprintf(",loss=%.4f%%", 100*1e-6*math.Pow(1e4, rng.Float64()))
		}
		if rng.Float64() < 0.3 {
			text += fmt.Sprintf(",queue=%.2fbdp", 0.2+2*rng.Float64())
		}
		cases = append(cases, text)
	}
	first, many := 0, len(cases)
	if from, to, ok := strings.Cut(os.Getenv("FULLPIPE_BANK_CASES"), "-"); ok {
		first, _ = strconv.Atoi(from)
		many, _ = strconv.Atoi(to)
	} else if n, err := strconv.Atoi(from); err == nil {
		many = n
	}
	return cases[min(first, len(cases)):min(many, len(cases))]
}

// TestBankTune measures tune's promise: at least 98 % of the best of an exhaustive sweep, with a window at most 1.15
// times the smallest that reaches it.
func TestBankTune(t *testing.T) {
	bankOnly(t)
	for _, text := range bankTuneCases() {
		t.Run(text, func(t *testing.T) {
			direction, profile, _ := strings.Cut(text, " ")
			bankTune(t, transfer.Direction(direction), profile)
		})
	}
}

func bankTune(t *testing.T, direction transfer.Direction, profile string) {
	site := harness.NewTuneSite(t, profile)
	alone := alone
	loop, turns := exact{}, exact{want: 6}
	if site.IsSlow {
		alone = func(_ *testing.T, measure func()) { measure() }
	}
	command := fmt.Sprintf("fullpipe tune lab:%s --direction %s", profile, direction)
	row := func(of *exact, claim, measured, spread, verdict string) {
		record(t, of.into(bankRow{Section: "tune", Case: string(direction) + " " + profile, Claim: claim, Measured: measured,
			Spread:  spread,
			Verdict: verdict, Command: command}))
	}
	luck := 0 // the lab's seed: each lab has another one, or it would lose the same packets
	fresh := func() *harness.TuneSite {
		site.Lab.Close()
		luck++
		site = harness.NewTuneSite(t, fmt.Sprintf("%s,seed=%d", profile, luck))
		return site
	}
	var doc harness.TuneReport
	for loop.more() {
		alone(t, func() { doc = fresh().Tune(t, direction) })
		loop.keep(doc.Late)
	}
	if len(doc.Directions) != 1 || doc.Directions[0].Path.MSS == 0 {
		t.Fatalf("%+v", doc)
	}
	d := doc.Directions[0]
	path := site.SearchConfig(d.Path.MSS, d.Path.Capacity, d.Path.RTT)
	if strings.Contains(profile, "loss=") {
		path.Rounds = search.LossyRounds
	}
	budget := path.Budget().Time.Seconds()
	if doc.ElapsedS > budget && budget <= 150 { // an undecided comparison may double a budget of 150 s or less
		budget *= 2
	}
	row(&loop, "time in the budget, doubled where something was open", fmt.Sprintf("%.1f s", doc.ElapsedS),
		fmt.Sprintf("of %.1f s", budget), byInterval(doc.ElapsedS <= 1.05*budget+1, true))

	// The sweep: every window in steps of 10 %, and automatic.
	windows := []int{0}
	for w := 2 * float64(path.MSS); w <= math.Min(8*path.Knee, 1<<30); w *= search.Step {
		windows = append(windows, int(w)/path.MSS*path.MSS)
	}
	windows = slices.Compact(windows)
	goodput := map[int][]float64{}
	for chunk := range slices.Chunk(windows, 20) {
		alone(t, func() { site.MeasureWindows(t, direction, path, chunk, goodput) })
	}
	best := 0
	for _, w := range windows {
		if goodput[w][0] > goodput[best][0] {
			best = w
		}
	}
	// The decisive settings are measured again, in turn: the best, the chosen one, and the largest of the sweep that
	// would make the chosen one too large.
	chosen, besides := 0, sending{}
	if d.Chosen != nil {
		chosen = d.Chosen.Window
		besides = sending{chosen, d.Chosen.Control, d.Chosen.Streams, d.Chosen.PacingBps, d.Chosen.MSS}
	}
	other := besides != sending{window: chosen} // not a window alone
	below := 0
	for _, w := range windows {
		if float64(w)*search.Tolerance < float64(chosen) {
			below = w
		}
	}
	again := map[int][]float64{}
	var ended []float64
	var share, less stats.Interval
	said, smaller := "inconclusive", "pass" // of the goodput, and of the next smaller window
	judge := func() {
		share = stats.Gain(again[best], ended, 0.95)
		said = byInterval(share.Mid >= search.Enough, share.Low >= search.Enough || share.High < search.Enough)
		if chosen == best && !other {
			share, said = stats.Interval{Low: 1, Mid: 1, High: 1}, "pass"
		}
		if chosen > 0 && below > 0 && !other {
			less = stats.Gain(again[best], again[below], 0.95)
			smaller = byInterval(less.Mid < search.Enough, less.High < search.Enough || less.Low >= search.Enough)
		}
	}
	turns.open = func() bool {
		judge()
		return said == "inconclusive" || smaller == "inconclusive"
	}
	for turns.more() {
		turn := map[int][]float64{}
		var with []float64
		alone(t, func() {
			fresh().MeasureWindows(t, direction, path, slices.Compact(slices.Sorted(slices.Values([]int{best, chosen, below}))),
				turn)
			with = turn[chosen]
			if other {
				with = site.MeasureGoodputs(t, []transfer.Spec{besides.spec(direction, path, 0)})
			}
		})
		counts, err := turns.keepLab(site.Lab)
		if err != nil {
			t.Fatal(err)
		}
		if !counts {
			continue
		}
		ended = append(ended, with...)
		for w := range turn {
			again[w] = append(again[w], turn[w]...)
		}
	}
	judge()
	setting := "automatic (" + string(d.Verdict) + ")"
	if chosen > 0 {
		setting = fmt.Sprintf("%d bytes (%.2f BDP, shown %v)", chosen, float64(chosen)/path.Knee, d.Chosen.Shown)
	}
	if other {
		setting = besides.String()
	}
	if d.Verdict == search.Inconclusive && said == "fail" {
		said = "inconclusive" // and nothing was changed
	}
	row(&turns, "goodput after ≥ 98 % of the best of the sweep", fmt.Sprintf("%.1f %% by %s", 100*share.Mid, setting),
		fmt.Sprintf("%.1f to %.1f %%; best at %d bytes", 100*share.Low, 100*share.High, best), said)
	if chosen > 0 && below > 0 && !other { // a claim about one window: each stream has its own
		row(&turns, "window ≤ 1.15 × the smallest that reaches 98 %", fmt.Sprintf("%d bytes give %.1f %%", below,
			100*less.Mid),
			fmt.Sprintf("%.1f to %.1f %%", 100*less.Low, 100*less.High), smaller)
	}
	if d.Gain != nil && len(d.Gain.CI95) == 2 && chosen > 0 {
		var second harness.TuneReport
		twice := exact{}
		for twice.more() {
			alone(t, func() { second = fresh().Tune(t, direction) })
			twice.keep(second.Late)
		}
		if len(second.Directions) == 1 && second.Directions[0].Gain != nil && len(second.Directions[0].Gain.CI95) == 2 {
			a, b := d.Gain.CI95, second.Directions[0].Gain.CI95
			row(&twice, "two runs give overlapping intervals of the factor", fmt.Sprintf("× %.2f and × %.2f", d.Gain.Factor,
				second.Directions[0].Gain.Factor),
				fmt.Sprintf("%.2f–%.2f and %.2f–%.2f", a[0], a[1], b[0], b[1]), byInterval(a[0] <= b[1] && b[0] <= a[1], true))
		}
	}
}

// byInterval returns pass or fail if the interval decides, else inconclusive.
func byInterval(ok, decided bool) string {
	switch {
	case !decided:
		return "inconclusive"
	case ok:
		return "pass"
	}
	return "fail"
}
