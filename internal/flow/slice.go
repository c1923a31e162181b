package flow

import (
	"math"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Slice is a piece of a direction's time, at least a round trip long. Neighbours are
// merged when there are too many; sums stay exact, the resolution is the slices' length.
type Slice struct {
	Start, End int64
	Clock      [clocks]int64

	Sent, Acked   int64 // fresh bytes sent; bytes acknowledged, selectively or not
	Repeated      int64 // bytes sent twice
	Retransmitted int32
	Losses        int32 // recoveries begun
	Marks         int32 // round trips in which congestion marks were reported
	Unseen        int64

	OutMax               int64
	WindowMin, WindowMax int64 // 0, 0: none advertised

	RTTMin, RTTMax int64 // 0 unknown
	RTTSum         int64
	RTTs           int32
	Rounds         int32
	BackSum        int64 // how much longer than the least acknowledgements took to the tap, with each round trip
	Backs          int32
	rttSpread      float64 // sum over rounds of the squared deviations within them

	// PeakSent and PeakAcked are the fastest rounds' rates in bytes per second.
	PeakSent, PeakAcked float64

	outTime float64
}

func newSlice(at int64) Slice { return Slice{Start: at, WindowMin: math.MaxInt64} }

// OutMean is the mean of the bytes outstanding.
func (s *Slice) OutMean() float64 {
	if s.End <= s.Start {
		return 0
	}
	return s.outTime / float64(s.End-s.Start)
}

// RTTSpread is the standard deviation of round trips within a round, nanoseconds.
func (s *Slice) RTTSpread() float64 {
	if s.RTTs <= s.Rounds {
		return 0
	}
	return math.Sqrt(s.rttSpread / float64(s.RTTs-min(s.Rounds, s.RTTs-1)))
}

func (s *Slice) window(w int64) {
	s.WindowMin = min(s.WindowMin, w)
	s.WindowMax = max(s.WindowMax, w)
}

func (s *Slice) rtt(v int64) {
	if s.RTTs == 0 || v < s.RTTMin {
		s.RTTMin = v
	}
	s.RTTMax = max(s.RTTMax, v)
	s.RTTSum += v
	s.RTTs++
}

// join appends o, which follows s.
func (s *Slice) join(o *Slice) {
	s.End = o.End
	for i := range s.Clock {
		s.Clock[i] += o.Clock[i]
	}
	s.Sent += o.Sent
	s.Acked += o.Acked
	s.Repeated += o.Repeated
	s.Retransmitted += o.Retransmitted
	s.Losses += o.Losses
	s.Marks += o.Marks
	s.Unseen += o.Unseen
	s.OutMax = max(s.OutMax, o.OutMax)
	s.WindowMin = min(s.WindowMin, o.WindowMin)
	s.WindowMax = max(s.WindowMax, o.WindowMax)
	if o.RTTs > 0 && (s.RTTs == 0 || o.RTTMin < s.RTTMin) {
		s.RTTMin = o.RTTMin
	}
	s.RTTMax = max(s.RTTMax, o.RTTMax)
	s.RTTSum += o.RTTSum
	s.RTTs += o.RTTs
	s.Rounds += o.Rounds
	s.rttSpread += o.rttSpread
	s.BackSum += o.BackSum
	s.Backs += o.Backs
	s.PeakSent = max(s.PeakSent, o.PeakSent)
	s.PeakAcked = max(s.PeakAcked, o.PeakAcked)
	s.outTime += o.outTime
}

// mostSlices is how many all directions keep before new ones have to do with fewer: some
// 300 MB.
const mostSlices = 1_500_000

// slicing cuts time into slices.
type slicing struct {
	cur   Slice
	least int64 // no slice is shorter than this

	// the delivered bytes, for rates
	total             int64
	burstAt, burstPos int64
	burstHigh         int64 // the highest byte sent when the burst began
}

// round is one round trip's worth of sending. It ends when all data outstanding at its beginning is acknowledged.
type round struct {
	mark       int64
	began      int64
	busy       int64
	paused     int64
	silent     int64 // as Silences, with slow start
	drained    int64
	sent       int64
	ackedAt    int64 // delivered bytes at its beginning
	maxOut     int64
	best       int64 // most outstanding of any round since the start, a pause or a timeout
	level      int64 // most outstanding in the round before, 0 when a loss lies between
	rtts       int32
	mean, dev2 float64 // of its round trips (Welford)
}

func (r *round) rtt(v int64) {
	r.rtts++
	delta := float64(v) - r.mean
	r.mean += delta / float64(r.rtts)
	r.dev2 += delta * (float64(v) - r.mean)
}

func (d *Direction) openRound(at int64) {
	d.round = round{mark: d.high + 1, began: at, best: d.round.best, level: d.round.maxOut, ackedAt: d.total,
		maxOut: d.high - d.una}
}

// IdleRestarts are slow starts after idle times, with a window that had grown beyond the initial one.
type IdleRestarts struct {
	Count     int64
	Idle      int64 // the idle times before them, nanoseconds
	SlowStart int64 // time on the SlowStart clock after the first of them, nanoseconds
}

// closeRound books what only a whole round shows.
func (d *Direction) closeRound() {
	r := &d.round
	if r.sent == 0 {
		return
	}
	d.cur.Rounds++
	d.cur.rttSpread += r.dev2
	if took := d.at - r.began - r.paused; took > 0 && took >= d.RTTMin/2 {
		seconds := float64(took) / 1e9
		d.cur.PeakSent = max(d.cur.PeakSent, float64(r.sent)/seconds)
		d.cur.PeakAcked = max(d.cur.PeakAcked, float64(d.total-r.ackedAt)/seconds)
	}
	// All data was acknowledged and the other end replied before more was sent: the program had no more data, and
	// no congestion window limited it.
	exchanged := d.answered && d.una >= d.high
	if float64(r.maxOut) >= 1.4*float64(r.best) && !exchanged {
		moved := min(r.busy, d.cur.Clock[Busy])
		d.cur.Clock[Busy] -= moved
		d.cur.Clock[SlowStart] += moved
		if d.IdleRestarts.Count > 0 {
			d.IdleRestarts.SlowStart += moved
		}
	} else {
		d.Silences += r.silent
		d.Drained += r.drained
	}
	r.best = max(r.best, r.maxOut)
	// The round ended idle: slow start begins anew (RFC 5681, 4.1).
	if r.paused > max(d.RTTMin, int64(threshold.MinRTO.Value)) {
		if r.best > int64(threshold.InitialSegments.Value)*int64(max(d.MSS, 536)) {
			d.IdleRestarts.Count++
			d.IdleRestarts.Idle += r.paused
		}
		r.best = 0
	}
}

// delivered keeps the account of what arrived.
func (d *Direction) delivered(at int64) {
	total := d.acked
	if len(d.sacked) > 0 {
		total += d.sacked.bytes()
	}
	if total <= d.total {
		return
	}
	d.cur.Acked += total - d.total
	d.total = total
	if d.recovering || len(d.sacked) > 0 {
		d.burstAt = 0
		return
	}
	const shortest = 2e6
	n := total - d.burstPos
	took := at - d.burstAt
	enough := n >= 2*int64(max(d.MSS, 536)) && took >= shortest
	// The last of it was on its way before the sender could know of the first: seen at the
	// sender by what it had sent, further on by the time.
	atOnce := total <= d.burstHigh || took < d.rtt.delay()
	if enough && d.burstAt > 0 && atOnce {
		if d.Bursts == nil {
			d.Bursts = &Bursts{}
		}
		d.Bursts.add(n, took)
	}
	if enough || !atOnce || d.burstAt == 0 {
		d.burstAt = at
		d.burstPos = total
		d.burstHigh = d.high
	}
}

// maybeCut ends the slice when it is long enough.
func (d *Direction) maybeCut(at int64) {
	if at-d.cur.Start >= max(d.least, d.RTTMin) {
		d.closeSlice(at)
	}
}

func (d *Direction) closeSlice(at int64) {
	d.cur.End = at
	if at <= d.cur.Start {
		return
	}
	if d.cur.WindowMin == math.MaxInt64 {
		d.cur.WindowMin = d.cur.WindowMax
	}
	if n := len(d.Slices); n > 0 && at-d.cur.Start < max(d.least, d.RTTMin)/2 {
		d.Slices[n-1].join(&d.cur) // the end's remainder
		d.cur = newSlice(at)
		return
	}
	t := d.conn.table
	d.Slices = append(t.roomier(d.Slices), d.cur)
	d.cur = newSlice(at)
	t.slices++
	limit := t.cfg.Slices
	if t.slices > mostSlices/t.cfg.Shares {
		limit = max(limit/8, 8)
	}
	if len(d.Slices) < limit {
		return
	}
	t.slices -= len(d.Slices) / 2
	kept := d.Slices[:0]
	for i := 0; i < len(d.Slices); i += 2 {
		s := d.Slices[i]
		if i+1 < len(d.Slices) {
			s.join(&d.Slices[i+1])
		}
		kept = append(kept, s)
	}
	d.Slices = kept
	d.least = (kept[len(kept)-1].End - kept[0].Start) / int64(len(kept))
}

// roomier gives slices room for one more. As long as few are kept it grows in fewer and
// larger steps than append does, and it leaves new memory untouched until that is needed:
// with a thousand connections, page faults took a tenth of the time.
func (t *Table) roomier(slices []Slice) []Slice {
	n := len(slices)
	if n < cap(slices) {
		return slices
	}
	room := max(2*n, 1)
	if few := mostSlices / 8 / t.cfg.Shares; n >= 8 && t.slices < few {
		room = min(4*n, max(t.cfg.Slices, n+1))
	}
	grown := make([]Slice, n, room)
	copy(grown, slices)
	return grown
}
