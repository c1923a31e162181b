package tune

import (
	"context"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// Goal is what a setup is chosen for.
type Goal string

const (
	// Throughput is the most goodput; the zero Goal is the same.
	Throughput Goal = "throughput"
	// Latency is the shortest round trip under load that keeps nearly all of the goodput.
	Latency Goal = "latency"
)

const (
	// keeps is the share of today's goodput that a setup for Latency has to keep.
	keeps = 0.95
	// keepsInOneRun leaves room for one run's noise.
	keepsInOneRun = 0.92
	// shortQueue is the delay by load that nobody notices (ITU-T G.114 leaves 150 ms one
	// way for all that a call takes), or a tenth of the idle round trip.
	shortQueue = 5 * time.Millisecond
)

// Delay is the mean round trip under load, before and with the chosen setup.
type Delay struct {
	Before, After time.Duration
	Factor        stats.Interval // after over before, 95 %
}

// score is what the goal wants to be large: goodput in bit/s, round trips a second under load,
// or the mean of two flows' goodputs. It is 0 for a transfer that gave up more goodput than
// its reference may lose.
func (l *loop) score(t *Trial, reference float64) float64 {
	switch l.cfg.Goal {
	case Fair:
		return t.fairly()
	case Latency:
	default:
		return t.Goodput
	}
	rtt := t.result.MeanRTT()
	if rtt <= 0 || t.Goodput < keepsInOneRun*reference {
		return 0
	}
	return 1 / rtt.Seconds()
}

// tryFor makes one transfer as the goal wants it measured.
func (l *loop) tryFor(ctx context.Context, t Trial) (Trial, error) {
	if l.cfg.Goal == Fair {
		return l.beside(ctx, t)
	}
	return l.try(ctx, t)
}

// span is how long a transfer takes that is measured as the goal wants it.
func (l *loop) span(s Setup) time.Duration {
	if l.cfg.Goal == Fair {
		return l.together(l.length(s))
	}
	return l.length(s)
}

// seekLatency finds what shortens the queue that today's transfer builds, if it is worth it.
func (l *loop) seekLatency(ctx context.Context) error {
	today := l.out.Trials[0]
	added := today.result.MeanRTT() - l.round
	if added < max(shortQueue, l.round/10) {
		l.answer = search.Answer{Verdict: search.NoChange, Share: 1}
		return nil
	}
	winner, ok, err := l.contest(ctx, Setup{}, l.rivals(Setup{}), true)
	if ok {
		l.winner = winner
	}
	return err
}

// latencyIdeas keep what is in flight, or the rate, just below what the path holds; a
// control that does not fill queues does so by itself.
func (l *loop) latencyIdeas() []Setup {
	p := &l.out.Path
	ideas := []Setup{{PacingBps: keeps * p.BottleneckBps}, {PacingBps: 0.98 * p.BottleneckBps}}
	if p.Window > 0 && !p.AtLeast {
		ideas = append([]Setup{{Window: p.Window}}, ideas...)
	}
	return append(ideas, l.controls()...)
}

// delay compares the round trips under load of what was measured in pairs.
func (l *loop) delay(before, after []*Trial) *Delay {
	seconds := func(trials []*Trial) (all []float64) {
		for _, t := range trials {
			all = append(all, t.result.MeanRTT().Seconds())
		}
		return all
	}
	b := seconds(before)
	a := seconds(after)
	return &Delay{Before: toDuration(stats.Median(b)), After: toDuration(stats.Median(a)),
		Factor: stats.PooledGain(b, a, confidence, l.pairNoise)}
}

func toDuration(seconds float64) time.Duration { return time.Duration(seconds * float64(time.Second)) }
