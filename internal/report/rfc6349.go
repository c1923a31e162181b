package report

import (
	_ "embed"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/remedy"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// RFC6349 describes a test against what it was held to.
func RFC6349(h record.Header, peer, reference string, cfg rfc6349.Config, r *rfc6349.Result) *record.RFC6349 {
	doc := &record.RFC6349{Header: h, Peer: peer, Reference: reference,
		EndedAt: h.StartedAt.Add(r.Elapsed).Round(time.Millisecond), Near: Host(r.Near), Far: Host(r.Far),
		Verdict: string(r.Verdict), Interrupted: r.Interrupted, RunS: r.RunTime.Seconds(), ElapsedS: r.Elapsed.Seconds(),
		BytesSent: r.Bytes,
		Warnings:  text.RFC6349Warnings(r.Warnings), Directions: []record.RFC6349Direction{}, Formulas: []record.Formula{}}
	if len(cfg.Frames.Sizes) > 0 {
		doc.FrameSearch = &record.RFC6349FrameSearch{TrialS: r.TrialTime.Seconds(), LossRatio: cfg.Frames.Loss}
	}
	if len(cfg.Committed) > 0 {
		c := &record.CommittedRates{OverheadBytes: cfg.Overhead, ToleranceRatio: cfg.Tolerance}
		if v, ok := cfg.Committed[transfer.Up]; ok {
			c.UpBps = &v
		}
		if v, ok := cfg.Committed[transfer.Down]; ok {
			c.DownBps = &v
		}
		doc.Committed = c
	}
	p := &r.Path
	doc.Path = record.RFC6349Path{MTUBytes: known(p.MTU), MTUMethod: text.RFC6349Sentence(&p.MTUMethod),
		FirstMTUBytes: known(p.FirstMTU), RTTMethod: text.RFC6349Sentence(&p.RTTMethod),
		RTTSamples: known(p.RTTCount), MSSBytes: known(p.MSS), HeaderBytes: known(p.Headers), Timestamps: p.Timestamps,
		IPv6: p.IPv6}
	if p.RTT > 0 {
		doc.Path.RTTMinS = seconds(p.RTT)
	}
	if p.RTTCount > 1 {
		doc.Path.JitterS = seconds(p.Jitter)
	}
	for i := range r.Directions {
		doc.Directions = append(doc.Directions, newRFC6349Direction(p, &r.Directions[i]))
	}
	doc.Formulas = text.RFC6349Formulas(r)
	return doc
}

func newRFC6349Direction(p *rfc6349.Path, d *rfc6349.Direction) record.RFC6349Direction {
	out := record.RFC6349Direction{Direction: d.Direction, Verdict: string(d.Verdict()), MaxTCPBps: positive(d.MaxTCPBps),
		MaxBesideAcksBps: positive(d.MaxBesideAcksBps), BDPBytes: positive(d.BDPBytes), Tests: []record.RFC6349Test{},
		CommittedBps: positive(d.Committed)}
	if p.RTT > 0 {
		out.RTTMinS = seconds(p.RTT)
	}
	draw(&out, d)
	if b := d.Bottleneck; b.Bps > 0 {
		var burst *int64
		if b.BurstBytes > 0 {
			burst = &b.BurstBytes
		}
		out.Bottleneck = &record.RFC6349Bottleneck{Bps: b.Bps, Range: b.Range, AtLeast: b.AtLeast,
			Method: text.RFC6349Sentence(&b.Method),
			Burst:  burst,
			Trials: newTrials(b.Trials)}
	}
	for _, c := range d.Criteria {
		mid, ci := estimate(c.Measured)
		out.Criteria = append(out.Criteria, record.RFC6349Criterion{Name: c.Name, Verdict: string(c.Verdict), Unit: c.Unit,
			Due: c.Due, Required: c.Required, Measured: mid, CI95: ci, Reason: text.RFC6349Sentence(&c.Reason)})
	}
	for i := range d.Tests {
		out.Tests = append(out.Tests, newRFC6349Test(p, &d.Tests[i]))
	}
	if typical := oneConnection(d); typical != nil {
		facts := remedy.Facts{GoodputBps: typical.GoodputBps, PathBps: d.MaxTCPBps, Bytes: typical.Bytes,
			DurationS: typical.Duration.Seconds(), RTTS: p.RTT.Seconds(), MSSBytes: p.MSS}
		if p.MTU < p.FirstMTU {
			facts.PassingMSS = p.MTU - p.Headers
			if p.Timestamps { // TCP_MAXSEG leaves out the option
				facts.PassingMSS += model.TimestampBytes
			}
		}
		out.Fix = text.FixSentences(remedy.Fixes(typical.Verdict, facts))
	}
	for _, f := range d.Frames {
		out.Frames = append(out.Frames, newRFC6349Frame(&f))
	}
	guard.RFC6349(&out)
	return out
}

// oneConnection is the run that says what one connection gets: as the systems size it, else
// with a window that suffices; nil where neither was measured.
func oneConnection(d *rfc6349.Direction) *rfc6349.Outcome {
	for _, kind := range []rfc6349.Kind{rfc6349.Automatic, rfc6349.Full} {
		for i := range d.Tests {
			if typical := d.Tests[i].Typical(); d.Tests[i].Kind == kind && typical != nil {
				return typical
			}
		}
	}
	return nil
}

func newRFC6349Test(p *rfc6349.Path, test *rfc6349.Test) record.RFC6349Test {
	out := record.RFC6349Test{Kind: string(test.Kind), Connections: test.Connections, WindowBytes: known(test.Window),
		BDPRatio:      positive(test.Share),
		AchievableBps: positive(test.AchievableBps), Runs: []record.RFC6349Run{},
		Skipped: text.RFC6349Sentence(&test.Skipped)}
	out.GoodputBps, out.CI95Bps = estimate(test.Goodput)
	if typical := test.Typical(); typical != nil {
		out.Limiter = typical.Verdict.Limiter
		out.Subtype = typical.Verdict.Subtype
	} else {
		out.GoodputBps = nil
		out.CI95Bps = nil
	}
	for i := range test.Runs {
		out.Runs = append(out.Runs, newRFC6349Run(p, &test.Runs[i]))
	}
	return out
}

func newRFC6349Run(p *rfc6349.Path, r *rfc6349.Outcome) record.RFC6349Run {
	out := record.RFC6349Run{DurationS: r.Duration.Seconds(), StartupS: r.Startup.Seconds(), Bytes: r.Bytes,
		GoodputBps: r.GoodputBps,
		SteadyBps:  r.SteadyBps, ReachedBytes: known(r.Reached), IdealS: r.Ideal.Seconds(), TimeRatio: positive(r.Ratio),
		SteadyTimeRatio: positive(r.SteadyRatio), Limiter: r.Verdict.Limiter}
	if !r.Started.IsZero() {
		at := r.Started.UTC().Round(time.Millisecond)
		out.StartedAt = &at
	}
	if v, ok := r.Efficiency(); ok {
		out.SentBytes = &r.Sent
		out.Retransmitted = &r.Again
		out.EfficiencyRatio = &v
	}
	if v, ok := r.BufferDelay(p.RTT); ok {
		out.RTTMeanS = seconds(r.MeanRTT)
		out.BufferDelayRatio = &v
	}
	return out
}

func newRFC6349Frame(f *rfc6349.Frame) record.RFC6349Frame {
	out := record.RFC6349Frame{FrameBytes: f.Bytes, Verdict: string(f.Verdict), Reason: text.RFC6349Sentence(&f.Reason),
		Due:     positive(f.Due),
		AtLeast: f.AtLeast, Trials: newTrials(f.Trials)}
	if f.FramesPerSec > 0 {
		out.FramesPerSec = &f.FramesPerSec
		out.Bps = &f.Bps
		out.LossRatio = &f.Loss
	}
	return out
}

func newTrials(trials []rfc6349.Datagrams) (all []record.CapacityTrial) {
	for _, t := range trials {
		one := record.CapacityTrial{OfferedBps: t.Offered, ReceivedBps: t.Received, LossRatio: t.Loss}
		if t.Variation > 0 {
			one.VariationS = seconds(t.Variation)
		}
		all = append(all, one)
	}
	return all
}

// estimate is an interval's middle and its bounds, as far as they are known.
func estimate(i stats.Interval) (*float64, *[2]float64) { return rate(i.Mid), bounds(i) }

// draw keeps what the curves of the run that stands for one connection are made of.
func draw(d *record.RFC6349Direction, in *rfc6349.Direction) {
	test := in.Test(rfc6349.Full)
	if test == nil || test.Typical() == nil {
		return
	}
	run := test.Typical()
	step := max(len(run.Intervals)/200, 1)
	for i := 0; i+step <= len(run.Intervals) && len(run.Intervals) >= 3; i += step {
		var bytes int64
		for _, one := range run.Intervals[i : i+step] {
			bytes += one.Bytes
		}
		from := run.Intervals[i].Start
		to := run.Intervals[i+step-1].End
		v := int64(Bps(bytes, to-from))
		d.Course = append(d.Course, flow.Point{At: int64(from), Value: v}, flow.Point{At: int64(to), Value: v})
	}
	for _, r := range run.RTTs {
		d.RoundTrips = append(d.RoundTrips, flow.Point{At: int64(r.At), Value: int64(r.Mean)})
	}
}
