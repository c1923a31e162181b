package turns

// repair is the last retransmission, to be taken back where it turns out that it was not needed.
type repair struct {
	at, from, to  int64
	cause         Cause
	stage         Stage
	waited        int64
	cursor, end   int64
	stalled, open bool
}

// rtt is the whole path's usual round trip without the timers of delayed acknowledgements, 0 not known.
func (t *Tracker) rtt() int64 {
	c := &t.client.loop
	s := &t.server.loop
	return c.least + c.excess + s.least + s.excess
}

// jitter is twice the mean delay above the least.
func (t *Tracker) jitter() int64 { return 2 * (t.client.loop.excess + t.server.loop.excess) }

// minRTO is Linux's and Windows' least retransmission timeout, not RFC 6298's second.
const minRTO = 200_000_000

// timeout is the retransmission timeout in force (RFC 6298, with minRTO).
func (t *Tracker) timeout() int64 {
	return t.rtt() + max(minRTO, 2*t.jitter())
}

// byTimer reports whether a wait may be for the retransmission timer of a single segment: srtt +
// 200 ms, up to the timer after one sample (RFC 6298, 2.2) or that of a tail-loss probe (RFC 8985,
// 7.2).
func (t *Tracker) byTimer(waited int64) bool {
	rtt := t.rtt()
	return waited >= t.timeout()*9/10 && waited <= max(3*rtt, 2*rtt+minRTO)*11/10
}

// lostBefore reports whether the identification left one or two packets out before the last one. In
// a connection with few packets it may be a counter for the whole host, so that alone is no
// evidence.
func (n *ids) lostBefore() bool { return n.gap == 1 || n.gap == 2 }

// connected gives the time between the handshake and the first request d to a cause.
func (t *Tracker) connected(d *data) {
	waited := d.At - t.cursor
	switch {
	case !t.byTimer(waited) || t.client.ids.gap == 0:
		t.turn.add(Request, Client, waited)
	case t.client.ids.lostBefore():
		t.turn.LostBeforeTheTap = true
		t.waited(Request, TailLossProbe, waited, d)
	default:
		t.turn.add(Request, Unknown, waited)
	}
}

// leastStall is the shortest silence that is a stall.
func (t *Tracker) leastStall() int64 {
	const floor = 5_000_000
	return max(min(2*t.rtt(), t.timeout()), 2*t.jitter(), floor)
}

// waited gives the time until d to a cause, and notes a stall where it was long enough for one.
func (t *Tracker) waited(s Stage, c Cause, waited int64, d *data) {
	t.turn.add(s, c, waited)
	if c.stalls() && waited >= t.leastStall() {
		t.turn.stalls++
		t.note(c, d.FromClient, waited, 1)
	}
}

// tolerance is how much later than the loop through a sender its reaction to an acknowledgement can come.
func (t *Tracker) tolerance(through int64) int64 {
	const floor = 1_000_000
	return max(through/4, t.jitter(), floor)
}

// continued gives the time since the last segment of x's message to a cause: d has new data.
func (t *Tracker) continued(x, y *stream, d *data, s Stage) {
	silent := d.At - t.cursor
	t.cursor = d.At
	if silent < t.leastWait() && d.lost == 0 {
		t.turn.add(s, Wire, silent)
		return
	}
	through := y.loop.least // from the tap through x and back: y's data is acknowledged by x
	prompted := x.risen > 0 && x.risen+through > d.At-silent && d.At-(x.risen+through) <= t.tolerance(through) &&
		d.At >= x.risen
	allKnown := x.acked >= x.high && x.risen+through <= d.At+through/8+clockError
	small := int64(d.Payload) < x.segment
	switch {
	case d.lost > 0 && silent >= t.leastStall():
		t.turn.LostBeforeTheTap = true
		t.waited(s, t.timerFor(d.lost > 1), silent, d)
	case silent < t.leastWait():
		t.turn.add(s, Wire, silent)
	case prompted && x.wasTight && x.wasShrunk && x.probed > 0:
		t.waited(s, WindowProbe, silent, d)
	case prompted && x.wasTight && x.wasShrunk:
		t.turn.add(s, ZeroWindow, silent)
	case prompted && x.wasTight:
		t.turn.add(s, ReceiveWindow, silent)
	case prompted && allKnown && (x.lastShort || small) && x.risen-x.lastAt-x.loop.least >= minDelayedAck:
		delay := x.risen - x.lastAt - x.loop.least
		t.waited(s, DelayedAck, delay, d)
		t.turn.add(s, Propagation, silent-delay)
	case prompted && small && allKnown:
		t.waited(s, Nagle, silent, d)
	case silent <= maxSpacing*x.spacing:
		t.turn.add(s, Wire, silent)
	case prompted && !(x.lastShort && allKnown):
		t.turn.add(s, Rounds, silent)
	case allKnown && !x.pushed && !x.lastShort && silent >= t.leastStall():
		// The write went on, so the next segment was owed: it was sent and lost before the tap.
		t.turn.LostBeforeTheTap = true
		t.waited(s, t.timerFor(false), silent, d)
	case allKnown || x.lastShort:
		t.paused(s, silent)
	case silent < t.leastStall():
		t.turn.add(s, Wire, silent)
	default:
		t.turn.add(s, Unknown, silent)
	}
}

// maxSpacing is how many times the usual spacing of a message's segments the line can hold one back.
const maxSpacing = 4

// clockError is how far two stamps of one capture can be off, nanoseconds.
const clockError = 20_000

// MinWait is the shortest time between two segments, in nanoseconds, that may be a wait.
const MinWait = 1_000_000

// leastWait is the shortest time between two segments that is more than the line's.
func (t *Tracker) leastWait() int64 { return max(t.rtt()/4, MinWait) }

// minDelayedAck is the shortest timer of a delayed acknowledgement in use: Linux 40 ms, others 20 to 200 ms.
const minDelayedAck = 18_000_000

// paused gives time to the program that sends the message.
func (t *Tracker) paused(s Stage, silent int64) {
	if s == Request {
		t.turn.add(Request, Client, silent)
		return
	}
	t.turn.add(Thinking, Server, silent)
}

// repaired gives the time since the last segment of x's message to the retransmission d.
func (t *Tracker) repaired(x, y *stream, d *data, s Stage, filled bool) {
	silent := d.At - t.cursor
	cause := t.causeOf(x, y, d, silent)
	if cause != FastRetransmit {
		x.timeouts++
	}
	if x.window == 0 || x.edge <= d.from || d.Payload == 1 && x.edge-d.from <= 1 {
		x.probed = d.At
		return // a window probe delivers nothing
	}
	x.loop.spoil()
	x.repair = repair{at: d.At, from: d.from, to: d.to, cause: cause, stage: s, waited: silent, cursor: t.cursor,
		end: t.end, stalled: silent >= t.leastStall(), open: true}
	t.turn.LostBeforeTheTap = t.turn.LostBeforeTheTap || filled
	if cause == FastRetransmit {
		// Until the last duplicate acknowledgement was sent, the line still delivered earlier segments.
		busy := min(max(x.dupAt-x.loop.least-(d.At-silent), 0), silent)
		t.turn.add(s, Wire, busy)
		silent -= busy
		x.repair.waited = silent
		x.repair.stalled = silent >= t.leastStall()
	}
	t.waited(s, cause, silent, d)
	t.cursor = d.At
}

// causeOf distinguishes retransmissions by timer from those that acknowledgements caused.
func (t *Tracker) causeOf(x, y *stream, d *data, silent int64) Cause {
	if d.Repair != 0 {
		return d.Repair
	}
	through := y.loop.least
	reordering := t.rtt() / 4 // RFC 8985's window
	if x.dupAcks > 0 && d.At-(x.dupAt+through) <= t.tolerance(through)+reordering {
		return FastRetransmit
	}
	switch {
	case x.timeouts > 0:
		return Timeout
	case d.to >= x.high:
		return TailLossProbe
	}
	return Timeout
}

// timerFor returns which timer ended a wait whose first transmission never reached the tap. A single segment's probe
// waits for the least retransmission timeout as well, so only a further loss makes it a Timeout.
func (t *Tracker) timerFor(again bool) Cause {
	if again {
		return Timeout
	}
	return TailLossProbe
}

// answered gives the time between the last needed segment of the request and the first segment of the response.
func (t *Tracker) answered(d *data, filled bool) {
	gap := d.At - t.cursor
	t.cursor = d.At
	there := min(gap, t.client.loop.least)
	t.turn.add(Request, Propagation, there)
	rest := gap - there
	queued := min(rest, d.late)
	t.turn.add(Response, Queue, queued)
	rest -= queued
	first := t.thinking.n == 0 && t.server.ids.lostBefore() && t.byTimer(rest)
	if filled || d.lost > 0 || first {
		usual := min(t.thinking.median(), rest)
		t.turn.LostBeforeTheTap = true
		t.turn.add(Thinking, Server, usual)
		cause := t.timerFor(d.lost > 1)
		if filled && t.server.dupAcks > 0 {
			cause = FastRetransmit
		}
		t.waited(Response, cause, rest-usual, d)
		return
	}
	if t.turn.stalls == 0 && t.turn.request <= maxMessage {
		t.thinking.add(rest)
	}
	t.turn.add(Thinking, Server, rest)
}

// undoNeedless takes back a retransmission of x that this acknowledgement shows to be needless: it came too early to
// be caused by it, or says that the data came twice.
func (t *Tracker) undoNeedless(p *Packet, x *stream) {
	r := &x.repair
	if !r.open || !x.begun || p.Flags&SYN != 0 {
		return
	}
	pos := x.position(p.Ack)
	early := x.loop.least > 0 && p.At-r.at < x.loop.least*8/10
	if pos < r.to || !early && !p.DSACK {
		return
	}
	r.open = false
	t.Needless++
	if t.cursor != r.at || t.phase == idle {
		return
	}
	t.turn.Time[r.stage][r.cause] -= r.waited
	if r.stalled {
		t.turn.stalls--
		t.note(r.cause, !p.FromClient, r.waited, -1)
	}
	t.cursor = r.cursor
	if r.stage == Response {
		t.end = r.end
	}
}

// typical is the median of a program's last undisturbed times: the server's to think, the client's
// between turns.
type typical struct {
	last [31]int64
	n    int
}

func (m *typical) add(d int64) {
	m.last[m.n%len(m.last)] = d
	m.n++
}

// median returns 0 where none is known.
func (m *typical) median() int64 {
	n := min(m.n, len(m.last))
	if n == 0 {
		return 0
	}
	sorted := m.last
	s := sorted[:n]
	for i := range s {
		for j := i; j > 0 && s[j] < s[j-1]; j-- {
			s[j], s[j-1] = s[j-1], s[j]
		}
	}
	return s[n/2]
}
