package report

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// System is a host that settings are planned for.
type System struct {
	plan.Target
	// Values are its present settings by name; where they are not known, its system's
	// defaults apply.
	Values map[string]string
}

// Tune returns the document of a result, with settings for the known systems.
func Tune(h record.Header, peer string, r *tune.Result, near, far *System) *record.Tune {
	doc := &record.Tune{Header: h, Peer: peer, Near: Host(r.Near), Far: Host(r.Far), ElapsedS: r.Elapsed.Seconds(),
		BytesSent: r.Bytes, Directions: []record.TuneDirection{}}
	for i := range r.Directions {
		doc.Directions = append(doc.Directions, newTuneDirection(&r.Directions[i], near, far))
	}
	return doc
}

// newTuneDirection copies trials, remedies and the chosen setup, because the loop computes with socket options and
// intervals that the document does not have.
func newTuneDirection(d *tune.Direction, near, far *System) record.TuneDirection {
	out := record.TuneDirection{Direction: d.Direction, Path: newTunePath(&d.Path), Verdict: d.Verdict,
		Reason: text.TuneReason(d), Warnings: text.TuneWarnings(d.Warnings),
		Decision: &record.TuneDecision{Strength: d.Decision.Strength, ProbabilityRatio: d.Decision.Probability,
			Tried: append([]string{}, d.Decision.Tried...)},
		Interrupted: d.Interrupted, Trials: []record.TuneTrial{},
		Before: newTuneMeasured(&d.Before), Delay: d.Delay, Others: d.Others, File: d.File, Disturbed: d.Disturbed}
	for _, t := range d.Trials {
		out.Trials = append(out.Trials, record.TuneTrial{Reason: text.TunePurpose(t.Purpose),
			Automatic: t.Automatic, Remedy: t.Remedy,
			WindowBytes: t.Asked, EffectiveBytes: t.Effective,
			Clipped:    t.Clipped,
			GoodputBps: carried(t.Goodput), Limiter: string(t.Limiter), RetransmittedRatio: t.RetransmitRatio()})
	}
	for _, r := range d.Remedies {
		if math.IsNaN(r.Gain.Mid) {
			continue // its reference failed each time
		}
		remedy := record.TuneRemedy{Name: r.Name, Runs: r.Runs, BaselineRuns: r.BaselineRuns,
			GoodputBps: r.Goodput, TuneGain: record.NewGain(r.Gain), RetransmittedRatio: r.Retransmits}
		if r.Base != (tune.Setup{}) {
			remedy.Reference = r.Base.String()
		}
		if r.Others > 0 {
			remedy.OthersFactor = &r.Others
		}
		out.Remedies = append(out.Remedies, remedy)
	}
	if d.After != nil {
		after := newTuneMeasured(d.After)
		out.After = &after
	}
	if d.Gain != nil && !math.IsNaN(d.Gain.Mid) {
		out.Gain = new(record.NewGain(*d.Gain))
	}
	if d.Goal != tune.Throughput {
		out.Goal = string(d.Goal)
	}
	switch {
	case d.Chosen != nil:
		c := d.Chosen
		out.Chosen = &record.TuneChosen{WindowBytes: c.Window, SendBufferBytes: c.SendBuffer,
			ReceiveBufferBytes: c.ReceiveBuffer, Shown: &d.Shown, Name: c.String(),
			CongestionControl: c.Congestion, Streams: c.Streams, PacingBps: c.PacingBps, MSSBytes: c.MSS}
		out.Settings = settings(d, near, far)
	case d.Verdict == search.NoChange:
		out.Chosen = &record.TuneChosen{Automatic: true}
	}
	guard.Tune(&out)
	out.Before.Evidence = text.EvidenceSentences(out.Before.Evidence)
	out.Fix = text.FixSentences(tuneFixes(d, &out))
	return out
}

// newTunePath copies the path, because 0 is a value in the document and an absent key means "not known".
func newTunePath(p *tune.Path) record.TunePath {
	out := record.TunePath{RTTMin: units.Duration(p.RTT), RTTLoaded: units.Duration(p.LoadedRTT), MSSBytes: p.MSS,
		PathMTUBytes: p.MTU, AtLeast: p.LowerBound, WindowBytes: p.Window, Middlebox: p.Middlebox}
	if p.RTT > 0 {
		out.Jitter = new(units.Duration(p.Jitter))
	}
	if p.Scale >= 0 {
		out.WindowScale = &p.Scale
	}
	if p.CapacityBps > 0 {
		out.BottleneckBps = p.BottleneckBps
		out.CapacityBps = p.CapacityBps
		out.BDPBytes = p.BDPBytes
	}
	return out
}

func newTuneMeasured(m *tune.Measured) record.TuneMeasured {
	out := record.TuneMeasured{MedianBps: carried(m.Interval.Mid), Runs: len(m.Goodputs),
		RetransmittedRatio: m.Retransmits}
	if out.MedianBps > 0 {
		out.CI95Bps = m.Interval.Bounds()
	}
	if m.Typical != nil {
		out.Direction = Direction(m.Typical, m.Verdict, nil)
	}
	return out
}

// carried returns a goodput, 0 for a transfer without payload: the loop, which needs ratios, uses 1 bit/s for it.
func carried(bps float64) float64 {
	if bps <= 1 {
		return 0
	}
	return bps
}
