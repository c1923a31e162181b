package predict

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// flow is one connection's congestion control, in segments and seconds.
type flow struct {
	cwnd, ssthresh float64
	sent, lost     float64 // in this round
	idle           float64 // seconds until a timeout lets it send
	stalled        bool    // the window is full behind a hole: only lost segments are sent
	repair         float64 // lost segments to retransmit
	left           float64 // segments of its last piece; infinite while there are more

	// CUBIC (RFC 9438): the window before the last reduction, the time since, Reno's window.
	most, since, reno float64
	lossless          bool // no reduction yet
	repairing         bool // the round after a loss, in which the window stays (RFC 6937)
	// BBR: rounds in which the delivery rate grew no more; whether the pipe was full.
	plateau int
	full    bool
	probed  float64 // seconds since the round trip was last probed
}

func newFlow(r *scenario) flow {
	f := flow{cwnd: r.initial, ssthresh: math.Inf(1), left: math.Inf(1), lossless: true}
	if r.ready {
		f.cwnd = math.Max(math.Min(math.Min(r.bdp()/float64(r.connections), math.Min(r.window, r.send)/r.mss), 1e7),
			r.initial)
		f.ssthresh = f.cwnd
		f.full = true
		f.reno = f.cwnd
	}
	return f
}

func (f *flow) starting() bool { return f.cwnd < f.ssthresh && !f.full }

// bound returns the segments in flight that both ends' buffers allow. A window is whole segments.
func (p *simulation) bound() float64 {
	return math.Max(math.Min(math.Floor(p.window/p.mss), p.send/p.mss), 0.5)
}

// sends returns the segments that the connection sends in this round.
func (f *flow) sends(p *simulation) float64 {
	if f.idle > 0 {
		return 0
	}
	if f.stalled {
		return math.Min(f.repair, f.cwnd)
	}
	n := math.Min(math.Min(f.cwnd, p.bound()), f.left)
	if p.congestion == "bbr" && f.full {
		n = math.Min(n, math.Max((p.bdp()+1)/float64(p.connections)*bbrFills, bbrLeast))
	}
	return n
}

const (
	bbrFills = 1.02 // of its share: probing keeps the rest queued on average
	bbrLeast = 4    // segments: BBRMinPipeCwnd
)

// update changes the congestion window after a round of lasts seconds.
func (f *flow) update(p *simulation, lasts float64) {
	if f.idle > 0 {
		f.idle -= lasts
		return
	}
	blocked := f.cwnd > p.bound() // a hole stops the window
	if f.stalled {
		f.stalled = f.lost > 0
		f.repair = f.lost
		if f.stalled && !p.sack { // only a timeout finds a lost retransmission
			f.idle = leastRTO.Seconds() + lasts
		}
		return
	}
	if p.congestion == "bbr" {
		f.updateBBR(p, lasts)
		if f.lost > 0 && blocked {
			f.stalled = true
			f.repair = f.lost
		}
		return
	}
	switch {
	case f.lost > 0 && f.silent(p): // no ACK reports the loss
		f.reduce(p)
		f.cwnd = 1
		f.idle = leastRTO.Seconds() + lasts
	case f.lost > 0:
		f.reduce(p)
		if blocked {
			f.stalled = true
			f.repair = f.lost
		}
	case f.repairing: // until the segments sent before the loss was found have arrived
		f.repairing = false
	case f.cwnd <= 2*f.sent && f.starting():
		f.cwnd = math.Min(f.cwnd+f.sent, f.ssthresh)
		f.hystart(p)
	case f.cwnd <= f.sent+1:
		f.avoid(p, lasts)
	default:
		f.since += lasts
	}
}

// silent reports whether only a timeout finds a loss: all segments are lost, or without SACK fewer than three duplicate
// ACKs arrive (RFC 5681 section 3.2).
func (f *flow) silent(p *simulation) bool {
	const duplicates = 3
	return f.lost >= f.sent || !p.sack && f.sent-f.lost < duplicates
}

func (f *flow) reduce(p *simulation) {
	if p.congestion == "reno" {
		f.ssthresh = math.Max(f.cwnd/2, 2)
	} else {
		before := f.most
		f.most = f.cwnd
		if f.cwnd < before {
			f.most = f.cwnd * (1 + model.CubicBeta) / 2 // fast convergence, RFC 9438 section 4.7
		}
		f.ssthresh = math.Max(f.cwnd*model.CubicBeta, 2)
	}
	f.cwnd = f.ssthresh
	f.since = 0
	f.lossless = false
	f.repairing = true
	f.reno = f.cwnd
}

// avoid is congestion avoidance over one round trip.
func (f *flow) avoid(p *simulation, lasts float64) {
	f.since += lasts
	if p.congestion == "reno" {
		f.cwnd++
		return
	}
	target := model.CubicWindow(f.most, units.Seconds(f.since+lasts))
	if f.lossless { // no window was ever too large: the curve begins here
		target = f.cwnd + model.CubicC*(math.Pow(f.since+lasts, 3)-math.Pow(f.since, 3))
		target = math.Max(target, f.cwnd*1.05) // Linux: at least one segment for twenty acknowledged
	}
	f.reno += 3 * (1 - model.CubicBeta) / (1 + model.CubicBeta) // RFC 9438 section 4.3
	target = math.Max(target, f.reno)
	f.cwnd = math.Max(f.cwnd, math.Min(target, 1.5*f.cwnd))
}

// hystart leaves slow start before it overshoots, as Linux's CUBIC does: when the ACK train of a round lasts half the
// least round trip (tcp_cubic.c, hystart_update, without pacing), which needs half a BDP of ACKs.
func (f *flow) hystart(p *simulation) {
	const least, spacing = 16, 2e-3 // segments; seconds between acknowledgements of a train
	if p.congestion != "cubic" || f.sent < least || !(2*p.segment*float64(p.connections) <= spacing) {
		return
	}
	share := p.bdp() / 2 / float64(p.connections)
	if f.sent >= share {
		f.cwnd = math.Min(f.cwnd, f.sent+share)
		f.ssthresh = f.cwnd
		f.since = 0
		f.reno = f.cwnd
	}
}

// updateBBR doubles the window until the delivery rate grows no more for three rounds. Then it keeps its share of the
// path in flight, except for 200 ms every 10 s, when it probes for a shorter round trip.
func (f *flow) updateBBR(p *simulation, lasts float64) {
	if !f.full {
		share := p.bdp() / float64(p.connections)
		if f.sent >= math.Min(share, p.bound()) {
			f.plateau++
		}
		if f.lost == 0 { // after a loss Linux's BBR sends for a round what comes out
			f.cwnd = math.Min(2*f.cwnd, math.Max(3*share, p.initial))
		}
		f.full = f.plateau >= 3
		return
	}
	const every, pause = 10, 0.2
	f.probed += lasts
	if f.probed > every {
		f.probed = 0
		f.idle = pause
	}
}
