//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// TestBankRandomPaths judges transfers over paths that nobody chose, and measures what
// taking each cause away gains, in pairs. A verdict is right if taking away what it names
// gains 10 % or more, or if it is mixed or unknown where nothing alone does.
// FULLPIPE_BANK_TRIALS is how many (20); FULLPIPE_BANK_SEED replays a run, and
// FULLPIPE_BANK_CASE one case. Runs in which the lab was late, or programs in it had no core,
// are measured again, and left out after three; with FULLPIPE_BANK_LATE they count, to look
// round on a busy machine. FULLPIPE_BANK_SERIES is a directory to keep the sample series in.
func TestBankRandomPaths(t *testing.T) {
	bankOnly(t)
	seed, err := strconv.ParseUint(os.Getenv("FULLPIPE_BANK_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	t.Logf("FULLPIPE_BANK_SEED=%d", seed)
	n, err := strconv.Atoi(os.Getenv("FULLPIPE_BANK_TRIALS"))
	if err != nil {
		n = 20
	}
	var cases []randomPath
	for r := rand.New(rand.NewPCG(seed, 0)); len(cases) < n; {
		cases = append(cases, drawPath(r))
	}
	if one := os.Getenv("FULLPIPE_BANK_CASE"); one != "" {
		p, err := parsePath(one)
		if err != nil {
			t.Fatal(err)
		}
		cases = []randomPath{p}
	}
	var count outcomes
	for _, p := range cases {
		alone(t, func() { count.add(t, p) })
	}
	low, high := (tally{known: count.known, right: count.right}).interval()
	row := bankRow{Section: "Attribution", Case: "random paths, truth by counterfactual",
		Claim:    "right in at least 95 %, wrong with high confidence in at most 1 %",
		Measured: fmt.Sprintf("%d of %d right; %d wrong with high confidence", count.right, count.known, count.sure),
		Spread: fmt.Sprintf("95 %% interval %.1f–%.1f %%; %d too close to call, %d with a late lab", 100*low, 100*high,
			count.close, count.late),
		Command: fmt.Sprintf("FULLPIPE_BANK_SEED=%d FULLPIPE_BANK_TRIALS=%d make bank RUN=TestBankRandomPaths", seed, n)}
	switch {
	case high < 0.95 || count.sure > (count.known+99)/100:
		row.Verdict = "fail"
	case low >= 0.95:
		row.Verdict = "pass"
	default:
		row.Verdict = "inconclusive"
	}
	record(t, row)
}

// outcomes counts what became of the cases.
type outcomes struct{ known, right, sure, close, late int }

func (n *outcomes) add(t *testing.T, p randomPath) {
	r, err := undisturbedTransfer(t, p.setup())
	if err != nil {
		n.late++
		t.Logf("%v: left out: %v", p, err)
		return
	}
	if dir := os.Getenv("FULLPIPE_BANK_SERIES"); dir != "" {
		name := strings.NewReplacer(" ", "_", "=", "-").Replace(p.String())
		if err := writeGzip(dir+"/"+name+".json.gz", r); err != nil {
			t.Error(err)
		}
	}
	v, with := live.Judge(r), goodput(r)
	gains := map[verdict.Name]float64{}
	for _, without := range p.removals() {
		freed, err := undisturbedTransfer(t, without.setup)
		if err != nil {
			n.late++
			t.Logf("%v without %s: left out: %v", p, without.name, err)
			return
		}
		gains[without.name] = goodput(freed)/with - 1
	}
	right, known := rightByGains(v, gains)
	text := "right"
	switch {
	case !known:
		text = "too close to call"
		n.close++
	case right:
		n.known++
		n.right++
	default:
		text = "WRONG"
		n.known++
		if v.Confidence == verdict.High {
			n.sure++
		}
	}
	t.Logf("%s: FULLPIPE_BANK_CASE='%v': %.3g Mbit/s, %s %s %s, gains %.2v, shares %.2v", text, p, with/1e6, v.Limiter,
		v.Subtype, v.Confidence, gains, v.Shares)
}

// undisturbedTransfer measures until the lab kept its times and its programs had a core,
// three times at most.
func undisturbedTransfer(t *testing.T, s setup) (*transfer.Result, error) {
	var why error
	for range 3 {
		s.account = new(lab.Account)
		r, err := carryOut(t, s)
		if err != nil {
			return nil, err
		}
		starved := slices.ContainsFunc(live.Judge(r).Evidence, func(e verdict.Evidence) bool {
			return e.Code == verdict.HostWasLate
		})
		if s.account.Believable() && !starved || os.Getenv("FULLPIPE_BANK_LATE") != "" {
			return r, nil
		}
		why = fmt.Errorf("the lab was late, or its programs were (%t): %+v", starved, s.account.Worse())
	}
	return nil, why
}

// rightByGains holds a verdict against what taking causes away gained. One that names a limiter
// whose absence gains nothing is wrong, also where no other's does: then mixed and unknown are
// right. One that names what was not taken away is wrong where something else gains.
func rightByGains(v verdict.Verdict, gains map[verdict.Name]float64) (right, known bool) {
	best := 0.0
	for _, g := range gains {
		best = max(best, g)
	}
	g, tried := gains[v.Limiter]
	open := v.Limiter == verdict.Mixed || v.Limiter == verdict.Unknown || v.Limiter == verdict.SlowStart && !tried
	switch {
	case open:
		return best < limits+unsure, best < limits-unsure || best >= limits+unsure
	case tried:
		return g >= limits, g >= limits || g < limits-unsure
	}
	return false, best >= limits+unsure
}

// How verdicts stand to gains.
func TestRightByGains(t *testing.T) {
	gains := map[verdict.Name]float64{verdict.Bottleneck: 0.9, verdict.SendBuffer: 0.07, verdict.Congestion: 0.01}
	nothing := map[verdict.Name]float64{verdict.Bottleneck: 0.02, verdict.SlowStart: 0.04}
	for _, c := range []struct {
		limiter      verdict.Name
		gains        map[verdict.Name]float64
		right, known bool
	}{
		{verdict.Bottleneck, gains, true, true}, {verdict.SendBuffer, gains, false, false},
		{verdict.Congestion, gains, false, true}, {verdict.CPU, gains, false, true}, {verdict.Mixed, gains, false, true},
		{verdict.Unknown, nothing, true, true}, {verdict.Mixed, nothing, true, true},
		{verdict.SlowStart, nothing, false, true}, {verdict.CPU, nothing, false, false},
	} {
		if right, known := rightByGains(verdict.Verdict{Limiter: c.limiter}, c.gains); right != c.right || known != c.known {
			t.Errorf("%s of %v: %t, %t", c.limiter, c.gains, right, known)
		}
	}
}
