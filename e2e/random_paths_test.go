//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// mostRandom bounds drawn rates in bit/s, where the machine carries twice as much.
const mostRandom = 100e6

// TestBankRandomPaths judges transfers over paths that nobody chose. What limits one is known by
// its numbers where one thing allows clearly less than all others (constructed), and of one path in
// twenty, whatever its numbers say, by measuring in pairs what taking each cause away gains: a verdict
// is right if taking away what it names gains 10 % or more, or if it is mixed or unknown where
// nothing alone does. Paths of which neither tells are drawn again, as are two of three that are
// full links by their numbers: most are.
//
// It goes on for FULLPIPE_BANK_TIME (10m), and where an earlier run ended: cases are kept in the directory
// FULLPIPE_BANK_SERIES, below the judge's code and in the order of one seed (FULLPIPE_BANK_SEED; by the
// clock), until FULLPIPE_BANK_TRIALS (500) are known by their numbers. The row is of all of the code.
// FULLPIPE_BANK_CASE measures one case in pairs, FULLPIPE_BANK_REPLAY judges a directory's cases again.
//
// Runs in which the lab was late, or programs in it had no core, are measured again, and left out after
// three, before anybody looks at their verdict; with FULLPIPE_BANK_LATE they count, to look round on a busy
// machine. Slow paths share the machine.
func TestBankRandomPaths(t *testing.T) {
	bankOnly(t)
	if dir := os.Getenv("FULLPIPE_BANK_REPLAY"); dir != "" {
		replay(t, dir)
		return
	}
	b := randomBank{t: t}
	if one := os.Getenv("FULLPIPE_BANK_CASE"); one != "" {
		p, err := parsePath(one)
		if err != nil {
			t.Fatal(err)
		}
		b.end = time.Now().Add(time.Hour)
		alone(t, func() {
			if k := b.measure(p, true); k != nil {
				b.count.add(t, *k)
			}
		})
		return
	}
	end, err := time.ParseDuration(os.Getenv("FULLPIPE_BANK_TIME"))
	if err != nil {
		end = 10 * time.Minute
	}
	n, err := strconv.Atoi(os.Getenv("FULLPIPE_BANK_TRIALS"))
	if err != nil {
		n = 500
	}
	b.end = time.Now().Add(end)
	alone(t, func() {
		b.goOn(os.Getenv("FULLPIPE_BANK_SERIES"))
		b.run(n)
	})
	record(t, b.count.row(fmt.Sprintf("FULLPIPE_BANK_SEED=%d FULLPIPE_BANK_SERIES=DIRECTORY FULLPIPE_BANK_TIME=3h "+
		"make bank RUN=TestBankRandomPaths # up to %.3g Mbit/s: half of what this machine carried", b.kept.Seed,
		b.kept.Most/1e6)))
}

// randomBank is a run of the bank.
type randomBank struct {
	t      *testing.T
	dir    string // "": nothing is kept
	kept   keptRun
	end    time.Time
	places places
	count  outcomes
}

// keptRun is what the cases of a directory have in common.
type keptRun struct {
	Seed uint64
	Most float64 // the largest rate drawn, bit/s
}

// goOn reads what earlier runs of this judge kept, or begins anew.
func (b *randomBank) goOn(dir string) {
	carried := b.carries()
	b.places.all, b.places.free = carried/2, carried/2
	b.kept.Most = min(carried/2, mostRandom)
	seed, err := strconv.ParseUint(os.Getenv("FULLPIPE_BANK_SEED"), 10, 64)
	if err != nil {
		seed = uint64(time.Now().UnixNano())
	}
	b.kept.Seed = seed
	if dir != "" {
		judge, err := codeOf("../internal/verdict/live")
		if err != nil {
			b.t.Fatal(err)
		}
		thresholds, err := codeOf("../internal/verdict/threshold")
		if err != nil {
			b.t.Fatal(err)
		}
		b.dir = filepath.Join(dir, judge+thresholds)
		if err := os.MkdirAll(b.dir, 0o755); err != nil {
			b.t.Fatal(err)
		}
		run := filepath.Join(b.dir, "run.json.gz")
		err = readGzip(run, &b.kept)
		if errors.Is(err, fs.ErrNotExist) {
			err = writeGzip(run, b.kept)
		}
		if err != nil {
			b.t.Fatal(err)
		}
	}
	b.t.Logf("FULLPIPE_BANK_SEED=%d, up to %.3g Mbit/s; the machine carries %.3g", b.kept.Seed, b.kept.Most/1e6,
		carried/1e6)
}

// carries is the rate in bit/s, 200 Mbit/s at most, at which a lab keeps its times here and its programs
// have a core.
func (b *randomBank) carries() float64 {
	const least = 10e6
	for bps := 2 * mostRandom; bps > least; bps /= 2 {
		s := pathPoint{bps, 20 * time.Millisecond}.free()
		if _, err := undisturbedTransfer(b.t, s, 3); err == nil {
			return bps
		}
	}
	return least
}

// run measures the seed's cases that are not kept yet, in their order, until so many are known by
// their numbers or the time is over. A case that the end cuts short is the next run's.
func (b *randomBank) run(n int) {
	const pairedOneIn, fullOneIn, atOnce = 20, 3, 4
	r := rand.New(rand.NewPCG(b.kept.Seed, 0))
	slots := make(chan struct{}, atOnce)
	var wait sync.WaitGroup
	defer wait.Wait()
	for i, known := 0, 0; known < n; i++ {
		p := drawPath(r, b.kept.Most)
		paired, spare, name := r.IntN(pairedOneIn) == 0, r.IntN(fullOneIn) > 0, p.constructed()
		if !paired && (name == "" || name == verdict.Bottleneck && spare) {
			continue
		}
		if name != "" {
			known++
		}
		file, k := filepath.Join(b.dir, fmt.Sprintf("%04d.json.gz", i)), new(keptCase)
		if b.dir != "" && readGzip(file, k) == nil {
			b.count.add(b.t, *k)
			if k.Late != "" && name != "" {
				known--
			}
			continue
		}
		slots <- struct{}{}
		if time.Now().After(b.end) {
			return
		}
		wait.Go(func() {
			defer func() { <-slots }()
			if k := b.measure(p, paired); k != nil {
				if b.dir != "" {
					if err := writeGzip(file, k); err != nil {
						b.t.Error(err)
					}
				}
				b.count.add(b.t, *k)
			}
		})
	}
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
		if k.Case != "" {
			count.add(t, k)
		}
	}
	t.Logf("%+v", count.row(""))
}

// keptCase is a case as it was measured.
type keptCase struct {
	Case string
	// Late says why it was left out; "": it was not.
	Late   string                     `json:",omitempty"`
	Gains  map[verdict.Name][]float64 // of each pair: without the cause over with it, less 1; nil: by its numbers
	Result *transfer.Result
}

// outcomes counts what became of the cases.
type outcomes struct {
	mu                                                     sync.Mutex // guards the rest
	known, right, sure, close, late, high, named           int
	built, builtRight, paired, pairedRight, held, disputed int
}

// row is the bank's.
func (n *outcomes) row(command string) bankRow {
	low, high := (tally{known: n.known, right: n.right}).interval()
	row := bankRow{Section: "Attribution", Case: "random paths, truth by their numbers and by counterfactual",
		Claim: "right in at least 95 %, wrong with high confidence in at most 1 %",
		Measured: fmt.Sprintf("%d of %d right (by their numbers %d of %d, by counterfactual in pairs %d of %d), %d of them "+
			"by a name, %d with high confidence; %d wrong with high confidence", n.right, n.known, n.builtRight, n.built,
			n.pairedRight, n.paired, n.named, n.high, n.sure),
		Spread: fmt.Sprintf("95 %% interval %.1f–%.1f %%; %d too close to call, %d left out because lab or programs were "+
			"late; the numbers said what pairs showed in %d of %d", 100*low, 100*high, n.close, n.late, n.held,
			n.held+n.disputed),
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

// places are shares of what the machine carries.
type places struct {
	all   float64    // bit/s
	mu    sync.Mutex // guards free
	free  float64
	left  sync.Cond
	ready sync.Once
}

// take waits until a run at that rate has room, which the fastest have alone.
func (p *places) take(bps float64) (giveBack func()) {
	p.ready.Do(func() { p.left.L = &p.mu })
	const atLeast = 1. / 3
	share := min(max(bps, atLeast*p.all), p.all)
	p.mu.Lock()
	for p.free < share {
		p.left.Wait()
	}
	p.free -= share
	p.mu.Unlock()
	return func() {
		p.mu.Lock()
		p.free += share
		p.mu.Unlock()
		p.left.Broadcast()
	}
}

// measure measures the case, and, in pairs, without each cause; nil: the time was over. Gains below
// nearGain are measured in three pairs: luck moves single ones by a tenth.
func (b *randomBank) measure(p randomPath, paired bool) *keptCase {
	const nearGain, pairs = 0.3, 3
	k := &keptCase{Case: p.String()}
	over := errors.New("the time is over")
	one := func(s setup, bps float64) (*transfer.Result, error) {
		defer b.places.take(bps)()
		if time.Now().After(b.end) {
			return nil, over
		}
		return undisturbedTransfer(b.t, s, 3)
	}
	first, err := one(p.setup(), p.bps)
	k.Result = first
	if paired && err == nil {
		k.Gains = map[verdict.Name][]float64{}
	}
	for i := 0; i < pairs && paired && err == nil; i++ {
		with, tried := first, false
		for _, without := range p.removals() {
			gains := k.Gains[without.name]
			if i > 0 && (gains[0] < -nearGain || gains[0] > nearGain) {
				continue
			}
			if i > 0 && !tried {
				if with, err = one(p.setup(), p.bps); err != nil {
					break
				}
			}
			tried = true
			bps := p.bps
			if without.name == verdict.Bottleneck {
				bps *= 2
			}
			var freed *transfer.Result
			if freed, err = one(without.setup, bps); err != nil {
				break
			}
			k.Gains[without.name] = append(gains, goodput(freed)/goodput(with)-1)
		}
		if !tried {
			break
		}
	}
	switch {
	case errors.Is(err, over):
		return nil
	case err != nil:
		k.Late, k.Result = err.Error(), nil
	}
	return k
}

// add judges a case and holds the verdict against what was gained, the median of the pairs, or
// against the numbers that the path was made of.
func (n *outcomes) add(t *testing.T, k keptCase) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if k.Late != "" {
		n.late++
		t.Logf("%v: left out: %s", k.Case, k.Late)
		return
	}
	p, err := parsePath(k.Case)
	if err != nil {
		t.Error(err)
		return
	}
	v, gains, name := live.Judge(k.Result), map[verdict.Name]float64{}, p.constructed()
	for name, pairs := range k.Gains {
		gains[name] = stats.Median(pairs)
	}
	paired := len(gains) > 0
	right, known := p.rightByNumbers(v)
	if paired {
		right, known = rightByGains(v, gains)
		switch {
		case name == "":
		case gains[name] >= limits:
			n.held++
		default:
			n.disputed++
			t.Logf("DISPUTED: %s by its numbers", name)
		}
	}
	text := "right"
	one := map[bool]int{true: 1}
	switch {
	case !known:
		text = "too close to call"
		n.close++
	case right:
		_, named := gains[v.Limiter]
		n.named += one[named || !paired]
		n.high += one[v.Confidence == verdict.High]
	default:
		text = "WRONG"
		n.sure += one[v.Confidence == verdict.High]
	}
	n.known += one[known]
	n.right += one[known && right]
	n.paired += one[known && paired]
	n.pairedRight += one[known && right && paired]
	n.built += one[known && !paired]
	n.builtRight += one[known && right && !paired]
	code := verdict.Code("")
	if len(v.Evidence) > 0 {
		code = v.Evidence[0].Code
	}
	t.Logf("%s: FULLPIPE_BANK_CASE='%v': %.3g Mbit/s, %s %s %s (%s), by its numbers %s, gains %.2v, shares %.2v", text,
		k.Case, goodput(k.Result)/1e6, v.Limiter, v.Subtype, v.Confidence, code, name, gains, v.Shares)
}

// undisturbedTransfer measures until the lab kept its times and its programs had a core,
// so many times at most.
func undisturbedTransfer(t *testing.T, s setup, tries int) (*transfer.Result, error) {
	var why error
	for range tries {
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
