package predict

import (
	"math"
	"math/rand/v2"
	"slices"
)

// result is a prediction in bit/s.
type result struct {
	low, high, typical float64
	finishes           bool // the stated bytes, before the stated time
}

func (r result) goodput() Range { return Range{Low: r.low, Typical: r.typical, High: r.high} }

const (
	seeds = 31 // simulations of a scenario with randomness
	// maxRounds is the largest number of rounds of one connection, minRounds with many connections. The rest of the
	// transfer continues at the rate of the second half.
	maxRounds, minRounds = 6000, 300
)

// predict simulates the transfer and adds the model's own error.
func (r *scenario) predict() result { return r.simulate(seeds) }

// estimate is predict with a few seeds, for the median alone.
func (r *scenario) estimate() result { return r.simulate(7) }

func (r *scenario) simulate(n int) result {
	if r.loss == 0 && r.connections == 1 && r.jitter == [2]float64{} {
		n = 1
	}
	n = min(n, max(4*n/r.connections, 3)) // many connections average out
	all := make([]float64, n)
	finishes := true
	carried := 0.0
	for i := range all {
		p := simulation{scenario: r, dice: rand.New(rand.NewPCG(uint64(i)+1, 0))}
		all[i] = p.goodput()
		finishes = finishes && p.carried >= r.bytes-0.5
		carried = p.carried
	}
	slices.Sort(all)
	low := all[n*5/100]
	high := all[n-1-n*5/100]
	res := result{typical: all[n/2], finishes: finishes}
	below, above := r.margins(res.typical)
	widest := 0.145
	if r.loss > 0 || r.overruns {
		widest = 0.39
	}
	res.low = low * (1 - below)
	res.high = high * (1 + above)
	// The clock starts with the first byte that is read, when more may have arrived.
	early := math.Min(0.003+r.initial*r.mss*float64(r.connections)/math.Max(carried, 1), 0.03)
	res.high = math.Max(math.Min(res.high, (1+early)*r.capacity()), res.typical)
	// The range is limited to a useful width about its middle or, with more randomness than that, about the median.
	if res.high-res.low > widest*(res.high+res.low) {
		res.low = math.Max(res.low, res.typical*(0.95-widest))
		res.high = math.Min(res.high, res.low*(1+widest)/(1-widest))
		res.low = math.Max(res.low, res.high*(1-widest)/(1+widest))
	}
	return res
}

// margins returns the model's error as shares, chosen on the training seeds of TestBankPredict. The lower one is
// larger: host effects outside the model (bursts, a late process) overflow a short queue.
func (r *scenario) margins(typical float64) (below, above float64) {
	const short = 0.6  // BDPs
	if r.sendBound() { // the last segment's acknowledgement may wait for another segment
		defer func() { below = math.Min(below+0.6*r.segment/(r.rtt+r.segment), 0.2) }()
	}
	switch {
	case r.overruns:
		return 0.35, 0.35
	case r.loss > 0 && typical < 0.85*r.bound():
		return 0.42, 0.32 // few losses
	case r.loss > 0:
		return 0.18, 0.10
	case r.congestion != "bbr" && r.queue < short*r.bdp():
		return 0.23, 0.03
	case typical > 0.85*r.capacity():
		return 0.17, 0.08 // the line bounds it above
	}
	return 0.13, 0.08
}

// simulation is one transfer, round trip by round trip: every connection sends its window, the line and its queue carry
// or drop segments, and each window reacts.
type simulation struct {
	*scenario
	dice    *rand.Rand
	flows   []flow
	clock   float64 // seconds since the first byte arrived
	carried float64 // payload bytes
	gap     float64 // segments until the next loss
	last    bool    // no pieces are left to take
}

// goodput simulates the transfer to its end and returns the goodput in bit/s.
func (p *simulation) goodput() float64 {
	p.flows = make([]flow, p.connections)
	for i := range p.flows {
		p.flows[i] = newFlow(p.scenario)
	}
	p.gap = p.nextLoss()
	half := 0.0
	halfClock := 0.0
	most := max(maxRounds/p.connections, minRounds)
	for round := 0; p.clock < p.time && p.carried < p.bytes-0.5; round++ {
		if round == most/2 {
			half = p.carried
			halfClock = p.clock
		}
		if round == most {
			pace := (p.carried - half) / (p.clock - halfClock)
			if pace <= 0 {
				break
			}
			left := math.Min(p.time-p.clock, (p.bytes-p.carried)/pace)
			p.carried += left * pace
			p.clock += left
			break
		}
		p.round()
	}
	if p.clock <= 0 {
		return p.capacity()
	}
	return p.carried * 8 / p.clock
}

// round is one round trip.
func (p *simulation) round() {
	total := 0.0
	bursts := 0.0
	rtt := p.rtt + hosts + p.jitterNow()
	for i := range p.flows {
		f := &p.flows[i]
		before := f.sent
		f.sent = f.sends(p)
		f.lost = 0
		total += f.sent
		if p.congestion != "bbr" || !f.full { // BBR paces
			bursts += math.Max(f.sent-before, 0) // beyond what acknowledgements pace
		}
	}
	waiting := math.Max(total-rtt/p.segment, math.Min(bursts, total))
	dropped := 0.0
	if waiting > p.queue && total > 0 {
		dropped = p.drop(waiting-p.queue, total)
	}
	arrived := 0.0
	for i := range p.flows {
		f := &p.flows[i]
		p.loseRandomly(f)
		arrived += f.sent - f.lost
		f.left -= f.sent - f.lost
	}
	lasts := math.Max(rtt+p.trailing, (total-dropped)*p.segment)
	p.deliver(arrived, lasts)
	for i := range p.flows {
		p.flows[i].update(p, lasts)
	}
	if pieces := p.piece * float64(p.connections); !p.last && p.bytes-p.carried <= pieces/2 {
		p.share()
	}
}

// share gives each of several connections a random rest of its last piece. Connections take shared bytes piece by
// piece, and the slowest ends the transfer.
func (p *simulation) share() {
	p.last = true
	sum := 0.0
	for i := range p.flows {
		p.flows[i].left = p.dice.Float64()
		sum += p.flows[i].left
	}
	for i := range p.flows {
		p.flows[i].left *= (p.bytes - p.carried) / p.mss / sum
	}
}

// jitterNow returns the present deviation of the round trip from its mean: each direction's delay is between two random
// values (link.Lane).
func (p *simulation) jitterNow() (off float64) {
	for _, spread := range p.jitter {
		if spread > 0 {
			off += spread * ((p.dice.Float64()+p.dice.Float64())/2 - 0.5)
		}
	}
	return off
}

// deliver counts the arrivals of a round, which begins with its segments back to back. The transfer may end within it.
func (p *simulation) deliver(segments, lasts float64) {
	bytes := segments * p.mss
	took := lasts
	spent := math.Min(segments*p.segment, lasts) // from the round's first to its last byte
	if left := p.bytes - p.carried; bytes >= left {
		took = spent * left / bytes
		bytes = left
	}
	if left := p.time - p.clock; took > left {
		if spent > left {
			bytes *= left / spent
		}
		took = left
	}
	p.carried += bytes
	p.clock += took
}

// drop spreads the drops of a full queue over all connections equally or, if they are few, over some.
func (p *simulation) drop(segments, total float64) (dropped float64) {
	if segments >= float64(len(p.flows)) || len(p.flows) == 1 {
		for i := range p.flows {
			f := &p.flows[i]
			lost := math.Min(math.Max(segments*f.sent/total, 1), f.sent)
			f.lost += lost
			dropped += lost
		}
		return dropped
	}
	for range int(math.Ceil(segments)) {
		at := p.dice.Float64() * total
		for i := range p.flows {
			at -= p.flows[i].sent
			if at <= 0 {
				p.flows[i].lost++
				dropped++
				break
			}
		}
	}
	return dropped
}

// loseRandomly applies the path's random loss to a connection's segments (link.Lane's Gilbert-Elliott model).
func (p *simulation) loseRandomly(f *flow) {
	if p.loss <= 0 {
		return
	}
	if p.loss >= 1 {
		f.lost = f.sent
		return
	}
	left := f.sent - f.lost
	if mean := left * p.loss; mean > many {
		deviation := math.Sqrt(mean * (1 - p.loss) * (2*p.burst - 1))
		f.lost += math.Min(math.Max(mean+deviation*p.dice.NormFloat64(), 0), left)
		return
	}
	for p.gap < left {
		left -= p.gap
		run := 1.0
		if p.burst > 1 {
			run = geometric(p.dice, 1/p.burst)
		}
		run = math.Min(run, left)
		f.lost += run
		left -= run
		p.gap = p.nextLoss()
	}
	p.gap -= left
}

// many is the mean number of losses in a round above which they are drawn together.
const many = 30

// nextLoss returns the number of segments before the next loss.
func (p *simulation) nextLoss() float64 {
	if p.loss <= 0 || p.loss >= 1 {
		return math.Inf(1)
	}
	return geometric(p.dice, math.Min(p.loss/p.burst/(1-p.loss*(1-1/p.burst)), 1)) - 1
}

// geometric draws the number of trials until the first success.
func geometric(dice *rand.Rand, p float64) float64 {
	if p >= 1 {
		return 1
	}
	return 1 + math.Floor(math.Log1p(-dice.Float64())/math.Log1p(-p))
}
