package flow

import "github.com/fullpipe-net/fullpipe/internal/verdict/threshold"

// sent takes a segment with payload.
func (d *Direction) sent(s *Segment, at int64) {
	d.informed(s, at)
	length := int64(s.Payload)
	from := d.position(s.Seq)
	to := from + length
	if length <= 1 && (to <= d.una || from == d.high && d.edge <= d.high) || to < 0 {
		d.Probes++ // a keep-alive, or a probe of a closed window
		d.probed(at)
		return
	}
	if from < d.high && d.justPassed(from, at) {
		if to <= d.high {
			d.conn.table.Duplicates++
			d.conn.Duplicates++
			return
		}
		from = d.high
	}
	d.Segments++
	d.checked(s)
	d.Captured += int64(s.Payload)
	d.MaxSegment = max(d.MaxSegment, int(length))
	if mss := int64(d.MSS); length > mss && length <= 1460 && d.conn.sides[1-d.me].offer.MSS == 0 {
		d.MSS = int(length)
	}
	partial := d.partial(length)
	if partial {
		d.SmallSegments++
	}
	if d.waiting.n > 0 && !d.allows(d.una, d.edge, to) {
		d.proven(to, at)
	} else if d.initial > 0 && d.una == 0 && d.acked == 0 {
		d.initial = max(d.initial, to)
	}
	if to <= d.acked { // its sender does not know that nothing is outstanding
		d.cur.Clock[Recovery] += d.empty
		if d.acked >= d.high {
			d.needlessTailTime += d.empty
		}
		d.empty = 0
	}
	if d.waitedFor > 0 || d.empty > 0 {
		d.resolveWaits(at, length)
	}
	switch {
	case to > d.high:
		d.note(from, at)
		if from > d.high {
			d.skipped(d.high, from, at)
		} else if from < d.high {
			d.repeated(s, from, d.high, at)
		}
		d.sentOversized(max(from, d.high), to, at)
		d.fresh(max(from, d.high), to, at)
	default:
		d.repeated(s, from, to, at)
	}
	d.lastSent = at
	d.lastLen = length
	d.pushed = s.Flags&PSH != 0 || partial
	if to > d.edgeMost && d.edgeMost > 0 && d.ScaleKnown {
		d.Beyond += min(to-d.edgeMost, length)
	}
	if g := d.Graph; g != nil {
		g.Data.add(at, d.high)
	}
	d.settle()
}

// checked counts a segment with a wrong checksum. A host that merges segments leaves the checksum of the first.
func (d *Direction) checked(s *Segment) {
	if s.Options&BadChecksum != 0 && int64(s.Payload) <= int64(d.MSS) {
		d.Damaged++
	}
}

// partial reports whether a payload ends in less than a full segment, as far as that is known.
func (d *Direction) partial(length int64) bool {
	mss := int64(max(d.MSS, 1))
	return length != mss && length%mss != 0
}

// fresh takes bytes that were not seen before and lie above all others.
func (d *Direction) fresh(from, to, at int64) {
	if from == d.high {
		d.spaced(to-from, at-d.lastSent, at)
	} else if d.Spacing != nil {
		d.Spacing.skip(to-from, d.lastLen, int64(d.MSS), at-d.lastSent)
	}
	if gap := at - d.lastSent; int64(threshold.StartPart.Value)*gap >= d.RTTMin && d.RTTMin > 0 && d.high > 0 {
		d.started(at, gap)
		if 4*gap >= d.RTTMin && d.una < d.high {
			d.silence(gap)
		}
	}
	if d.una >= d.round.mark {
		d.closeRound()
		d.openRound(at)
		d.countRound()
		d.maybeCut(at)
	}
	if d.acked >= d.high {
		d.endBlock(at)
		d.block = block{from: d.high, began: at}
		d.owed = at
		d.owedSent = d.Retransmitted
	}
	d.answered = false
	d.needlessTailTime = 0
	d.cur.Sent += to - from
	d.round.sent += to - from
	d.high = to
	out := d.high - d.una
	if out > d.round.maxOut {
		d.round.maxOut = out
	}
	if out > d.MaxOut {
		d.MaxOut = out
	}
	if out > d.cur.OutMax {
		d.cur.OutMax = out
	}
	if !d.ScaleKnown {
		d.inferScale(out, at)
	}
	d.rtt.mark(to, at, to-from)
}

// silence books that nothing was sent for so long though data was outstanding.
func (d *Direction) silence(took int64) {
	d.round.silent += took
	if d.messaged && d.partial(d.lastLen) {
		d.round.drained += took
	}
	d.messaged = false
}

// countRound counts what the round that begins follows on.
func (d *Direction) countRound() {
	empty := d.una >= d.high
	if d.answeredInRound {
		d.Spoken++
		d.answeredInRound = false
	}
	if d.answered {
		d.Answered++
		if empty {
			d.Exchanges++
		}
	}
	if empty {
		d.Restarts++
	}
}

// inferScale raises the shift to the least that explains data beyond the window's edge.
func (d *Direction) inferScale(out, at int64) {
	slop := int64(d.MaxSegment) + 2*int64(max(d.MSS, 1460))
	if d.rtt.delay() > 0 {
		slop += out / 5 // the bytes outstanding are then an estimate
	}
	for d.Scale < 14 && d.window > 0 && d.window < 1<<39 && d.high > d.edge+slop {
		d.Scale++
		d.ScaleRaise = at
		d.edge += d.window
		d.tapEdge += d.window
		d.window *= 2
		d.WindowMax *= 2
	}
}

// resolveWaits gives the silence before a segment to its clock.
func (d *Direction) resolveWaits(at, length int64) {
	if d.waitedFor > 0 {
		small := d.waitedIn != Full && length < int64(d.MSS) && d.lastLen < int64(d.MSS)
		since := at - d.waitedAt
		if since <= max(2e6, d.RTTMin/4) && small {
			for _, from := range []Clock{Busy, AppLimited} {
				moved := min(d.waitedFor, d.cur.Clock[from])
				d.cur.Clock[from] -= moved
				d.cur.Clock[NagleWait] += moved
				d.waitedFor -= moved
			}
			d.round.busy = min(d.round.busy, d.cur.Clock[Busy])
		} else if since <= max(2e6, d.RTTMin/4, d.serializedBefore()) && d.timerFor > 0 && !d.answered {
			d.bookTimer()
		}
		d.waitedFor = 0
		d.timerFor = 0
		d.lastDelay = 0
	}
	if d.empty > 0 {
		d.flushEmpty()
	}
}

// flushEmpty books the time in which nothing was outstanding: a real pause, a shorter one
// that a sender makes for reasons of its own, or the moment that it needs to answer.
func (d *Direction) flushEmpty() {
	if d.Starts != nil {
		d.Starts.Own += d.empty
	}
	moment := max(d.RTTMin, 1e6)
	if d.rtt.now < d.RTTMin/10 && d.rtt.loopKnown {
		moment = max(d.RTTMin/4, 1e6)
	}
	clock := Busy
	switch {
	case d.empty >= max(d.RTTMin, 1e6):
		clock = Idle
		d.Pauses++
		if d.pushed {
			d.PushedIdle += d.empty
		}
		if d.Segments-d.pauseAt <= 1 && 10*d.empty > 16*d.pause && 10*d.empty < 24*d.pause {
			d.BackOffs++
		}
		d.pause = d.empty
		d.pauseAt = d.Segments
		if d.partial(d.lastLen) {
			d.Tails++
		}
		d.round.paused += d.empty
		if d.Spacing != nil {
			d.Spacing.paused = d.empty
		}
	case d.empty >= moment:
		clock = AppLimited
		d.round.paused += d.empty
	default:
		d.round.busy += d.empty
	}
	d.cur.Clock[clock] += d.empty
	d.empty = 0
}
