package tune

import (
	"context"
	"fmt"
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Remedy is something else than a window that was tried once.
type Remedy struct {
	Name    string
	Goodput float64
	Gain    stats.Interval // over automatic, 95 %
	Spec    transfer.Spec
}

// fewestRuns of today's state are what a remedy is measured against.
const fewestRuns = 3

// remedies tries what else might help where windows are not what limits, or where they
// are and larger ones cannot be had: each once.
func (l *loop) remedies(ctx context.Context) error {
	if l.answer.Verdict == "" || l.answer.Verdict == search.Change && !l.answer.Clipped {
		return nil
	}
	share := remedyShare
	if l.answer.Verdict != search.Change {
		share = 1 // there will be no proof
	}
	length := l.config().Length(0)
	today := func(t *Trial) bool { return t.Automatic }
	for len(l.of(today)) < fewestRuns && l.affords(length, remedyShare) {
		if _, err := l.try(ctx, l.automatic(length, "what a program gets today, once more")); err != nil {
			return err
		}
	}
	base, noise := stats.Logs(goodputs(l.of(today))), l.noise()
	ideas := l.ideas()
	for len(ideas) > 0 && l.affords(length, share) {
		r := ideas[0]
		ideas = ideas[1:]
		t := l.automatic(length, "does this help?")
		t.Automatic, t.Remedy = false, r.name
		r.change(&t.Spec)
		if l.cfg.Peer.Check(withDirection(t.Spec, l.out.Direction)) != nil {
			continue
		}
		if had := l.of(func(t *Trial) bool { return t.Remedy == r.name }); len(had) > 0 {
			t = *had[0]
		} else {
			var err error
			if t, err = l.try(ctx, t); ctx.Err() != nil {
				return err
			}
			if err != nil {
				l.warn("%s could not be tried: %v", r.name, err)
				continue
			}
		}
		if l.together(&t) {
			ideas = append(ideas, streams(4*t.Spec.Streams))
		}
		factor := math.Log(t.Goodput) - stats.Middle(base)
		margin := stats.Student((1+confidence)/2, noise.DOF) * math.Hypot(noise.Error(1), noise.Error(len(base)))
		l.out.Remedies = append(l.out.Remedies, Remedy{Name: r.name, Goodput: t.Goodput, Spec: t.Spec,
			Gain: stats.Interval{Low: math.Exp(factor - margin), Mid: math.Exp(factor), High: math.Exp(factor + margin)}})
	}
	return nil
}

// together takes what several streams tell of the path where one window, cut short,
// cannot; it answers whether more of them might tell more.
func (l *loop) together(t *Trial) bool {
	p := &l.out.Path
	if t.Spec.Streams < 2 || !l.answer.Clipped || t.Goodput < 1.2*p.CapacityBps {
		return false
	}
	p.CapacityBps, p.LoadedRTT = t.Goodput, meanRTT(t.result)
	l.size(t.result)
	return t.Goodput > 0.85*float64(t.Spec.Streams)*l.out.Trials[0].Goodput && t.Spec.Streams < mostStreams
}

type idea struct {
	name   string
	change func(*transfer.Spec)
}

// mostStreams is where more streams are no longer a remedy.
const mostStreams = 16

func streams(n int) idea {
	return idea{fmt.Sprintf("%d streams", n), func(s *transfer.Spec) { s.Streams = n }}
}

// ideas are the remedies that fit this path.
func (l *loop) ideas() (ideas []idea) {
	if l.answer.Verdict == search.Change {
		return []idea{streams(4)} // windows are what limits, and larger ones cannot be had
	}
	p := &l.out.Path
	ideas = l.controls()
	ideas = append(ideas, streams(4))
	if p.MSS > 1200 {
		ideas = append(ideas, idea{"segments of 1,200 bytes", func(s *transfer.Spec) {
			sender, _ := l.ends(s)
			sender.MSS = 1200
		}})
	}
	rate := 0.97 * p.BottleneckBps
	return append(ideas, idea{fmt.Sprintf("pacing at %s", units.Rate(rate)), func(s *transfer.Spec) {
		sender, _ := l.ends(s)
		sender.PacingBps = rate
	}})
}

// lossBlind is the congestion control that does not take each loss for a full link.
const lossBlind = "congestion control bbr"

// controls are the congestion controls, other than the one in use, that the sender may
// have; the peer's Check knows what a far sender has.
func (l *loop) controls() (ideas []idea) {
	end := l.sender()
	if end == nil || len(end.Streams) == 0 || end.Streams[0].Congestion == "" {
		return nil
	}
	offered := []string{"bbr", "cubic"}
	if l.out.Direction == transfer.Up {
		offered = socket.CongestionControls()
	}
	for _, name := range []string{"bbr", "cubic"} {
		if name != end.Streams[0].Congestion && slices.Contains(offered, name) {
			ideas = append(ideas, idea{"congestion control " + name, func(s *transfer.Spec) {
				sender, _ := l.ends(s)
				sender.Congestion = name
			}})
		}
	}
	return ideas
}

func (l *loop) sender() *transfer.End {
	if l.out.Direction == transfer.Up {
		return l.near
	}
	return l.far
}

// noise is the scatter of everything that was repeated so far.
func (l *loop) noise() stats.Noise {
	groups := map[int][]float64{}
	for i := range l.out.Trials {
		if t := &l.out.Trials[i]; t.Remedy == "" {
			groups[t.Asked] = append(groups[t.Asked], math.Log(t.Goodput))
		}
	}
	all := [][]float64{}
	for _, g := range groups {
		all = append(all, g)
	}
	return stats.Pool(stats.Noise{Dev: 0.02, DOF: 2}, all...)
}

func goodputs(trials []*Trial) (values []float64) {
	for _, t := range trials {
		values = append(values, t.Goodput)
	}
	return values
}
