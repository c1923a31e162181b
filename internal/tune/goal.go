package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Goal is what a setup is chosen for.
type Goal string

const (
	// Throughput asks for the highest goodput; the zero Goal means the same.
	Throughput Goal = "throughput"
	// Latency is the shortest round trip under load that keeps nearly all of the goodput.
	Latency Goal = "latency"
)

// isThroughput reports that a setup is chosen for its goodput.
func (g Goal) isThroughput() bool { return g == "" || g == Throughput }

const (
	// shortQueue is the delay by load that nobody notices (ITU-T G.114 leaves 150 ms one
	// way for all that a call takes), or a tenth of the idle round trip.
	shortQueue = 5 * time.Millisecond
)

// score returns what the goal wants to be large: goodput in bit/s, round trips a second under load, or the mean of two
// flows' goodputs. It is 0 for a transfer that gave up more goodput than the baseline may lose.
func (r *runner) score(t *Trial, baseline float64) float64 {
	switch r.cfg.Goal {
	case Fair:
		return t.fairly()
	case Latency:
	default:
		return t.Goodput
	}
	rtt := t.result.MeanRTT()
	if rtt <= 0 || t.Goodput < keepsInOneRun*baseline {
		return 0
	}
	return 1 / rtt.Seconds()
}

// scores returns what the goal wants to be large, of each transfer.
func (r *runner) scores(trials []*Trial) []float64 {
	return each(trials, func(t *Trial) float64 { return r.score(t, 0) })
}

// delayOf compares the round trips under load of what was measured in pairs.
func (v *verification) delayOf(before, after []*Trial) *record.TuneDelay {
	rtt := func(t *Trial) float64 { return t.result.MeanRTT().Seconds() }
	b := each(before, rtt)
	a := each(after, rtt)
	return &record.TuneDelay{Before: units.Duration(units.Seconds(stats.Median(b))),
		After:    units.Duration(units.Seconds(stats.Median(a))),
		TuneGain: record.NewGain(stats.PooledGain(b, a, confidence, v.compared.pairNoise))}
}

// Fair chooses a setup by the geometric mean of its goodput and a second flow's, so that it wins only where it gains,
// as a factor, more than it takes (proportional fairness: Kelly, Maulloo and Tan, J. Oper. Res. Soc. 49-3, 1998).
const Fair Goal = "fair"

// othersControl is the congestion control of the second flow.
const othersControl = "cubic"

const (
	// Two flows share a link after many round trips only.
	fairRounds = 60
	fairLeast  = 4 * time.Second
	// fairBudgets is how many times the budget is that nobody stated.
	fairBudgets = 3
)

// shared makes a transfer while a second flow runs, of a program that changes nothing but
// the congestion control. Its goodput is that of a shared link, so the trials leave it out.
func (r *runner) shared(ctx context.Context, t Trial) (Trial, error) {
	t.Spec.Time = r.together(t.Spec.Time)
	other := transfer.Spec{Direction: r.direction, Time: t.Spec.Time}
	sender, _ := r.ends(&other)
	sender.Congestion = othersControl
	if r.control == othersControl || r.cfg.Second.Check(transfer.TCP(other)) != nil {
		sender.Congestion = "" // its own, which is that or all there is
	}
	type answer struct {
		result *transfer.Result
		err    error
	}
	done := make(chan answer, 1)
	end, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() {
		r, err := transfer.Run(end, r.cfg.Second, other, nil)
		done <- answer{r, err}
	}()
	t.shared = true
	t, err := r.try(ctx, t)
	if err != nil {
		cancel()
	}
	a := <-done
	switch {
	case err != nil:
		return t, err
	case a.err != nil:
		return t, fmt.Errorf("the second flow: %w", a.err)
	}
	if received, ok := a.result.Received(); ok {
		r.budget.spent.Bytes += received.Bytes
	}
	t.others = steady(a.result)
	if t.others <= 0 {
		return t, errors.New("the second flow: nothing arrived")
	}
	return t, nil
}

// steady is a transfer's goodput without slow start, where that is known.
func steady(r *transfer.Result) float64 {
	if r == nil {
		return 0
	}
	if startup, ok := r.Startup(); ok {
		return startup.SteadyBps
	}
	received, _ := r.Received()
	return received.Bps()
}

// fairly is the score of a transfer that shared the link.
func (t *Trial) fairly() float64 { return math.Sqrt(t.Goodput * t.others) }

// othersOf compares the second flow's goodputs in pairs.
func othersOf(before, after []*Trial, known stats.Noise) *record.TuneOthers {
	kept := func(t *Trial) float64 { return t.others }
	b := each(before, kept)
	a := each(after, kept)
	return &record.TuneOthers{BeforeBps: stats.Median(b), AfterBps: stats.Median(a),
		TuneGain: record.NewGain(stats.PooledGain(b, a, confidence, known))}
}
