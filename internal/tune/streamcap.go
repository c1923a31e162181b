package tune

import (
	"context"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// streamProbe measures whether a link that seems full carries more for several connections.
type streamProbe struct {
	*runner
	single *Trial            // the typical baseline run
	most   float64           // the largest goodput of a baseline run
	tried  map[int][]*Trial  // by the number of streams
	found  *verdict.Evidence // several streams carry a tenth more; nil: not shown
	fills  int               // streams that fill the path
	same   bool              // several streams carry as much as one
}

const firstStreams = 4

// probe measures four streams twice where they carry a tenth more than one ever did, and then twice as many until that
// adds no tenth.
func (p *streamProbe) probe(ctx context.Context) error {
	p.tried = map[int][]*Trial{}
	best := p.most
	for n := firstStreams; n <= mostStreams; n *= 2 {
		for range 2 {
			t, err := p.run(ctx, n)
			if t == nil || err != nil {
				return err
			}
			if t.Goodput < tenth*best {
				p.same = p.found == nil && tenth*t.Goodput > p.single.Goodput
				return nil
			}
			p.tried[n] = append(p.tried[n], t)
		}
		best = stats.Median(goodputs(p.tried[n]))
		p.conclude(n)
	}
	return nil
}

// run makes one transfer of several streams. It returns nil where the peer or the budget does not allow it.
func (p *streamProbe) run(ctx context.Context, streams int) (*Trial, error) {
	s := Setup{Streams: streams}
	length := max(time.Second, 20*p.path.round)
	bytes := float64(streams) * p.single.Goodput / 8 * length.Seconds()
	if !p.can(s) || p.budget.stated.Time > 0 && p.budget.spent.Time+length > p.budget.Time ||
		p.budget.stated.Bytes > 0 && float64(p.budget.spent.Bytes)+bytes > float64(p.budget.stated.Bytes) {
		return nil, nil
	}
	t, err := p.try(ctx, p.with(s, length, SeveralStreams))
	switch {
	case ctx.Err() != nil:
		return nil, err
	case err != nil:
		p.notes.add(Statement{Code: NotTried, Setup: s, Err: err})
		return nil, nil
	}
	return &t, nil
}

// conclude takes the result of a number of streams that were measured twice.
func (p *streamProbe) conclude(streams int) {
	total := stats.Median(goodputs(p.tried[streams]))
	first := p.tried[firstStreams]
	rtt := func(t *Trial) float64 { return t.result.MinRTT().Seconds() }
	if total > p.path.CapacityBps {
		p.path.CapacityBps = total
		p.path.size(p.tried[streams][0].result)
	}
	if p.budget.stated.Bytes == 0 { // it was counted for one connection
		p.budget.Bytes = max(p.budget.Bytes, p.budget.spent.Bytes+p.bytesRule())
	}
	p.fills = min(max(2, int(math.Ceil(search.Enough*total/p.single.Goodput))), streams)
	p.found = &verdict.Evidence{Limiter: verdict.Bottleneck, Code: verdict.StreamsCarryMore, Values: verdict.Values{
		"single_bps": p.single.Goodput, "streams": float64(streams), "total_bps": total, "fill_streams": float64(p.fills),
		"compare_streams": firstStreams, "least_ratio": stats.Median(each(first, leastStream)) / p.single.Goodput,
		"rtt_single_s": rtt(p.single), "rtt_several_s": stats.Median(each(first, rtt))}}
}

// leastStream returns the goodput of a transfer's slowest stream in bit/s: its share of the bytes, of the goodput.
func leastStream(t *Trial) float64 {
	end := t.result.CountingEnd()
	if end == nil || len(end.Streams) == 0 {
		return 0
	}
	var all, least int64
	for i := range end.Streams {
		bytes := end.Streams[i].Bytes
		all += bytes
		if i == 0 || bytes < least {
			least = bytes
		}
	}
	if all == 0 {
		return 0
	}
	return t.Goodput * float64(least) / float64(all)
}

// leavesLinkIdle reports that one connection loses segments and keeps no queue: several recover faster from losses, so
// that they carry more on a link that nobody shares.
func (p *streamProbe) leavesLinkIdle() bool {
	ratio, known := p.single.retransmitRatio()
	empty := float64(p.single.result.MinRTT())
	return known && ratio > threshold.Losing.Value &&
		float64(p.single.result.MeanRTT()) < (1+threshold.StandingQueue.Value)*empty
}

// refine names the kind of bottleneck that the streams showed: a cap per connection, a link that others share, or
// neither where the round trip changed or one connection leaves the link idle. Where only the receiver is seen, streams
// that carry as much as one exclude what limits each connection of the sender.
func (p *streamProbe) refine(v *verdict.Verdict) {
	if v.Limiter != verdict.Bottleneck {
		return
	}
	if p.found == nil {
		of := func(code verdict.Code) bool {
			return slices.ContainsFunc(v.Evidence, func(e verdict.Evidence) bool { return e.Code == code })
		}
		if p.same && v.Confidence == verdict.Low && of(verdict.ArrivesThroughAQueue) && !of(verdict.RunsDisagree) {
			v.Confidence = verdict.Medium
		}
		return
	}
	values := p.found.Values
	noise := threshold.SameRTTNoise.Time().Seconds()
	allowed := max(threshold.SameRTT.Value*values["rtt_single_s"], values["rtt_single_s"]+noise)
	least := min(values["rtt_single_s"]/threshold.SameRTT.Value, values["rtt_single_s"]-noise)
	same := values["rtt_several_s"] <= allowed && values["rtt_several_s"] >= least
	v.Evidence = append([]verdict.Evidence{*p.found}, slices.Clone(v.Evidence)...)
	capped := values["least_ratio"] >= threshold.StreamShare.Value
	switch {
	case !same || !capped && p.leavesLinkIdle():
		v.Limiter = verdict.Unknown
		v.Confidence = verdict.Low
		v.Candidates = []verdict.Name{verdict.Bottleneck, verdict.Congestion}
		v.Shares = attribute(v.Shares, []verdict.Name{verdict.Bottleneck}, verdict.Unknown)
		v.Evidence[0].Limiter = verdict.Unknown
	case capped:
		v.Subtype = verdict.PerFlow
	default:
		v.Subtype = verdict.Shared
	}
}

// probeStreams measures several streams before a link is said to be full, and compares as many as fill the path with
// the baseline.
func (l *loop) probeStreams(ctx context.Context) error {
	today := l.seen.baselineRuns()
	found := l.compared.winner != (Setup{}) || l.windows.answer.Verdict == search.Change
	if found || !l.cfg.Goal.isThroughput() || len(today) == 0 || l.seen.isBlackHole() {
		return nil
	}
	m := l.seen.measured(today)
	if m.Verdict.Limiter != verdict.Bottleneck {
		return nil
	}
	l.streams.single = today[0]
	for _, t := range today {
		l.streams.most = max(l.streams.most, t.Goodput)
		if math.Abs(t.Goodput-m.Interval.Mid) < math.Abs(l.streams.single.Goodput-m.Interval.Mid) {
			l.streams.single = t
		}
	}
	if err := l.streams.probe(ctx); err != nil || l.streams.found == nil {
		return err
	}
	l.compared.limits = m.Verdict
	winner, ok, err := l.compared.measure(ctx, Setup{}, []Setup{{Streams: l.streams.fills}}, true)
	if ok {
		l.compared.winner = winner
	}
	return err
}
