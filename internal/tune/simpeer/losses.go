package simpeer

import (
	"bytes"
	"compress/gzip"
	_ "embed"
	"encoding/json"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Losses make goodput scatter as it did in recorded transfers over paths that lose segments by chance. The zero value
// loses single segments.
type Losses struct {
	Control string  // the sender's default: "cubic" or "reno"
	Burst   float64 // segments lost at a time; 0: one
}

//go:embed testdata/losses.json.gz
var recordedLosses []byte

// recording has the transfers of one lab path with one congestion control, each by a connection of its own.
type recording struct {
	RateBps float64       `json:"rate_bps"`
	RTTS    float64       `json:"rtt_s"`
	Loss    float64       `json:"loss"`
	Control string        `json:"control"`
	StepS   float64       `json:"step_s"`
	Runs    []recordedRun `json:"runs"`
	mean    float64       // goodput after the first losses, in bit/s
	share   float64       // of it in the rate
	epoch   float64       // time between losses then, in s
}

// recordedRun has goodputs and lost segments, by steps.
type recordedRun struct {
	Kbps []float64 `json:"kbps"`
	Lost []int     `json:"lost"`
}

var recordings = sync.OnceValue(func() (all []*recording) {
	r, err := gzip.NewReader(bytes.NewReader(recordedLosses))
	if err == nil {
		err = json.NewDecoder(r).Decode(&all)
	}
	if err != nil {
		panic(err)
	}
	for _, rec := range all {
		rec.summarize()
	}
	return all
})

// maxLost bounds the losses of one step: more are those of a queue that slow start overfilled.
const maxLost = 3

// summarize drops the part of each run before its first loss, and computes the steady goodput.
func (r *recording) summarize() {
	var sum, steps, losses float64
	for i := range r.Runs {
		run := &r.Runs[i]
		first := max(0, slices.IndexFunc(run.Lost, func(n int) bool { return n > 0 }))
		run.Kbps = run.Kbps[first:]
		run.Lost = run.Lost[first:]
		for at, n := range run.Lost { // slow start may end with many
			run.Lost[at] = min(n, maxLost)
		}
		for at := len(run.Kbps) / 2; at < len(run.Kbps); at++ {
			sum += 1000 * run.Kbps[at]
			losses += min(float64(run.Lost[at]), 1)
			steps++
		}
	}
	r.mean = sum / steps
	r.share = r.mean / r.RateBps
	r.epoch = steps * r.StepS / max(losses, 1)
}

// RandomLossy draws a far end behind a path that loses by chance: 5 to 200 Mbit/s, 20 to 250 ms, 0.005 to 1 %, single
// segments or bursts, CUBIC or Reno at the sender.
func RandomLossy(rng *rand.Rand) *Peer {
	logUniform := func(low, high float64) float64 { return low * math.Pow(high/low, rng.Float64()) }
	path := &simpath.Path{RateBps: logUniform(5e6, 200e6),
		RTT:  time.Duration(logUniform(20, 250) * float64(time.Millisecond)),
		Loss: logUniform(0.005e-2, 1e-2), MSS: 1448, Harm: 1, Noise: simpath.Noise{Dev: 0.005}}
	path.Queue = math.Max(30e3, path.BDP())
	path.AutoWindow = 4 * path.BDP()
	losses := &Losses{Control: []string{"cubic", "reno"}[rng.IntN(2)]}
	if rng.IntN(3) == 0 {
		losses.Burst = []float64{3, 8}[rng.IntN(2)]
	}
	peer := New(path, rng.Uint64())
	peer.Losses = losses
	return peer
}

// lossDraw is one connection's transfer by recorded losses: the rate that its window asks for and the lost segments, by
// steps.
type lossDraw struct {
	step   time.Duration
	wanted []float64 // bit/s of payload, not bounded by the path
	lost   []float64
}

// lossWindow returns the long-run window in segments at a share of lost segments (Mathis et al., CCR 27-3, 1997; RFC
// 9438 section 5.1).
func lossWindow(control string, rtt, loss float64) float64 {
	reno := 1.22 / math.Sqrt(loss)
	if control == "reno" {
		return reno
	}
	return math.Max(reno, 1.054*math.Pow(rtt/loss, 0.75))
}

// LongRun returns the goodput of the default control after many losses, in bit/s.
func (l *Losses) LongRun(p *simpath.Path) float64 {
	rtt := p.BaseRTT().Seconds()
	return math.Min(p.CapacityBps(), lossWindow(l.Control, rtt, p.Loss/l.burst())*float64(p.MSS)*8/rtt)
}

func (l *Losses) burst() float64 { return math.Max(l.Burst, 1) }

// draw returns a fresh connection's transfer: slow start until a random time of the first loss, then a recorded
// run's course, stretched to this path's time between losses and long-run rate. Blocks of several losses come from
// different runs, at the same time since their first loss.
func (l *Losses) draw(rng *rand.Rand, p *simpath.Path, control string, length time.Duration) lossDraw {
	const stepsOf = 400
	events := p.Loss / l.burst()
	rtt := p.BaseRTT().Seconds()
	segment := float64(p.MSS) * 8
	d := lossDraw{step: max(length/stepsOf, time.Millisecond)}
	step := d.step.Seconds()
	add := func(bps, lost float64) {
		d.wanted = append(d.wanted, bps)
		d.lost = append(d.lost, lost)
	}
	full := func() bool { return time.Duration(len(d.wanted))*d.step >= length }
	rate := float64(model.InitialWindow) * segment / rtt
	next := func() float64 { return rng.ExpFloat64() / events } // segments until the next loss
	until := next()
	for !full() {
		add(rate, 0)
		until -= math.Min(rate, p.CapacityBps()) * step / segment
		if until <= 0 && control != "bbr" {
			d.lost[len(d.lost)-1] = l.burst()
			break
		}
		for until <= 0 {
			d.lost[len(d.lost)-1] += l.burst()
			until += next()
		}
		rate = math.Min(rate*math.Exp2(step/rtt), 1.5*p.CapacityBps())
	}
	if control == "bbr" {
		l.followBBR(&d, p, rng)
		return d
	}
	long := lossWindow(control, rtt, events) * segment / rtt
	rec := nearest(control, long/p.CapacityBps(), rng)
	epoch := 1 / (events * math.Min(long, p.CapacityBps()) / segment)
	stretch := rec.epoch / epoch // recorded seconds a second
	const block = 5              // losses
	run := &rec.Runs[rng.IntN(len(rec.Runs))]
	from := 0
	for at := 0.0; !full(); at += step * stretch {
		i := int(at / rec.StepS)
		if i-from >= int(block*rec.epoch/rec.StepS) {
			from = i
			run = &rec.Runs[rng.IntN(len(rec.Runs))]
		}
		for ; i >= len(run.Kbps); i -= len(run.Kbps) / 2 { // the later half once more
		}
		lost := float64(run.Lost[i]) * step * stretch / rec.StepS
		add(1000*run.Kbps[i]/rec.mean*long, lost*l.burst())
	}
	return d
}

// payload is the share of the recorded paths' packets that is payload.
const payload = 1448.0 / 1500

// followBBR replaces the rate once slow start has filled the path by that of a recorded run with bbr.
func (l *Losses) followBBR(d *lossDraw, p *simpath.Path, rng *rand.Rand) {
	rec := nearest("bbr", 1, rng)
	run := rec.Runs[rng.IntN(len(rec.Runs))]
	from := rng.IntN(len(run.Kbps))
	for i := range d.wanted {
		if d.wanted[i] < p.CapacityBps() {
			continue
		}
		at := (from + int(float64(i)*d.step.Seconds()/rec.StepS)) % len(run.Kbps)
		d.wanted[i] = p.CapacityBps() * math.Min(1, 1000*run.Kbps[at]/(payload*rec.RateBps))
	}
}

// nearest returns one of the two recordings of a control whose share of the rate is nearest.
func nearest(control string, share float64, rng *rand.Rand) *recording {
	of := slices.DeleteFunc(slices.Clone(recordings()), func(r *recording) bool { return r.Control != control })
	away := func(r *recording) float64 { return math.Abs(math.Log(r.share / share)) }
	slices.SortStableFunc(of, func(a, b *recording) int {
		if away(a) < away(b) {
			return -1
		}
		return 1
	})
	return of[rng.IntN(min(2, len(of)))]
}

// course is the arrivals of a transfer over time.
type course struct {
	step  time.Duration
	bytes []float64 // arrived until the end of a step
	lost  []float64 // segments until then
	rate  []float64 // bit/s in the step
	rtt   []time.Duration
}

// control returns the sender's default; "" where nothing is known of losses.
func (l *Losses) control() string {
	if l == nil {
		return ""
	}
	return l.Control
}

// course returns the arrivals of a transfer over the path, of all its connections together; nil where no losses scatter
// them.
func (p *Peer) course(s transfer.Spec, sender transfer.Socket, window float64, length time.Duration) *course {
	if p.Losses == nil || p.Path.Loss <= 0 || s.Program.RequestResponse {
		return nil
	}
	control := sender.Congestion
	if control == "" || p.Policed {
		control = p.Losses.Control
	}
	path := p.Path
	n := max(s.Streams, 1)
	if p.Policed {
		n = 1
	}
	capacity := path.CapacityBps()
	base := path.BaseRTT()
	limit := capacity
	if window > 0 {
		limit = math.Min(limit, float64(n)*window*8/base.Seconds())
	}
	if sender.PacingBps > 0 {
		limit = math.Min(limit, float64(n)*sender.PacingBps)
	}
	c := &course{}
	var wanted []float64
	for range n {
		d := p.Losses.draw(p.rng, path, control, length)
		if wanted == nil {
			c.step = d.step
			wanted = make([]float64, len(d.wanted))
			c.lost = make([]float64, len(d.wanted))
		}
		for i := range wanted {
			wanted[i] += d.wanted[i]
			c.lost[i] += d.lost[i]
		}
	}
	var bytes, lost float64
	deepest := base + time.Duration(path.Queue*8/capacity*float64(time.Second))
	for i, bps := range wanted {
		rate := math.Min(bps, limit)
		bytes += rate / 8 * c.step.Seconds()
		lost += c.lost[i]
		c.bytes = append(c.bytes, bytes)
		c.lost[i] = lost
		c.rate = append(c.rate, rate)
		loaded := base
		if limit == capacity && bps > capacity {
			loaded = min(deepest, time.Duration(bps/capacity*float64(base)))
		}
		c.rtt = append(c.rtt, loaded)
	}
	return c
}

// at returns the index of a time.
func (c *course) at(t time.Duration) int { return min(int(t/c.step), len(c.bytes)-1) }

// goodput returns the mean goodput in bit/s.
func (c *course) goodput() float64 {
	last := len(c.bytes) - 1
	return c.bytes[last] * 8 / (time.Duration(len(c.bytes)) * c.step).Seconds()
}

// sample overwrites what a sample of constant goodput has.
func (c *course) sample(s *transfer.Sample, at time.Duration, sends bool, mss float64) {
	i := c.at(at)
	bytes := c.bytes[i]
	if at == 0 {
		bytes = 0
	}
	s.RTT = c.rtt[i]
	if !sends {
		s.Received = int64(bytes)
		return
	}
	flight := c.rate[i] / 8 * c.rtt[i].Seconds()
	s.Acked = int64(bytes)
	s.DeliveryBps = c.rate[i]
	s.InFlight = int64(flight)
	s.Cwnd = int64(math.Max(flight, 2*mss))
	s.Ssthresh = s.Cwnd
	s.RwndLimited = 0
	s.Retransmitted = int64(math.Round(c.lost[i]))
}
