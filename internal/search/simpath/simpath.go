// Package simpath is a small working path for the search's tests: a goodput for every
// window and for automatic sizing, and noisy measurements of it. It knows random loss,
// shallow queues and middleboxes that punish large windows, ceilings that clip, systems
// whose automatic sizing stops too early, and noise that multiplies, stalls, drifts and
// has two modes.
package simpath

import (
	"cmp"
	"math"
	"math/rand/v2"
	"time"
)

// Path is one path and the hosts at its ends. Windows are bytes, shares 0 to 1.
type Path struct {
	RateBps float64 // IP layer
	RTT     time.Duration
	Jitter  time.Duration
	MSS     int
	Loss    float64
	// LossScatter is the standard deviation of the logarithm of a trial's goodput that loses nothing by chance, where loss
	// limits; it falls with the root of the losses. 0: 0.4.
	LossScatter float64
	Queue       float64 // bytes
	// Harm is the share of the capacity that remains once the queue overflows again
	// and again; 1 where congestion control copes.
	Harm float64
	// Drops is the share of the bytes sent that are retransmitted once the queue overflows again and again, and
	// BlindDrops the same of a sender that loss does not slow down; 0: not modelled.
	Drops, BlindDrops float64
	// PacedDrops is the share of the bytes sent that a sender paced below the capacity retransmits, and PacedHarm the
	// share of its rate that remains if losses slow it down; 0: not modelled.
	PacedDrops, PacedHarm float64
	// Policed says that the losses of Drops come many at once, and that the rate falls and rises between them as behind
	// a policer's bucket.
	Policed bool
	// Cliff is a window beyond which a middlebox drops so much that Harm applies; 0: none.
	Cliff float64
	// AutoWindow is how far automatic sizing gets.
	AutoWindow float64
	Ceiling    float64 // limit of requests; 0: none
	// EarlyBps is the rate for the first EarlyFor: of a policer's bucket, or of slow start before the first loss.
	EarlyBps float64
	EarlyFor time.Duration
	Noise    Noise
}

// Noise of one trial.
type Noise struct {
	Dev     float64 // standard deviation of the logarithm
	Stalls  float64 // share of trials that lose 5 to 60 %
	Drift   float64 // amplitude of a slow change of the whole path
	Period  time.Duration
	TwoMode float64 // share of trials that run 8 % slower
}

const headers = 52

// CapacityBps is the most payload that the path carries.
func (p *Path) CapacityBps() float64 {
	return p.RateBps * float64(p.MSS) / float64(p.MSS+headers)
}

// BaseRTT is the round trip of one full segment on the idle path.
func (p *Path) BaseRTT() time.Duration {
	return p.RTT + time.Duration(float64(p.MSS+headers)*8/p.RateBps*float64(time.Second))
}

// BDP in bytes of payload, over the mean round trip.
func (p *Path) BDP() float64 { return p.CapacityBps() / 8 * (p.BaseRTT() + p.Jitter/2).Seconds() }

// Goodput returns the true goodput of a window in the long run, bit/s.
func (p *Path) Goodput(window float64) float64 { return p.goodputWithLuck(window, 1) }

// goodputWithLuck returns a window's goodput in a trial whose loss-limited rate is luck times the long-term one. It is
// at most the path's capacity.
func (p *Path) goodputWithLuck(window, luck float64) float64 {
	if p.Ceiling > 0 {
		window = math.Min(window, p.Ceiling)
	}
	if segments := window / float64(p.MSS); segments < 30 {
		window = math.Max(math.Floor(segments+1e-9), 1) * float64(p.MSS)
	}
	capacity := p.CapacityBps()
	g := math.Min(window*8/(p.BaseRTT()+p.Jitter/2).Seconds(), capacity)
	if p.Jitter > 0 { // arrivals that come in bursts fill a window only in the mean
		g = softMin(window*8/(p.BaseRTT()+p.Jitter/2).Seconds(), capacity, 12)
	}
	if p.Loss > 0 {
		g = softMin(g, p.lossRate()*luck, 4)
	}
	return g * (1 - (1-p.Harm)*p.Overflow(window))
}

// Overflow is the share of Harm and Drops that a window meets: all of it from 15 % above the edge on.
func (p *Path) Overflow(window float64) float64 {
	if !p.Overflows(window) {
		return 0
	}
	return math.Min(1, (window/p.edge()-1)/0.15)
}

// edge is the window beyond which segments are dropped again and again.
func (p *Path) edge() float64 {
	edge := p.BDP() + p.Queue
	if p.Cliff > 0 {
		edge = math.Min(edge, p.Cliff)
	}
	return edge
}

// Overflows reports that a window makes the queue drop again and again.
func (p *Path) Overflows(window float64) bool { return p.Harm < 1 && window > p.edge() }

// Lossless says that a window loses nothing here.
func (p *Path) Lossless(window float64) bool { return p.Loss == 0 && window <= p.edge() }

// lossRate is the larger of Reno's and CUBIC's window at this loss, each round trip
// (facts: Mathis; RFC 9438 section 5.1).
func (p *Path) lossRate() float64 {
	rtt := p.BaseRTT().Seconds()
	segments := math.Max(1.22/math.Sqrt(p.Loss), 1.054*math.Pow(rtt/p.Loss, 0.75))
	return segments * float64(p.MSS) * 8 / rtt
}

func softMin(a, b, sharpness float64) float64 {
	return math.Pow(math.Pow(a, -sharpness)+math.Pow(b, -sharpness), -1/sharpness)
}

// Automatic is the truth about automatic sizing.
func (p *Path) Automatic() float64 { return p.Goodput(p.AutoWindow) }

// Scatter is the standard deviation of one trial's logarithm.
func (p *Path) Scatter(length time.Duration) float64 {
	stall := p.Noise.Stalls * 0.25 // the mean square of the logarithm of a stall
	mode := p.Noise.TwoMode * (1 - p.Noise.TwoMode) * 0.083 * 0.083
	return math.Sqrt(math.Pow(p.Deviation(length), 2) + stall + mode + p.Noise.Drift*p.Noise.Drift/2)
}

// Deviation is the same without stalls, modes and drift: the noise asked for, and the
// luck of few losses.
func (p *Path) Deviation(length time.Duration) float64 {
	if p.Loss == 0 {
		return p.Noise.Dev
	}
	felt := math.Min(1, p.CapacityBps()/p.lossRate()) // the share of the time that loss is what limits
	return math.Hypot(p.Noise.Dev, felt*p.luck(length))
}

// luck is the standard deviation of the logarithm of one trial's goodput under losses, few or
// many.
func (p *Path) luck(length time.Duration) float64 {
	losses := p.Loss * math.Min(p.lossRate(), p.CapacityBps()) * length.Seconds() / float64(8*p.MSS)
	return cmp.Or(p.LossScatter, 0.4) / math.Sqrt(losses+1)
}

// Measure is one trial at a time since the first; window 0 is automatic sizing. It
// returns the goodput and the effective window.
func (p *Path) Measure(rng *rand.Rand, window float64, at, length time.Duration) (goodput, effective float64) {
	effective = window
	if window == 0 {
		effective = p.AutoWindow
	}
	if p.Ceiling > 0 {
		effective = math.Min(effective, p.Ceiling)
	}
	luck := 1.0
	if p.Loss > 0 {
		luck = math.Exp(p.luck(length) * rng.NormFloat64())
	}
	g := p.goodputWithLuck(effective, luck)
	filled := math.Min(effective, p.BDP())
	rounds := math.Max(0, math.Log2(filled/float64(10*p.MSS)))
	start := rounds * p.BaseRTT().Seconds()
	g *= 1 - 0.5*math.Min(1, math.Max(0, start/length.Seconds()-0.75)) // not out of slow start yet
	g *= math.Exp(p.Noise.Dev * rng.NormFloat64())
	if p.Noise.Period > 0 {
		g *= 1 + p.Noise.Drift*math.Sin(2*math.Pi*at.Seconds()/p.Noise.Period.Seconds())
	}
	if rng.Float64() < p.Noise.Stalls {
		g *= 0.4 + 0.55*rng.Float64()
	}
	if rng.Float64() < p.Noise.TwoMode {
		g *= 0.92
	}
	return g, effective
}

// Random draws a path: 64 kbit/s to 2 Gbit/s, 0.5 to 600 ms, BDP from 4 segments to
// 64 MiB, loss 0 to 1 %.
func Random(rng *rand.Rand) *Path {
	logUniform := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	chance := func(share float64) bool { return rng.Float64() < share }
	p := &Path{MSS: []int{1448, 1460, 1398, 536, 8948}[rng.IntN(5)], Harm: 1}
	for {
		p.RateBps = logUniform(64e3, 2e9)
		p.RTT = time.Duration(logUniform(0.5e-3, 600e-3) * float64(time.Second))
		if bdp := p.BDP(); bdp >= 4*float64(p.MSS) && bdp <= 64<<20 {
			break
		}
	}
	bdp := p.BDP()
	segment := float64(p.MSS)
	p.Queue = math.Max(10*segment, logUniform(0.02, 4)*bdp)
	if chance(0.3) {
		p.Jitter = time.Duration(rng.Float64() * 0.3 * float64(p.RTT))
	}
	if chance(0.4) {
		p.Loss = logUniform(1e-6, 1e-2)
	}
	if p.Queue < 0.4*bdp {
		p.Harm = 0.4 + 0.6*rng.Float64()
	}
	if chance(0.1) {
		p.Harm = 0.3 + 0.6*rng.Float64()
		p.Cliff = math.Max(4*segment, logUniform(0.1, 2)*bdp)
	}
	p.AutoWindow = 8 * bdp
	if chance(0.6) {
		p.AutoWindow = math.Max(2*segment, []float64{8192, 17520, 65535, 1 << 20, 4 << 20,
			logUniform(0.05, 3) * bdp}[rng.IntN(6)])
	}
	if chance(0.15) {
		p.Ceiling = math.Max(p.AutoWindow, logUniform(0.2, 4)*bdp)
	}
	p.Noise.Dev = logUniform(0.001, 0.04)
	if chance(0.3) {
		p.Noise.Stalls = 0.08 * rng.Float64()
	}
	if chance(0.3) {
		p.Noise.Drift = 0.05 * rng.Float64()
		p.Noise.Period = time.Duration(logUniform(5, 200) * float64(time.Second))
	}
	if chance(0.2) {
		p.Noise.TwoMode = 0.3 * rng.Float64()
	}
	return p
}
