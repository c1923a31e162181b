package tune

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
)

// candidates returns the setups worth comparing with a base, in order of preference.
func (c *comparison) candidates(base Setup) (setups []Setup) {
	for _, add := range c.ideas(base) {
		s := base.plus(add)
		lost := slices.ContainsFunc(c.remedies, func(r Remedy) bool { return r.Setup == s }) // in an earlier comparison
		if s != base && !lost && c.can(s) {
			setups = append(setups, s)
		}
	}
	return setups
}

// ideas are what a setup may change besides a base, by what limits today.
func (c *comparison) ideas(base Setup) (ideas []Setup) {
	p := c.path
	if c.cfg.Goal == Latency {
		return c.latencyIdeas()
	}
	if c.answer.Verdict == search.Change && c.answer.Clipped { // larger windows help and cannot be had
		return []Setup{{Streams: min(4*max(base.Streams, 1), mostStreams)}}
	}
	probed := len(c.below.probed) > 0
	if base == (Setup{}) && c.below.best != (Setup{}) {
		ideas = append(ideas, c.below.best)
	}
	for _, step := range advice.For(c.limits.Limiter, c.limits.Subtype) {
		switch step.Action {
		case advice.WindowOfBDP, advice.PaceBelow:
			if probed {
				continue
			}
		}
		switch step.Action {
		case advice.OtherControl:
			ideas = append(ideas, c.otherControls(base)...)
		case advice.WindowOfBDP:
			reached := c.seen.reaches(p.Window) || c.carriesAll(base)
			if w := p.Window; base.Window == 0 && w > 0 && !p.AtLeast && reached {
				ideas = append(ideas, Setup{Window: w})
			}
		case advice.PaceBelow:
			if base.PacingBps == 0 && base.Streams < 2 {
				ideas = append(ideas, Setup{PacingBps: belowTheLine * c.seen.paceable(&c.limits)})
			}
		case advice.SmallerSegment:
			if sizes := c.segmentSizes(); base.MSS == 0 && len(sizes) > 0 {
				ideas = append(ideas, Setup{MSS: sizes[0]})
			}
		case advice.ParallelFlows:
			if base.PacingBps == 0 && base.Streams < mostStreams && base.besides() == "" {
				ideas = append(ideas, Setup{Streams: 4})
			}
		}
	}
	return ideas
}

// latencyIdeas keep the bytes in flight, or the rate, just below the path's capacity, or do not fill queues.
func (c *comparison) latencyIdeas() []Setup {
	p := c.path
	ideas := []Setup{{PacingBps: belowTheLine * p.CapacityBps}}
	if p.Window > 0 && !p.AtLeast {
		ideas = append([]Setup{{Window: p.Window}}, ideas...)
	}
	return append(ideas, c.controls(c.limits.Limiter)...)
}

// roomy is how many of the path's windows do not limit a congestion control that keeps two in flight, as BBR does.
const roomy = 3

// otherControls returns the controls to compare with a base. A window that loss left another control may be too small.
func (c *comparison) otherControls(base Setup) (ideas []Setup) {
	if base.Congestion != "" {
		return nil
	}
	ideas = c.controls(c.limits.Limiter)
	for i := range ideas {
		if base.Window > 0 {
			ideas[i].Window = max(base.Window, roomy*c.path.Window)
		}
	}
	if len(c.below.probed) > 0 && base.PacingBps == 0 {
		return append(c.below.paced(ideas), ideas...)
	}
	return ideas
}

// ceiling is the most that the path carries, in bit/s, where that was seen and is what the goal asks for.
func (c *comparison) ceiling() (bps float64, known bool) {
	p := c.path
	return p.CapacityBps, !p.AtLeast && !c.answer.Clipped && c.cfg.Goal != Latency && c.cfg.Goal != Fair
}

// carriesAll says that a setup comes so near to the ceiling that nothing on top of it is left to gain.
func (c *comparison) carriesAll(s Setup) bool {
	bps, known := c.ceiling()
	runs := goodputs(c.seen.runsOf(s))
	return known && len(runs) > 0 && stats.Median(runs) >= search.Nearly*bps
}
