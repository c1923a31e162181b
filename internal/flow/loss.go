package flow

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// span is a range of positions.
type span struct {
	from, to int64
	at       int64
}

// ranges are a few spans in order; with more than mostSpans, the highest are forgotten.
type ranges []span

const mostSpans = 12

// insert adds a span, joined with those it touches.
func (r *ranges) insert(from, to, at int64) {
	all := *r
	i := 0
	for i < len(all) && all[i].to < from {
		i++
	}
	j := i
	for ; j < len(all) && all[j].from <= to; j++ {
		from = min(from, all[j].from)
		to = max(to, all[j].to)
		at = min(at, all[j].at)
	}
	if i < j {
		all[i] = span{from, to, at}
		*r = slices.Delete(all, i+1, j)
		return
	}
	if all == nil {
		all = make(ranges, 0, mostSpans)
	}
	if len(all) == mostSpans {
		if i == len(all) {
			return
		}
		all = all[:len(all)-1]
	}
	*r = slices.Insert(all, i, span{from, to, at})
}

// remove removes a range. It returns how many bytes of it were there, and since when.
func (r *ranges) remove(from, to int64) (bytes, since int64) {
	for i := 0; i < len(*r); i++ {
		s := (*r)[i]
		a := max(from, s.from)
		b := min(to, s.to)
		if a >= b {
			continue
		}
		if bytes == 0 || s.at < since {
			since = s.at
		}
		bytes += b - a
		switch {
		case a == s.from && b == s.to:
			*r = slices.Delete(*r, i, i+1)
			i--
		case a == s.from:
			(*r)[i].from = b
		case b == s.to:
			(*r)[i].to = a
		default:
			(*r)[i].to = a
			r.insert(b, s.to, s.at)
		}
	}
	return bytes, since
}

// below forgets what lies under a position.
func (r *ranges) below(pos int64) {
	i := 0
	for i < len(*r) && (*r)[i].to <= pos {
		i++
	}
	*r = slices.Delete(*r, 0, i)
	if len(*r) > 0 && (*r)[0].from < pos {
		(*r)[0].from = pos
	}
}

func (r ranges) bytes() (n int64) {
	for _, s := range r {
		n += s.to - s.from
	}
	return n
}

// lostSegments is what a Direction knows of its losses.
type lostSegments struct {
	gaps       ranges // below high, never seen
	recovering bool
	recovery   int64       // recovering ends when this is acknowledged
	LossPoints []LossPoint // the first ones
	headLost   int         // how often the first unacknowledged segment was repeated
	headLen    int64
	MaxPassed  int64 // payload of the longest segment that is known to have got through

	needless         int   // retransmissions of acknowledged data, for which a duplicate SACK may still arrive
	needlessTailTime int64 // nanoseconds that they took after all data had been acknowledged

	skippedBytes int64 // bytes of all gaps that neither came since nor were acknowledged
	repeatedAt   int64 // time of the last retransmission
}

// skipped notes that bytes were passed over: lost before the tap, late, or lost by the capture.
func (d *Direction) skipped(from, to, at int64) {
	d.gaps.insert(from, to, at)
	d.skippedBytes += to - from
}

// filled: bytes below ack that never passed the tap were lost by the capture.
func (d *Direction) filled(ack int64) {
	if len(d.gaps) == 0 {
		return
	}
	if unseen, _ := d.gaps.remove(0, ack); unseen > 0 {
		d.Unseen += unseen
		d.cur.Unseen += unseen
		d.skippedBytes -= unseen
	}
}

// repeated takes a segment from..to that lies below the highest byte seen.
func (d *Direction) repeated(s *Segment, from, to, at int64) {
	late := max(d.RTTMin*3/4, 3e6)
	missing, since := d.gaps.remove(from, to)
	d.skippedBytes -= missing
	if missing > 0 && at-since < late {
		d.OutOfOrder++
		return
	} else if missing == 0 {
		d.Repeated += to - from
		d.cur.Repeated += to - from
	}
	d.Replaced += missing
	d.Retransmitted++
	d.cur.Retransmitted++
	d.repeatedAt = at
	if g := d.Graph; g != nil {
		g.Retransmissions.add(at, from, to)
	}
	timedOut := at-d.lastSent >= max(2*d.RTTMin, int64(threshold.MinRTO.Value))
	if timedOut {
		d.Timeouts++
		d.bookTimeout(at)
		d.round.best = 0 // slow start begins anew
	}
	if to <= d.acked {
		d.Spurious++
		d.needless++
		if timedOut {
			d.Unheard++
			d.LossEvents++
			d.cur.Losses++
		}
		return
	}
	d.repeatedOversized(from, to)
	if from <= d.una {
		d.headLost++
		d.headLen = int64(s.Payload)
	}
	d.rtt.spoil()
	if !d.recovering {
		d.recover(timedOut)
	}
}

// bookTimeout moves the silence before a retransmission by timeout to the Recovery clock: the retransmission is the
// first sign of the loss where the tap saw no duplicate ACKs.
func (d *Direction) bookTimeout(at int64) {
	silence := at - max(d.lastSent, d.owed)
	for _, clock := range []Clock{Busy, AppLimited} {
		moved := min(silence, d.cur.Clock[clock])
		d.cur.Clock[clock] -= moved
		d.cur.Clock[Recovery] += moved
		silence -= moved
	}
	d.round.busy = min(d.round.busy, d.cur.Clock[Busy])
}

// abandoned reports whether the sender stopped retransmitting: data was not acknowledged when the
// connection ended, and its retransmission timer had run out (RFC 6298, 5.5: each time it waits
// twice as long). Only a tap at the sender shows that no retransmission was lost before it.
func (d *Direction) abandoned() bool {
	atSender := d.rtt.loopKnown && float64(d.rtt.loopMin) <= threshold.TapAtSender.Value*float64(d.RTTMin)
	wait := max(second, 4*d.RTTMin) + 2*max(d.lastSent-d.owed, 0)
	return atSender && d.RTTMin > 0 && d.acked < d.high && d.window > 0 &&
		d.conn.now-max(d.lastSent, d.owed) > wait
}

// LossPoint is the state in which acknowledgements showed a loss.
type LossPoint struct {
	Out   int64 // bytes outstanding
	Queue int64 // by how much the last round trip exceeded the least one, nanoseconds
}

// maxLossPoints bounds the loss points of a direction.
const maxLossPoints = 64

// recover begins a recovery. A timeout comes long after the loss.
func (d *Direction) recover(timedOut bool) {
	if !timedOut && len(d.LossPoints) < maxLossPoints {
		d.LossPoints = append(d.LossPoints, LossPoint{d.high - d.una, max(d.rtt.newest-d.RTTMin, 0)})
	}
	d.recovering = true
	d.recovery = d.high
	d.LossEvents++
	d.cur.Losses++
}

// passed: everything below una got through.
func (d *Direction) passed(una int64) {
	d.passedOversized(una)
	if d.headLost > 0 {
		d.MaxPassed = max(d.MaxPassed, d.headLen)
	}
	d.headLost = 0
	if d.recovering && una >= d.recovery {
		d.recovering = false
		d.round.level = 0
		d.round.maxOut = d.high - una
	}
}

// stuck says of a segment that is lost again and again that it is too large: smaller ones
// pass.
func (d *Direction) stuck() bool {
	if d.headLen <= d.MaxPassed {
		return false
	}
	if moved := d.cur.Clock[Recovery]; moved > 0 && d.state == Recovery {
		d.cur.Clock[Recovery] = 0
		d.cur.Clock[BlackHole] += moved
	}
	return true
}

// sack takes a segment's SACK blocks. It reports whether they show a loss rather than a reordering.
func (d *Direction) sack(s *Segment, ack int64) (gap bool) {
	for i := range int(s.SACKs) {
		from := d.position(s.SACK[i][0])
		to := d.position(s.SACK[i][1])
		d.SACKBlocks++
		if from > d.tapEdge+1<<20 || to < d.acked-1<<30 || to < 0 {
			d.SACKOutside++
			continue
		}
		if i == 0 && (to <= ack || from < ack) { // RFC 2883: received twice
			if d.needless > 0 {
				d.needless-- // counted as spurious when the tap saw it
			} else {
				d.Spurious++
			}
			continue
		}
		if from >= to || from < ack || to > d.high {
			continue
		}
		d.sacked.insert(from, to, 0)
		if g := d.Graph; g != nil {
			g.SACKs.add(d.conn.now, from, to)
		}
	}
	d.sacked.below(ack)
	return d.sacked.bytes() >= 3*int64(max(d.MSS, 536))
}
