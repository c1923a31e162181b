//go:build linux

package bench

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

const (
	limits = 0.10 // the gain from which what was taken away had been a limiter
	unsure = 0.05 // how far from that a gain is too close to call
	// lightest is the rate in bit/s up to which labs share the machine.
	lightest = 20e6
)

// trial is one cause at one point, with the verdict and the measured truth.
type trial struct {
	cause   harness.Cause
	point   harness.PathPoint
	verdict verdict.Verdict
	oneEnd  [2]verdict.Verdict // with the sender's samples alone, with the receiver's
	with    float64            // goodput, bit/s
	gains   map[verdict.Name]float64
	err     error
}

// right reports whether removing the named limiter gains enough; known is false where the gains are too close to
// call.
func (r *trial) right(v verdict.Verdict) (right, known bool) {
	if r.gains[v.Limiter] >= limits {
		return true, true
	}
	for _, g := range r.gains {
		if g >= limits+unsure {
			return false, r.gains[v.Limiter] < limits-unsure
		}
	}
	return false, false
}

// wrong reports whether a verdict is wrong with high confidence.
func (r *trial) wrong(v verdict.Verdict) bool {
	right, known := r.right(v)
	return known && !right && v.Confidence == verdict.High
}

// TestBankAttribution compares verdicts with the gain from removing the cause. FULLPIPE_BANK_TRIALS is the number of
// trials for each cause (3), FULLPIPE_BANK_SEED draws other paths, FULLPIPE_BANK_CAUSES picks causes,
// FULLPIPE_BANK_SERIES is a directory that keeps the sample series, FULLPIPE_BANK_RATES bounds the rates
// ("2e6-500e6").
func TestBankAttribution(t *testing.T) {
	bankOnly(t)
	trials := drawTrials(t, attributed(), 3)
	var wait sync.WaitGroup
	light := make(chan struct{}, 4)
	for i := range trials {
		if trials[i].point.RateBps > lightest {
			continue
		}
		wait.Go(func() {
			light <- struct{}{}
			defer func() { <-light }()
			trials[i].carryOut(t)
		})
	}
	wait.Wait()
	for i := range trials {
		if trials[i].point.RateBps > lightest {
			alone(t, func() { trials[i].carryOut(t) })
		}
	}
	report(t, trials)
}

// span bounds the points from which trials are drawn: rates in bit/s, round trips.
type span struct {
	least, most      float64
	shortest, widest time.Duration
}

// attributed are the points of TestBankAttribution.
func attributed() span { return span{2e6, 500e6, 2 * time.Millisecond, 200 * time.Millisecond} }

// bounded applies the bounds that the environment sets.
func (s span) bounded() span {
	fmt.Sscanf(os.Getenv("FULLPIPE_BANK_RATES"), "%g-%g", &s.least, &s.most)
	return s
}

// drawTrials draws n trials for each cause unless the environment sets another number.
func drawTrials(t *testing.T, among span, each int) (trials []trial) {
	number := func(name string, byDefault int) int {
		n, err := strconv.Atoi(os.Getenv(name))
		if err != nil {
			return byDefault
		}
		return n
	}
	among = among.bounded()
	r := rand.New(rand.NewPCG(uint64(number("FULLPIPE_BANK_SEED", 1)), 0))
	for _, c := range harness.Causes() {
		chosen := strings.Contains(c.Name, os.Getenv("FULLPIPE_BANK_CAUSES"))
		for range number("FULLPIPE_BANK_TRIALS", each) {
			for range 1000 {
				p := randomPoint(r, among)
				if c.Fits == nil || c.Fits(p) {
					if chosen {
						trials = append(trials, trial{cause: c, point: p})
					}
					break
				}
			}
		}
	}
	if len(trials) == 0 {
		t.Fatal("no trial fits")
	}
	return trials
}

// alone runs measure while no other measuring test runs on this machine.
func alone(t *testing.T, measure func()) {
	lock, err := os.OpenFile(filepath.Join(os.TempDir(), "fullpipe-measure.lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	measure()
}

// carryOut measures with the cause, judges, and measures the gain without the cause. It measures with a faster link
// as well where the verdict needs that.
func (r *trial) carryOut(t *testing.T) {
	var result *transfer.Result
	r.gains = map[verdict.Name]float64{}
	with := r.point.UnlimitedTransfer()
	r.cause.With(r.point, &with)
	if result, r.err = harness.RunTransfer(t, with); r.err != nil {
		return
	}
	r.with, r.verdict = harness.Goodput(result), live.Judge(result)
	blind := *result
	blind.Far = nil
	r.oneEnd[0] = live.Judge(&blind)
	blind.Near, blind.Far = nil, result.Far
	r.oneEnd[1] = live.Judge(&blind)
	defer r.keep(t, result)
	gain := func(name verdict.Name, without harness.LabTransfer) {
		freed, err := harness.RunTransfer(t, without)
		if r.err = err; err == nil {
			r.gains[name] = harness.Goodput(freed)/r.with - 1
		}
	}
	without := r.point.UnlimitedTransfer()
	if r.cause.Without != nil {
		r.cause.Without(r.point, &without)
	}
	gain(r.cause.Limiter, without)
	switch {
	case r.err != nil:
	case r.cause.Limiter == verdict.Bottleneck:
		if r.verdict.Limiter == verdict.Congestion {
			gain(verdict.Congestion, r.point.UnlimitedTransfer()) // a queue that is not too short
		}
	case r.gains[r.cause.Limiter] < limits+unsure:
		faster := r.point.DoubleRate().UnlimitedTransfer()
		r.cause.With(r.point, &faster)
		faster.Path = strings.Replace(with.Path, fmt.Sprintf("rate=%.0f,", r.point.RateBps), fmt.Sprintf("rate=%.0f,",
			2*r.point.RateBps), 1)
		gain(verdict.Bottleneck, faster)
	}
	t.Log(r)
}

func (r *trial) String() string {
	right, known := r.right(r.verdict)
	text := map[bool]string{true: "right", false: "WRONG"}[right]
	if !known {
		text = "too close to call"
	}
	shares := ""
	for _, n := range r.verdict.Shares.Top() {
		if r.verdict.Shares[n] >= 0.05 {
			shares += fmt.Sprintf(" %s %.0f %%", n, 100*r.verdict.Shares[n])
		}
	}
	gains := ""
	for name, gain := range r.gains {
		gains += fmt.Sprintf(" %s %+.0f %%", name, 100*gain)
	}
	return fmt.Sprintf("%s: %s at %v: %.3g Mbit/s, %s %s %s [%s], gained without:%s %v", text, r.cause.Name, r.point,
		r.with/1e6,
		r.verdict.Limiter, r.verdict.Subtype, r.verdict.Confidence, strings.TrimSpace(shares), gains, r.err) + r.oneEnds()
}

func (r *trial) oneEnds() string {
	return fmt.Sprintf(" sender alone: %s %s, receiver alone: %s %s", r.oneEnd[0].Limiter, r.oneEnd[0].Confidence,
		r.oneEnd[1].Limiter, r.oneEnd[1].Confidence)
}

// keep stores the judged series, thinned, under the name of its strongest limiter. Good ones become
// internal/verdict/live/testdata.
func (r *trial) keep(t *testing.T, result *transfer.Result) {
	dir := os.Getenv("FULLPIPE_BANK_SERIES")
	truth, most := "", limits+unsure
	for name, gain := range r.gains {
		if gain >= most {
			truth, most = string(name), gain
		}
	}
	if dir == "" || truth == "" {
		return
	}
	for end, samples := range map[*transfer.End]int{result.Near: 160, result.Far: 50} {
		for i := range end.Streams {
			end.Streams[i].Samples = transfer.Downsample(end.Streams[i].Samples, samples/min(len(end.Streams), 3))
		}
	}
	name := strings.NewReplacer(" ", "-", "/", "", "(", "", ")", "", ",", "", "×", "x", "'", "").Replace(r.cause.Name +
		"_" + r.point.String())
	if err := writeGzip(filepath.Join(dir, truth+"_"+name+".json.gz"), result); err != nil {
		t.Error(err)
	}
}

func writeGzip(name string, v any) error {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	if err := errors.Join(json.NewEncoder(z).Encode(v), z.Close()); err != nil {
		return err
	}
	return os.WriteFile(name, packed.Bytes(), 0o644)
}

func readGzip(name string, v any) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	unpacked, err := gzip.NewReader(file)
	if err != nil {
		return err
	}
	return json.NewDecoder(unpacked).Decode(v)
}

// report records a row for each cause and one for all.
func report(t *testing.T, trials []trial) {
	drawn := attributed().bounded()
	least, most := drawn.least, drawn.most
	span := fmt.Sprintf("%.3g–%.3g Mbit/s", least/1e6, most/1e6)
	row := bankRow{Section: "Attribution", Command: fmt.Sprintf("FULLPIPE_BANK_RATES=%g-%g make bank "+
		"RUN=TestBankAttribution", least, most)}
	total, byCause := tally{}, map[string]tally{}
	for i := range trials {
		r := &trials[i]
		if r.err != nil {
			t.Errorf("%s at %v: %v", r.cause.Name, r.point, r.err)
			continue
		}
		byCause[r.cause.Name] = byCause[r.cause.Name].with(r)
		total = total.with(r)
		for _, v := range []verdict.Verdict{r.verdict, r.oneEnd[0], r.oneEnd[1]} {
			if r.wrong(v) {
				t.Errorf("wrong with high confidence: %s %v, of %v", v.Limiter, v.Evidence, r)
			}
		}
	}
	for _, c := range harness.Causes() {
		n, tried := byCause[c.Name]
		if !tried {
			continue
		}
		row.Case, row.Claim = c.Name+", "+span, string(c.Limiter)+" in every trial where its absence gains 10 %"
		row.Measured, row.Spread = n.String(), n.unclear()
		row.Verdict = map[bool]string{true: "pass", false: "inconclusive"}[n.right == n.known]
		record(t, row)
	}
	low, high := total.interval()
	row.Case, row.Claim = "all causes, "+span+" × 2–200 ms", "right in at least 95 %, wrong with high confidence in none"
	row.Measured = fmt.Sprintf("%v; %d wrong with high confidence", total, total.confident)
	row.Spread = fmt.Sprintf("95 %% interval %.1f–%.1f %%%s", 100*low, 100*high, total.unclear())
	switch {
	case total.confident > 0 || high < 0.95:
		row.Verdict = "fail"
	case low >= 0.95:
		row.Verdict = "pass"
	default:
		row.Verdict = "inconclusive"
	}
	record(t, row)
}
