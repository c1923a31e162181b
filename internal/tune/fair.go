package tune

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Fair has a setup chosen by what it gives together with what it leaves to others on the
// link: each way to send is measured beside a second flow, and scored by the geometric mean
// of the two goodputs. So a setup wins only where it gains, as a factor, more than it takes
// (proportional fairness: Kelly, Maulloo and Tan, J. Oper. Res. Soc. 49-3, 1998).
const Fair Goal = "fair"

// othersControl is the congestion control of the flow beside.
const othersControl = "cubic"

const (
	// Two flows share a link after many round trips only.
	fairRounds = 60
	fairLeast  = 4 * time.Second
	// fairBudgets is how many times the budget is that nobody stated.
	fairBudgets = 3
)

// Others is what a flow beside ours keeps, as today and with the chosen setup.
type Others struct {
	Before, After float64        // bit/s, medians
	Factor        stats.Interval // after over before, 95 %
}

// together is how long a transfer beside another one has to last.
func (l *loop) together(length time.Duration) time.Duration {
	return max(length, fairRounds*l.round, fairLeast)
}

// beside makes a transfer with another one beside it, of a program that changes nothing but
// the congestion control. What it gave is about a shared link: it is kept out of the trials.
func (l *loop) beside(ctx context.Context, t Trial) (Trial, error) {
	t.Spec.Time = l.together(t.Spec.Time)
	other := transfer.Spec{Direction: l.out.Direction, Time: t.Spec.Time}
	sender, _ := l.ends(&other)
	sender.Congestion = othersControl
	if l.control == othersControl || l.cfg.Beside.Check(transfer.TCP(other)) != nil {
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
		r, err := transfer.Run(end, l.cfg.Beside, other, nil)
		done <- answer{r, err}
	}()
	t.shared = true
	t, err := l.try(ctx, t)
	if err != nil {
		cancel()
	}
	a := <-done
	switch {
	case err != nil:
		return t, err
	case a.err != nil:
		return t, fmt.Errorf("the flow beside: %w", a.err)
	}
	if received, ok := a.result.Received(); ok {
		l.bytes += received.Bytes
	}
	t.others = steady(a.result)
	if t.others <= 0 {
		return t, errors.New("the flow beside: nothing arrived")
	}
	return t, nil
}

// steady is a transfer's goodput without slow start, where that could be told.
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

// othersOf compares what the flow beside kept in pairs.
func othersOf(before, after []*Trial, known stats.Noise) *Others {
	kept := func(trials []*Trial) (all []float64) {
		for _, t := range trials {
			all = append(all, t.others)
		}
		return all
	}
	b := kept(before)
	a := kept(after)
	return &Others{Before: stats.Median(b), After: stats.Median(a), Factor: stats.PooledGain(b, a, confidence, known)}
}

// alone measures the proven setup once by itself, for what a transfer gets with it where
// nobody else is on the link.
func (l *loop) alone(ctx context.Context, target Setup) error {
	if len(l.of(func(t *Trial) bool { return t.Setup == target })) > 0 {
		return nil
	}
	_, err := l.try(ctx, l.with(target, l.length(target), "alone on the link"))
	return err
}
