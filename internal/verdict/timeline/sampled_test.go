package timeline

import (
	"flag"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// sample draws transfers.
type sample struct{ *rand.Rand }

// between draws from a logarithmic distribution.
func (r sample) between(low, high float64) float64 { return low * math.Pow(high/low, r.Float64()) }

// sampled is a transfer with the rate that its limiter allows, bit/s of payload, and the right verdicts. None: the
// limiter is not clear, since two causes are nearly equal.
type sampled struct {
	transfer
	kind  string
	rate  float64
	right []verdict.Name
}

const (
	minSampledBytes = 30 * 1460
	maxSampledBytes = 20 << 20
)

var (
	sampledKinds = []string{"window", "send buffer", "blocks", "slow reader", "periodic writes", "paced"}
	hostLimits   = []verdict.Name{verdict.Sender, verdict.SendBuffer, verdict.Application}
)

// next draws a transfer of a kind.
func (r sample) next(kind string) sampled {
	x := sampled{kind: kind, transfer: transfer{bps: r.between(1e5, 2e8), rtt: int64(r.between(1, 250) * 1e6),
		window: 4 << 20, scale: 7, ackEvery: 2, delayedAck: 40 * ms, timestamps: r.IntN(2) == 0}}
	place := []float64{0.01, 0.5, 0.99}[r.IntN(3)]
	x.loop = int64(place * float64(x.rtt))
	x.tapBeforeLine = place < 0.1 || place < 0.9 && r.IntN(2) == 0
	if r.IntN(3) == 0 {
		x.delayedAck = 200 * ms
	}
	if jitter := []int64{0, 50_000, x.rtt / 50}[r.IntN(3)]; jitter > 0 {
		x.delay = func() int64 { return r.Int64N(jitter) }
	}
	rounds := 30 + r.IntN(100)
	line := x.bps * float64(x.mss()) / 1500
	bdp := line / 8 * float64(x.rtt) / 1e9
	switch kind {
	case "window":
		share := r.between(0.1, 5)
		x.window = int(share*bdp) &^ 127
		x.bytes = rounds * x.window
		x.byShare(share, line, verdict.ReceiverWindow)
	case "send buffer":
		share := r.between(0.1, 5)
		x.sendBuffer = int(share * bdp)
		x.wakes = r.IntN(2) == 0
		x.bytes = rounds * x.sendBuffer
		if x.wakes { // on average so much is in flight
			share *= 5.0 / 6
		}
		x.byShare(share, line, hostLimits...)
	case "blocks":
		x.block = int(r.between(4000, 200_000))
		x.bytes = rounds * x.block
		if mss := x.mss(); (x.block+mss-1)/mss%2 == 1 { // no acknowledgement waits for the timer
			x.ackEvery = 1
		}
		took := float64(x.block) * 8 / line
		x.rate = float64(x.block) * 8 / (took + float64(x.rtt)/1e9)
		switch share := x.rate / line; {
		case share > 0.93:
			x.right = []verdict.Name{verdict.Bottleneck}
		case share < 0.85:
			x.right = hostLimits
		}
	case "slow reader":
		x.window = int(r.between(32<<10, 1<<20)) &^ 127
		x.read = min(int(r.between(2000, 64<<10)), x.window/2)
		x.rate = line * r.between(0.05, 0.6)
		x.readEvery = int64(float64(x.read) * 8e9 / x.rate)
		x.bytes = 20 * x.window
		if float64(x.window)*8/(float64(x.rtt)/1e9) > 1.5*x.rate {
			x.right = []verdict.Name{verdict.ReceiverApplication}
		}
	case "periodic writes":
		x.write = int(r.between(2000, 100_000))
		x.rate = line * r.between(0.05, 0.6)
		x.writeEvery = int64(float64(x.write) * 8e9 / x.rate)
		x.bytes = x.write * (50 + r.IntN(100))
		x.right = hostLimits
	case "paced":
		x.rate = line * r.between(0.05, 0.6)
		x.pacing = x.rate * 1500 / float64(x.mss())
		x.bytes = int(x.rate / 8 * float64(x.rtt) / 1e9 * float64(rounds))
		x.right = hostLimits
	}
	return x
}

// byShare names what limits where a window of share BDPs is all that may be in flight.
func (x *sampled) byShare(share, line float64, limit ...verdict.Name) {
	x.rate = min(share, 1) * line
	switch {
	case share < 0.85:
		x.right = limit
	case share > 1.5:
		x.right = []verdict.Name{verdict.Bottleneck}
	}
}

// isClear reports whether the limiter is clear and the transfer has a size that a test can simulate.
func (x *sampled) isClear() bool {
	small := x.window < 6*1460 || x.sendBuffer > 0 && x.sendBuffer < 6*1460
	large := x.window > 4<<20 || x.sendBuffer > 3<<20
	return len(x.right) > 0 && !small && !large && x.bytes >= minSampledBytes && x.bytes <= maxSampledBytes
}

// addSlowStart adds slow start where it took a tenth of the time and more, or where data waited for the congestion
// window after nine of ten writes. It is the only right verdict where it took half.
func (x *sampled) addSlowStart(took float64, ranOut int) {
	switch limited := float64(x.bytes)*8/x.rate + float64(x.rtt)/1e9; {
	case took > 2*limited:
		x.right = []verdict.Name{verdict.SlowStart}
	case took > threshold.CauseFactor.Value*limited, x.write > 0 && 10*ranOut*x.write < x.bytes:
		x.right = append(slices.Clone(x.right), verdict.SlowStart)
	}
}

// tally counts verdicts.
type tally struct{ right, open, low, medium, high int }

func (c *tally) add(g *Diagnosis, right []verdict.Name) {
	switch {
	case slices.Contains(right, g.Limiter):
		c.right++
	case g.Limiter == verdict.Unknown || g.Limiter == verdict.Mixed:
		c.open++
	case g.Confidence == verdict.Low:
		c.low++
	case g.Confidence == verdict.Medium:
		c.medium++
	default:
		c.high++
	}
}

func (c *tally) String() string {
	return fmt.Sprintf("%5d %4d %5d %6d %5d", c.right, c.open, c.low, c.medium, c.high)
}

func (c *tally) all() int { return c.right + c.open + c.low + c.medium + c.high }

var update = flag.Bool("update", false, "write the golden file")

// goldenLine returns a verdict as one line of the golden file.
func (x *sampled) goldenLine(n int, g *Diagnosis) string {
	fix := "none"
	if fixes := advice.Fixes(g.Verdict, advice.Facts{GoodputBps: g.GoodputBps}); len(fixes) > 0 {
		fix = string(fixes[0].Action)
	}
	return fmt.Sprintf("%d, %s, tap at %2.0f %%: %s (%s), %s, candidates %v, fix %s, right %v\n", n, x.kind,
		100*float64(x.loop)/float64(x.rtt), g.Limiter, g.Subtype, g.Confidence, g.Candidates, fix, x.right)
}

// TestJudge_SampledTransfers judges random transfers whose limiter is known, at three taps. Nine of ten verdicts are
// right, and none is wrong with high confidence. The golden file shows which of them a changed rule touches.
func TestJudge_SampledTransfers(t *testing.T) {
	count := 600
	if testing.Short() {
		count = 90
	}
	r := sample{rand.New(rand.NewPCG(7, 11))}
	rows := map[string]*tally{}
	total := &tally{}
	var golden strings.Builder
	for total.all() < count {
		x := r.next(sampledKinds[total.all()%len(sampledKinds)])
		if !x.isClear() {
			continue
		}
		g, d, ranOut := x.play(t)
		x.addSlowStart(float64(d.Last-d.First)/1e9, ranOut)
		golden.WriteString(x.goldenLine(total.all(), &g))
		key := fmt.Sprintf("%s, tap at %2.0f %%", x.kind, 100*float64(x.loop)/float64(x.rtt))
		if rows[key] == nil {
			rows[key] = &tally{}
		}
		rows[key].add(&g, x.right)
		total.add(&g, x.right)
		if !slices.Contains(x.right, g.Limiter) && g.Confidence == verdict.High {
			t.Errorf("%s: %s (%s) %v, want one of %v: %+v", key, g.Limiter, g.Subtype, g.Shares, x.right, x.transfer)
		}
	}
	t.Logf("%-30s right open, wrong with low, medium and high confidence", "")
	for _, key := range slices.Sorted(maps.Keys(rows)) {
		t.Logf("%-30s %s", key, rows[key])
	}
	t.Logf("%-30s %s", "all", total)
	if 10*total.right < 9*count {
		t.Errorf("%d of %d right, want 90 %%", total.right, count)
	}
	const name = "testdata/sampled.txt"
	if *update && !testing.Short() {
		if err := os.WriteFile(name, []byte(golden.String()), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	lines := slices.Collect(strings.Lines(string(want)))
	first := strings.Join(lines[:min(count, len(lines))], "")
	if got := golden.String(); got != first {
		t.Errorf("verdicts changed (go test ./internal/verdict/timeline -update accepts them):\n%s",
			diff.Diff(name, []byte(first), "now", []byte(got)))
	}
}
