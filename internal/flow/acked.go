package flow

// ackEvent is an acknowledgement on its way from the tap to the sender.
type ackEvent struct {
	seen   int64 // by the tap
	due    int64 // by the loop's delay when the tap saw it; Direction.lag is added
	ack    int64
	tsval  uint32
	window uint16 // not scaled: the scale may have to be raised meanwhile
	pure   bool
	timer  int64 // for how long the receiver's delayed-ACK timer delayed it, 0 if it did not
	basis  timerBasis
	gap    bool // SACK shows more than a reordering's worth above a hole
}

// acks is a ring of acknowledgements in flight between tap and sender.
type acks struct {
	ring    []ackEvent
	head, n int
}

// maxWaiting bounds the ring; beyond it the newest acknowledgement replaces the last.
const maxWaiting = 1 << 14

func (a *acks) first() *ackEvent { return &a.ring[a.head] }

// pop removes the first one and returns it; it is valid until the next push.
func (a *acks) pop() *ackEvent {
	e := &a.ring[a.head]
	a.head = (a.head + 1) & (len(a.ring) - 1)
	a.n--
	return e
}

func (a *acks) push(e ackEvent) {
	if a.n == maxWaiting {
		a.ring[(a.head+a.n-1)&(len(a.ring)-1)] = e
		return
	}
	if a.n == len(a.ring) {
		grown := make([]ackEvent, max(16, 2*len(a.ring)))
		for i := range a.n {
			grown[i] = a.ring[(a.head+i)&(len(a.ring)-1)]
		}
		a.ring = grown
		a.head = 0
	}
	a.ring[(a.head+a.n)&(len(a.ring)-1)] = e
	a.n++
}

// acknowledged takes the acknowledgement in a segment of the other end.
func (d *Direction) acknowledged(s *Segment, at int64) {
	ack := d.position(s.Ack)
	d.Acknowledgements++
	if s.pure() {
		d.Acks++
	}
	if ack < 0 || ack > d.high+1<<30 {
		return
	}
	if s.Flags&SYN == 0 {
		d.announced(s.Window, ack, at)
	}
	if ack > d.high {
		d.beyond(ack, at)
	}
	ack = min(ack, d.high) // a FIN counts one
	d.reported(s.Flags, ack)
	if s.Flags&SYN == 0 {
		w := int64(s.Window) << d.Scale
		if s.Window == 0 {
			d.ZeroWindows++
		}
		if ack >= d.acked {
			d.tapEdge = ack + w
			d.edgeMost = max(d.edgeMost, d.tapEdge)
		}
	}
	e := ackEvent{seen: at, ack: ack, tsval: s.TSVal, window: s.Window, pure: s.Payload == 0}
	if s.SACKs > 0 {
		e.gap = d.sack(s, ack)
	}
	if ack > d.acked {
		d.delayed(&e)
		if d.block.firstAt == 0 {
			d.block.first = ack
			d.block.firstAt = at
		} else if d.Spacing != nil && (e.timer == 0 || e.basis == lineOrTimer) && !d.recovering && at > d.owed {
			d.Spacing.Acks.add(ack-d.acked, int64(max(d.MSS, 536)), at-d.owed)
		}
		d.stalled(at)
		d.owed = at
		d.owedSent = d.Retransmitted
		d.acked = ack
		d.filled(ack)
		if ack >= d.rtt.next {
			d.rtt.sample(d, ack, at)
		}
	}
	if len(d.sacked) > 0 && ack >= d.sacked[0].from {
		d.sacked.below(ack)
	}
	d.delivered(at)
	if g := d.Graph; g != nil {
		g.Acks.add(at, ack)
		g.Edge.add(at, d.tapEdge)
	}
	r := d.rtt.delay()
	if r == 0 && d.waiting.n == 0 {
		d.run(at)
		d.arrive(&e)
		return
	}
	e.due = at + r
	if d.waiting.n > 0 {
		last := &d.waiting.ring[(d.waiting.head+d.waiting.n-1)&(len(d.waiting.ring)-1)]
		e.due = max(e.due, last.due)
	}
	d.waiting.push(e)
	if !d.echoes() {
		d.advance(at)
	}
}

// echoes reports whether the data shows by its timestamps which acknowledgements its sender had received. Those that
// wait are then settled by the next data.
func (d *Direction) echoes() bool { return d.rtt.loop.have && d.rtt.loop.least() > 0 }

// informed lets acknowledgements reach the sender before it sends s: those that s echoes have reached it, later ones
// have not (RFC 7323, 4.3). The delay of the loop that this shows is kept for the next ones.
func (d *Direction) informed(s *Segment, at int64) {
	if d.waiting.n > 0 && s.Options&HasTimestamps != 0 && d.echoes() {
		if s.TSEcr != d.echoed || d.echoedAt == 0 {
			d.echoed = s.TSEcr
			d.echoedAt = at
		}
		patience := second + 4*d.rtt.delay()
		if at-d.echoedAt > 50e6+4*d.RTTMin { // an echo that does not change shows nothing
			patience = 0
			d.lag = 0
		}
		for d.waiting.n > 0 {
			e := d.waiting.first()
			due := e.due + d.lag
			switch newer := int32(e.tsval - s.TSEcr); {
			case newer == 0 && e.timer > 0: // it came after a silence, so no other has its timestamp
				due = min(due, at)
			case newer > 0 && due <= at && at-e.due < patience:
				d.lag = at + 1 - e.due
				d.run(at)
				return
			case newer < 0 && due > at:
				d.lag = max(at-e.due, -d.rtt.delay()/2)
				due = at
			case due > at:
				d.run(at)
				return
			}
			d.run(due)
			d.arrive(d.waiting.pop())
		}
	}
	d.advance(at)
}

// proven delivers the acknowledgements that the sender must have received before it sent data up to position to.
// Without them the receive window or the congestion window had no room for this data. The congestion window grows by at
// most the acknowledged bytes (RFC 5681, 3.1). The round trip between tap and sender is then at most the time since the
// tap saw them.
func (d *Direction) proven(to, at int64) {
	for i := range d.waiting.n {
		e := &d.waiting.ring[(d.waiting.head+i)&(len(d.waiting.ring)-1)]
		if !d.allows(e.ack, e.ack+int64(e.window)<<d.Scale, to) {
			continue
		}
		took := max(at-e.seen, 1)
		d.run(at)
		for range i + 1 {
			d.arrive(d.waiting.pop())
		}
		d.rtt.noLonger(took, d.echoes())
		return
	}
}

// allows reports whether a sender with una acknowledged bytes and a window that ends at edge may have sent up to
// position to. A sender that once exceeded every window is not bound by edge.
func (d *Direction) allows(una, edge, to int64) bool {
	return (!d.ScaleKnown || d.Beyond > 0 || to <= edge) && (d.initial == 0 || una > 1<<20 || to <= d.initial+2*una)
}

// arrive applies an acknowledgement that reaches the sender.
func (d *Direction) arrive(e *ackEvent) {
	if e.ack < d.una {
		return // overtaken
	}
	d.window = int64(e.window) << d.Scale
	d.edge = e.ack + d.window
	if d.Spacing != nil && e.ack > d.una {
		d.Spacing.released = max(e.seen, e.due)
	}
	d.WindowMax = max(d.WindowMax, d.window)
	d.cur.window(d.window)
	if e.ack > d.una {
		d.lastDelay = 0
		if waited := d.at - d.lastSent; e.pure && e.ack >= d.high && d.RTTMin > 0 &&
			(d.state == Busy || d.state == AppLimited || d.state == Full) && waited >= d.RTTMin+minDelayedAck {
			d.waitedAt = d.at
			d.waitedFor = waited
			d.waitedIn = d.state
			d.timerFor = e.timer
			d.timerBy = e.basis
			if alone := min(waited-d.RTTMin, d.at-d.unaAt); alone >= minDelayedAck {
				d.lastDelay = alone
			}
		}
		d.una = e.ack
		d.unaAt = d.at
		d.passed(e.ack)
	}
	if e.gap && !d.recovering {
		d.recover(false)
	}
	d.settle()
}

// stalled books that nothing got through since d.owed, if that was long and in spite of
// repetitions.
func (d *Direction) stalled(at int64) bool {
	took := at - d.owed
	if took < max(second, 4*d.RTTMin) || d.Retransmitted == d.owedSent {
		return false
	}
	d.Stalled += took
	if took > d.StallTo-d.StallFrom {
		d.StallFrom = d.owed
		d.StallTo = at
	}
	return true
}

// beyond is an acknowledgement of bytes that the tap never saw: the capture lost them.
func (d *Direction) beyond(ack, at int64) {
	if ack == d.high+1 && d.conn.sides[d.me].fin {
		return
	}
	d.advance(at)
	d.Unseen += ack - d.high
	d.cur.Unseen += ack - d.high
	d.cur.Sent += ack - d.high
	d.round.sent += ack - d.high
	d.high = ack
}

// Shown returns how many bytes of payload the packets or the acknowledgements show, repetitions included. Data after
// the last acknowledgement counts where it was captured.
func (d *Direction) Shown() int64 { return max(d.Captured, d.Acked, d.Bytes-d.Missing-d.Wanted) }
