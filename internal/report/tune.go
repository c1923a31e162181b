package report

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
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

func newTuneDirection(d *tune.Direction, near, far *System) record.TuneDirection {
	out := record.TuneDirection{Direction: d.Direction, Path: newTunePath(&d.Path), Verdict: d.Verdict,
		Reason: text.TuneReason(d), Warnings: text.TuneWarnings(d.Warnings),
		Interrupted: d.Interrupted, Trials: []record.TuneTrial{},
		Before: newTuneMeasured(&d.Before)}
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
			GoodputBps: r.Goodput, Factor: r.Gain.Mid, CI95: bounds(r.Gain), RetransmittedRatio: r.Retransmits}
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
		out.Gain = &record.TuneGain{Factor: d.Gain.Mid, CI95: bounds(*d.Gain)}
	}
	if d.Goal != tune.Throughput {
		out.Goal = string(d.Goal)
	}
	if d.Delay != nil {
		out.Delay = &record.TuneDelay{BeforeS: d.Delay.Before.Seconds(), AfterS: d.Delay.After.Seconds(),
			Factor: d.Delay.Factor.Mid, CI95: bounds(d.Delay.Factor)}
	}
	if o := d.Others; o != nil {
		out.Others = &record.TuneOthers{BeforeBps: o.Before, AfterBps: o.After, Factor: o.Factor.Mid,
			CI95: bounds(o.Factor)}
	}
	if d.File != nil {
		out.File = &record.TuneFile{Bytes: d.File.Bytes, BeforeS: d.File.Before.Seconds(),
			AfterS: d.File.After.Seconds(), InitialWindow: d.File.InitialWindow}
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
	if u := d.Disturbed; u != nil {
		out.Disturbed = newTuneDisturbed(u)
	}
	guard.Tune(&out)
	out.Before.Evidence = text.EvidenceSentences(out.Before.Evidence)
	out.Fix = text.FixSentences(tuneFixes(d, &out))
	return out
}

func newTuneDisturbed(u *tune.Disturbed) *record.TuneDisturbed {
	out := &record.TuneDisturbed{LateLab: u.LateLab}
	if u.Starved > 0 {
		of := &out.FarStarved
		if u.Near {
			of = &out.NearStarved
		}
		*of = &u.Starved
	}
	if u.Busy > 0 {
		out.HostBusy = &u.Busy
	}
	return out
}

func newTunePath(p *tune.Path) record.TunePath {
	out := record.TunePath{RTTMin: units.Duration(p.RTT), RTTLoaded: units.Duration(p.LoadedRTT), MSSBytes: p.MSS,
		PathMTUBytes: p.MTU, AtLeast: p.AtLeast, WindowBytes: p.Window, Middlebox: p.Middlebox}
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
	out := record.TuneMeasured{MedianBps: carried(m.Interval.Mid), Runs: len(m.Goodputs)}
	if out.MedianBps > 0 {
		out.CI95Bps = bounds(m.Interval)
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

// bounds returns an interval's bounds; nil if it has none.
func bounds(i stats.Interval) *[2]float64 {
	if math.IsInf(i.High, 0) || math.IsNaN(i.Mid) {
		return nil
	}
	return &[2]float64{i.Low, i.High}
}
