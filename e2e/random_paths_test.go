//go:build linux

package e2e

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/stats"
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
// round on a busy machine. FULLPIPE_BANK_SERIES is a directory to keep the cases in, and
// FULLPIPE_BANK_REPLAY one whose cases are judged again instead of measured. Slow paths share
// the machine.
func TestBankRandomPaths(t *testing.T) {
	bankOnly(t)
	if dir := os.Getenv("FULLPIPE_BANK_REPLAY"); dir != "" {
		replay(t, dir)
		return
	}
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
	alone(t, func() {
		var wait sync.WaitGroup
		light := make(chan struct{}, 3)
		for _, p := range cases {
			if p.bps <= lightest {
				wait.Go(func() {
					light <- struct{}{}
					defer func() { <-light }()
					count.measure(t, p)
				})
			}
		}
		wait.Wait()
		for _, p := range cases {
			if p.bps > lightest {
				count.measure(t, p)
			}
		}
	})
	record(t, count.row(fmt.Sprintf("FULLPIPE_BANK_SEED=%d FULLPIPE_BANK_TRIALS=%d make bank RUN=TestBankRandomPaths",
		seed, n)))
}

// replay judges kept cases again.
func replay(t *testing.T, dir string) {
	files, err := filepath.Glob(filepath.Join(dir, "*.json.gz"))
	if err != nil || len(files) == 0 {
		t.Fatalf("%d cases in %s, %v", len(files), dir, err)
	}
	var count outcomes
	for _, name := range files {
		var k keptCase
		if err := readGzip(name, &k); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		count.judge(t, k)
	}
	t.Logf("%+v", count.row(""))
}

// keptCase is a case as it was measured.
type keptCase struct {
	Case   string
	Gains  map[verdict.Name][]float64 // of each pair: without the cause over with it, less 1
	Result *transfer.Result
}

// outcomes counts what became of the cases.
type outcomes struct {
	mu                                           sync.Mutex // guards the rest
	known, right, sure, close, late, high, named int
}

// row is the bank's.
func (n *outcomes) row(command string) bankRow {
	low, high := (tally{known: n.known, right: n.right}).interval()
	row := bankRow{Section: "Attribution", Case: "random paths, truth by counterfactual",
		Claim: "right in at least 95 %, wrong with high confidence in at most 1 %",
		Measured: fmt.Sprintf("%d of %d right, %d of them by a name, %d with high confidence; "+
			"%d wrong with high confidence", n.right, n.known, n.named, n.high, n.sure),
		Spread: fmt.Sprintf("95 %% interval %.1f–%.1f %%; %d too close to call, %d with a late lab", 100*low, 100*high,
			n.close, n.late),
		Command: command}
	switch {
	case high < 0.95 || n.sure > (n.known+99)/100:
		row.Verdict = "fail"
	case low >= 0.95:
		row.Verdict = "pass"
	default:
		row.Verdict = "inconclusive"
	}
	return row
}

// measure measures the case with and without each cause. Gains below nearGain are measured in
// three pairs: luck moves single ones by a tenth.
func (n *outcomes) measure(t *testing.T, p randomPath) {
	const nearGain, pairs = 0.3, 3
	k := keptCase{Case: p.String(), Gains: map[verdict.Name][]float64{}}
	var with []float64
	one := func(s setup, what string) (*transfer.Result, bool) {
		r, err := undisturbedTransfer(t, s)
		if err != nil {
			n.mu.Lock()
			n.late++
			n.mu.Unlock()
			t.Logf("%v %s: left out: %v", p, what, err)
		}
		return r, err == nil
	}
	for i := range pairs {
		tried := false
		for _, without := range p.removals() {
			gains := k.Gains[without.name]
			if i > 0 && (gains[0] < -nearGain || gains[0] > nearGain) {
				continue
			}
			if tried = true; len(with) == i {
				r, ok := one(p.setup(), "as it is")
				if !ok {
					return
				}
				if with = append(with, goodput(r)); i == 0 {
					k.Result = r
				}
			}
			freed, ok := one(without.setup, "without "+string(without.name))
			if !ok {
				return
			}
			k.Gains[without.name] = append(gains, goodput(freed)/with[i]-1)
		}
		if !tried {
			break
		}
	}
	if dir := os.Getenv("FULLPIPE_BANK_SERIES"); dir != "" {
		name := strings.NewReplacer(" ", "_", "=", "-").Replace(p.String())
		if err := writeGzip(filepath.Join(dir, name+".json.gz"), k); err != nil {
			t.Error(err)
		}
	}
	n.judge(t, k)
}

// judge holds the verdict on a case against what was gained, the median of the pairs.
func (n *outcomes) judge(t *testing.T, k keptCase) {
	n.mu.Lock()
	defer n.mu.Unlock()
	v, gains := live.Judge(k.Result), map[verdict.Name]float64{}
	for name, pairs := range k.Gains {
		gains[name] = stats.Median(pairs)
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
		if _, named := gains[v.Limiter]; named {
			n.named++
		}
		if v.Confidence == verdict.High {
			n.high++
		}
	default:
		text = "WRONG"
		n.known++
		if v.Confidence == verdict.High {
			n.sure++
		}
	}
	code := verdict.Code("")
	if len(v.Evidence) > 0 {
		code = v.Evidence[0].Code
	}
	t.Logf("%s: FULLPIPE_BANK_CASE='%v': %.3g Mbit/s, %s %s %s (%s), gains %.2v, shares %.2v", text, k.Case,
		goodput(k.Result)/1e6, v.Limiter, v.Subtype, v.Confidence, code, gains, v.Shares)
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
// right. So is mixed where each of its candidates gains by itself. One that names what was not taken away is
// wrong where something else gains.
func rightByGains(v verdict.Verdict, gains map[verdict.Name]float64) (right, known bool) {
	best := 0.0
	for _, g := range gains {
		best = max(best, g)
	}
	g, tried := gains[v.Limiter]
	open := v.Limiter == verdict.Mixed || v.Limiter == verdict.Unknown || v.Limiter == verdict.SlowStart && !tried
	each := v.Limiter == verdict.Mixed && len(v.Candidates) > 1 && !slices.ContainsFunc(v.Candidates,
		func(n verdict.Name) bool { return gains[n] < limits })
	switch {
	case each:
		return true, true
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
	two := map[verdict.Name]float64{verdict.SendBuffer: 0.36, verdict.ReceiverWindow: 0.35, verdict.Bottleneck: 0.03}
	for _, c := range []struct {
		limiter      verdict.Name
		gains        map[verdict.Name]float64
		right, known bool
		candidates   []verdict.Name
	}{
		{verdict.Bottleneck, gains, true, true, nil}, {verdict.SendBuffer, gains, false, false, nil},
		{verdict.Congestion, gains, false, true, nil}, {verdict.CPU, gains, false, true, nil},
		{verdict.Mixed, gains, false, true, nil}, {verdict.Unknown, nothing, true, true, nil},
		{verdict.Mixed, nothing, true, true, nil}, {verdict.SlowStart, nothing, false, true, nil},
		{verdict.CPU, nothing, false, false, nil},
		{verdict.Mixed, two, true, true, []verdict.Name{verdict.SendBuffer, verdict.ReceiverWindow}},
		{verdict.Mixed, two, false, true, []verdict.Name{verdict.SendBuffer, verdict.Bottleneck}},
		{verdict.Unknown, two, false, true, []verdict.Name{verdict.SendBuffer, verdict.ReceiverWindow}},
	} {
		v := verdict.Verdict{Limiter: c.limiter, Candidates: c.candidates}
		if right, known := rightByGains(v, c.gains); right != c.right || known != c.known {
			t.Errorf("%s of %v: %t, %t", c.limiter, c.gains, right, known)
		}
	}
}
