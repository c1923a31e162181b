//go:build linux

package e2e

import (
	"fmt"
	"maps"
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

// randomPath is a path and buffers as nobody chose them. Its text replays it:
// FULLPIPE_BANK_CASE takes it.
type randomPath struct {
	bps           float64
	rtt           time.Duration
	queue         float64 // in BDPs
	loss          float64 // per cent
	jitter        time.Duration
	send, receive int // requested, bytes; 0: automatic
	bbr           bool
}

// drawPath draws rates, round trips and queues evenly in the logarithm, buffers as the
// documents advise (a BDP and a little more) or too small, and now and then loss, jitter
// and bbr; two of them together are as likely as chance makes them.
func drawPath(r *rand.Rand) randomPath {
	at := randomPoint(r, span{2e6, 100e6, 5 * time.Millisecond, 150 * time.Millisecond})
	p := randomPath{bps: at.bps, rtt: at.rtt, queue: []float64{0.5, 1, 1, 2, 4}[r.IntN(5)]}
	if r.IntN(4) == 0 {
		p.loss = []float64{0.01, 0.1, 0.3, 1}[r.IntN(4)]
	}
	if r.IntN(5) == 0 {
		p.jitter = p.rtt / 20
	}
	buffer := func() int {
		if r.IntN(2) == 0 {
			return 0
		}
		factor := []float64{0.25, 0.5, 0.8, 1, 1.05, 1.2, 1.5, 3}[r.IntN(8)]
		return max(int(factor*at.bdp()), 8192)
	}
	p.send, p.receive = buffer(), buffer()
	p.bbr = r.IntN(6) == 0
	return p
}

func (p randomPath) String() string {
	return fmt.Sprintf("bps=%.0f rtt=%v queue=%g loss=%g jitter=%v send=%d receive=%d bbr=%t", p.bps, p.rtt, p.queue,
		p.loss,
		p.jitter, p.send, p.receive, p.bbr)
}

func parsePath(text string) (p randomPath, err error) {
	for _, field := range strings.Fields(text) {
		key, value, _ := strings.Cut(field, "=")
		switch key {
		case "bps":
			p.bps, err = strconv.ParseFloat(value, 64)
		case "rtt":
			p.rtt, err = time.ParseDuration(value)
		case "queue":
			p.queue, err = strconv.ParseFloat(value, 64)
		case "loss":
			p.loss, err = strconv.ParseFloat(value, 64)
		case "jitter":
			p.jitter, err = time.ParseDuration(value)
		case "send":
			p.send, err = strconv.Atoi(value)
		case "receive":
			p.receive, err = strconv.Atoi(value)
		case "bbr":
			p.bbr, err = strconv.ParseBool(value)
		default:
			err = fmt.Errorf("%s: no such key", key)
		}
		if err != nil {
			return p, err
		}
	}
	return p, nil
}

// setup is the transfer. The link's rate is multiplied by faster, and its queue with it,
// so that the queue's time stays.
func (p randomPath) setup(faster float64) setup {
	at := pathPoint{p.bps, p.rtt}
	s := at.free()
	more := ""
	if p.loss > 0 {
		more += fmt.Sprintf(",loss=%g%%", p.loss)
	}
	if p.jitter > 0 {
		more += fmt.Sprintf(",jitter=%v", p.jitter)
	}
	quick := pathPoint{p.bps * faster, p.rtt}
	s.path = quick.path(max(p.queue*quick.bdp(), 15e3*faster), more)
	s.spec.Near.SendBuffer, s.spec.Far.ReceiveBuffer = p.send, p.receive
	if p.bbr {
		s.spec.Near.Congestion = "bbr"
	}
	return s
}

// removals are the counterfactuals, each one cause taken away: the link twice as fast, no
// loss, a buffer of twice the BDP and the queue, initial windows are left alone.
func (p randomPath) removals() map[verdict.Name]setup {
	enough := int(2 * (1 + p.queue) * pathPoint{p.bps, p.rtt}.bdp())
	all := map[verdict.Name]setup{verdict.Bottleneck: p.setup(2)}
	without := func(name verdict.Name, change func(*randomPath)) {
		q := p
		change(&q)
		all[name] = q.setup(1)
	}
	if p.loss > 0 {
		without(verdict.Congestion, func(q *randomPath) { q.loss = 0 })
	} else if p.queue < 1 { // its own losses
		without(verdict.Congestion, func(q *randomPath) { q.queue = 2 })
	}
	if p.send > 0 && p.send < enough {
		without(verdict.SendBuffer, func(q *randomPath) { q.send = 0 })
	}
	if p.receive > 0 && p.receive < enough {
		without(verdict.ReceiverWindow, func(q *randomPath) { q.receive = 0 })
	}
	return all
}

// TestBankRandomPaths judges transfers over paths that nobody chose, and measures what
// taking each cause away gains, in pairs. A verdict is right if taking away what it names
// gains 10 % or more, or if it is mixed or unknown where nothing alone does.
// FULLPIPE_BANK_TRIALS is how many (20); FULLPIPE_BANK_SEED replays a run, and
// FULLPIPE_BANK_CASE one case. Runs in which the lab was late are measured again, and left
// out after three; with FULLPIPE_BANK_LATE they count, to look round on a busy machine.
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
	with, v, err := p.judged(t)
	if err != nil {
		n.late++
		t.Logf("%v: left out: %v", p, err)
		return
	}
	gains := map[verdict.Name]float64{}
	for _, name := range slices.Sorted(maps.Keys(p.removals())) {
		freed, err := carryOut(t, p.removals()[name])
		if err != nil {
			t.Errorf("%v without %s: %v", p, name, err)
			return
		}
		gains[name] = goodput(freed)/with - 1
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
	t.Logf("%s: FULLPIPE_BANK_CASE='%v': %.3g Mbit/s, %s %s %s, gains %v, shares %v", text, p, with/1e6, v.Limiter,
		v.Subtype,
		v.Confidence, gains, v.Shares)
}

// judged measures until the lab kept its times, three times at most.
func (p randomPath) judged(t *testing.T) (bps float64, v verdict.Verdict, err error) {
	for range 3 {
		s := p.setup(1)
		s.account = new(lab.Account)
		var r *transfer.Result
		if r, err = carryOut(t, s); err != nil {
			return 0, v, err
		}
		if dir := os.Getenv("FULLPIPE_BANK_SERIES"); dir != "" {
			name := strings.NewReplacer(" ", "_", "=", "-").Replace(p.String())
			if err := writeGzip(dir+"/"+name+".json.gz", r); err != nil {
				t.Error(err)
			}
		}
		if s.account.Believable() || os.Getenv("FULLPIPE_BANK_LATE") != "" {
			return goodput(r), live.Judge(r), nil
		}
		err = fmt.Errorf("the lab was late: %+v", s.account.Worse())
	}
	return 0, v, err
}

// rightByGains holds a verdict against what taking causes away gained.
func rightByGains(v verdict.Verdict, gains map[verdict.Name]float64) (right, known bool) {
	best := 0.0
	for _, g := range gains {
		best = max(best, g)
	}
	open := v.Limiter == verdict.Mixed || v.Limiter == verdict.Unknown || v.Limiter == verdict.SlowStart
	switch g, tried := gains[v.Limiter]; {
	case open:
		return best < limits+unsure, best < limits-unsure || best >= limits+unsure
	case tried && g >= limits:
		return true, true
	case tried && g >= limits-unsure || best < limits+unsure:
		return false, false
	}
	return false, true
}
