//go:build linux

package bench

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

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// mostRandom bounds drawn rates in bit/s on machines that carry twice as much.
const mostRandom = 100e6

// TestBankRandomPaths judges transfers over random paths. The numbers of a path give its limiter where one
// thing allows clearly less than all others (constructed). One path in ten is also measured in pairs, with
// and without each cause: a verdict is right if removing its limiter gains 10 % or more, or if it is mixed
// or unknown and no single removal gains that much. Paths whose limiter neither method decides are drawn
// anew, as are two of three that are full links by their numbers, because most are.
//
// It runs for FULLPIPE_BANK_TIME (10m) and continues an earlier run: cases are kept in the directory
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

// keptRun is the common part of the cases of a directory.
type keptRun struct {
	Seed uint64
	Most float64 // the largest rate drawn, bit/s
}

// goOn reads the cases of earlier runs of this judge, or begins anew.
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

// carries returns the rate in bit/s, 200 Mbit/s at most, at which a lab is on time here and its programs have a core.
func (b *randomBank) carries() float64 {
	const least = 10e6
	for bps := 2 * mostRandom; bps > least; bps /= 2 {
		s := harness.PathPoint{RateBps: bps, RTT: 20 * time.Millisecond}.UnlimitedTransfer()
		_, err := undisturbedTransfer(b.t, s, 3)
		if err == nil {
			return bps
		}
		b.t.Logf("not %.3g Mbit/s: %v", bps/1e6, err)
	}
	return least
}

// run measures the seed's cases that are not kept yet, in their order, until the requested number is known
// by their numbers or the time is over. A case that the end cuts short is the next run's.
func (b *randomBank) run(n int) {
	const pairedOneIn, fullOneIn, atOnce = 10, 3, 8
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

// places are shares of what the machine carries.
type places struct {
	all   float64    // bit/s
	mu    sync.Mutex // guards free
	free  float64
	left  sync.Cond
	ready sync.Once
}

// take waits until there is room for a run at that rate. The fastest runs have the machine to themselves.
func (p *places) take(bps float64) (giveBack func()) {
	p.ready.Do(func() { p.left.L = &p.mu })
	const atLeast = 1. / 8
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

// measure measures the case, and, in pairs, without each cause. It returns nil if the time was over. Gains below
// nearGain are measured in three pairs: chance moves single ones by a tenth.
func (b *randomBank) measure(p randomPath, paired bool) *keptCase {
	const nearGain, pairs = 0.3, 3
	k := &keptCase{Case: p.String()}
	over := errors.New("the time is over")
	one := func(s harness.LabTransfer, bps float64) (*transfer.Result, error) {
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
			if freed, err = one(without.LabTransfer, bps); err != nil {
				break
			}
			k.Gains[without.name] = append(gains, harness.Goodput(freed)/harness.Goodput(with)-1)
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

// undisturbedTransfer repeats the measurement until the lab was on time and its programs had a core,
// at most the given number of times.
func undisturbedTransfer(t *testing.T, s harness.LabTransfer, tries int) (*transfer.Result, error) {
	var why error
	for range tries {
		s.Account = new(lab.Lateness)
		r, err := harness.RunTransfer(t, s)
		if err != nil {
			return nil, err
		}
		starved := slices.ContainsFunc(live.Judge(r).Evidence, func(e verdict.Evidence) bool {
			return e.Code == verdict.RunqueueWaited
		})
		if s.Account.Believable() && !starved || os.Getenv("FULLPIPE_BANK_LATE") != "" {
			return r, nil
		}
		why = fmt.Errorf("the lab was late, or its programs were (%t): %+v", starved, s.Account.Worse())
	}
	return nil, why
}
