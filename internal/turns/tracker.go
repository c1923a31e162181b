package turns

// From the segments of one connection to its turns. The functions of a step are in the order of the steps.
//
//  1. Tracker.Add takes a segment: handshake, acknowledgement, payload.
//  2. Tracker.clientData begins a turn with new data of the client, or continues its request; Tracker.serverData
//     ends the wait for the server, or continues the response.
//  3. continued and repaired give the time since the message's last segment to a cause; answered gives the time
//     between request and response (attribute.go).
//  4. Tracker.EndTurn closes a turn when the next begins and hands it to the Summary (summary.go).

// Tracker follows one connection. The zero value is ready.
type Tracker struct {
	client, server stream

	phase          phase
	bulkFromClient bool
	bulk           int64 // payload since the last change of direction
	turn           turn
	cursor         int64 // the turn's time is attributed until here
	end            int64 // of the last segment of the response that was needed

	connecting      connecting
	lastEnd         int64 // of the turn before
	thinking, pause typical

	Summary
}

// turn is the one that is open.
type turn struct {
	Turn
	request, response int64 // payload
	stalls            int
}

// Reset makes t ready for another connection and keeps at most maxKept of its turns.
func (t *Tracker) Reset(maxKept int) {
	*t = Tracker{Summary: Summary{MaxKept: maxKept, kept: t.kept[:0], slowest: t.slowest[:0]}}
}

// AtEnd says that the tap is at an end's host: no time passes through that end. roundTrip is the least one that its
// kernel knows; 0: not known.
func (t *Tracker) AtEnd(isClient bool, roundTrip int64) {
	here := &t.client.loop
	there := &t.server.loop
	if isClient {
		here, there = there, here
	}
	here.least = 1
	here.excess = 0
	if roundTrip > 0 && (there.least == 0 || roundTrip < there.least) {
		there.least = roundTrip
	}
}

// FullSegment says which payload a full segment of this end has, as its system knows it; 0: not known. Segments of the
// other end seldom have more, so longer ones are merged.
func (t *Tracker) FullSegment(payload int64) {
	for _, x := range []*stream{&t.client, &t.server} {
		if payload > 0 {
			x.segment = payload
			x.segmentKnown = true
		}
	}
}

type phase uint8

const (
	idle phase = iota // no turn is open
	requesting
	responding
)

// maxMessage is the payload after which a message is a bulk transfer: the verdict of its direction explains its pace.
const maxMessage = 400 << 10

// MaxUnskipped is payload of one message after which Skips surely returns true, unless a third of it was retransmitted.
const MaxUnskipped = maxMessage * 3 / 2

// Skips reports whether a segment is part of a bulk transfer that goes by. Such a segment need not
// be added.
func (t *Tracker) Skips(fromClient bool, payload uint32) bool {
	return t.bulk > maxMessage && (payload == 0 || fromClient == t.bulkFromClient)
}

// Add takes the next segment.
func (t *Tracker) Add(p *Packet) {
	x := &t.server
	y := &t.client
	if p.FromClient {
		x, y = y, x
	}
	if p.Flags&SYN != 0 {
		t.handshake(p, x, y)
		if p.FromClient && p.Payload > 0 && !t.connecting.complete { // TCP Fast Open (RFC 7413)
			t.clientData(&data{Packet: p, to: int64(p.Payload)})
		}
		return
	}
	if t.bulk > maxMessage {
		if t.Skips(p.FromClient, p.Payload) {
			return
		}
		x.restart(p.Seq)
		y.restart(p.Ack)
	}
	if !x.begun {
		x.begin(p.Seq)
	}
	if h := &t.connecting; h.sawSYNACK && !h.complete && p.FromClient {
		t.open(p)
	}
	pos := x.position(p.Seq)
	if p.Flags&RST == 0 && pos > x.high {
		x.prove(pos)
	}
	if p.Flags&ACK != 0 {
		t.undoNeedless(p, y)
		y.acknowledge(p)
	}
	x.missing += x.ids.missing(p, x.packets(int64(p.Payload)))
	if p.Payload > 0 {
		d := data{p, pos, pos + int64(p.Payload), x.missing, x.late.of(p)}
		x.missing = 0
		if p.FromClient {
			t.clientData(&d)
		} else {
			t.serverData(&d)
		}
	}
}

// data is a segment with payload.
type data struct {
	*Packet
	from, to int64
	lost     int   // packets of the sender since its data before that never reached the tap
	late     int64 // delay above the least
}

func (t *Tracker) clientData(d *data) {
	x := &t.client
	filled := x.fills(d.from, d.to)
	isNew := d.to > x.high || filled
	switch {
	case t.phase == requesting && filled:
		t.repaired(x, &t.server, d, Request, true)
	case t.phase == requesting && isNew:
		t.continued(x, &t.server, d, Request)
	case t.phase == requesting && d.to > x.acked:
		t.repaired(x, &t.server, d, Request, false)
	case isNew:
		if t.phase == responding {
			if t.server.position(d.Ack) < t.server.high {
				t.Overlapping++
			}
			t.EndTurn()
		}
		t.begin(d, filled)
	}
	if isNew {
		t.turn.request += int64(d.Payload)
		t.bulk += int64(d.Payload)
		x.sent(d)
	}
}

// sent notes a segment with new data.
func (x *stream) sent(d *data) {
	if d.from > x.high {
		x.prove(d.from)
	}
	x.high = max(x.high, d.to)
	if x.repair.at == d.At && x.repair.open {
		return // it fills a hole
	}
	if !x.lastShort && !x.pushed && x.lastAt > 0 {
		x.spaced(d.At - x.lastAt)
	}
	if !x.segmentKnown && x.segment < int64(d.Payload) && d.Payload <= maxSegment {
		x.segment = int64(d.Payload)
	}
	x.lastAt = d.At
	x.lastShort = int64(d.Payload) != x.segment && int64(d.Payload) != x.packets(int64(d.Payload))*x.segment
	x.pushed = d.Flags&PSH != 0
	x.loop.sent(d.to, d.At)
	x.repair = repair{}
	if x.edge-x.high >= x.segment {
		x.probed = 0
	}
}

// maxSegment is the largest payload of one packet; larger ones are merged ones.
const maxSegment = 9_000

// begin begins a turn with the client's first new data; lost: which was sent before and never
// reached the tap.
func (t *Tracker) begin(d *data, lost bool) {
	t.turn = turn{Turn: Turn{Start: d.At, First: d.Number}}
	pause := d.At - t.lastEnd
	h := &t.connecting
	switch {
	case h.sawSYN && !h.counted && d.At-t.cursor <= maxAfterConnect:
		t.turn.Start = h.start
		t.turn.First = h.first
		t.turn.stalls = h.stalls
		t.turn.add(Connect, Propagation, h.roundTrips)
		t.turn.add(Connect, LostSYN, h.waited)
		t.connected(d)
	case t.lastEnd > 0 && (lost || d.lost > 0 && t.byTimer(pause-t.pause.median())):
		// The client paused as usual, and then its timer ran.
		waited := min(max(pause-t.pause.median(), 0), t.timeout())
		t.turn.LostBeforeTheTap = true
		t.turn.Start -= waited
		t.waited(Request, TailLossProbe, waited, d)
	case t.lastEnd > 0:
		t.pause.add(pause)
	}
	h.counted = true
	t.turn.add(Request, Queue, d.late)
	t.turn.Start -= d.late
	t.phase = requesting
	t.cursor = d.At
	t.bulk = 0
	t.bulkFromClient = true
	t.client.probed = 0
	t.client.repair = repair{}
	t.server.repair = repair{}
}

func (t *Tracker) serverData(d *data) {
	x := &t.server
	filled := x.fills(d.from, d.to)
	isNew := d.to > x.high || filled
	switch {
	case t.phase == idle:
		if isNew {
			t.Pushes++
			t.bulkFromClient = false
			t.bulk += int64(d.Payload)
			x.sent(d)
		}
		return
	case t.phase == requesting && !isNew:
		return // of the turn before
	case t.phase == requesting:
		x.acks.begin(d.from)
		t.answered(d, filled)
		t.phase = responding
		t.bulk = 0
		t.bulkFromClient = false
	case isNew && !filled:
		t.continued(x, &t.client, d, Response)
	case d.to > x.acked:
		t.repaired(x, &t.client, d, Response, filled)
	default:
		return
	}
	if isNew {
		t.turn.response += int64(d.Payload)
		x.sent(d)
	}
	t.bulk += int64(d.Payload)
	t.end = d.At
	t.turn.Last = d.Number
}

// EndTurn closes the turn that has a response: nothing of the response is missing.
func (t *Tracker) EndTurn() {
	if t.phase != responding {
		return
	}
	t.phase = idle
	t.turn.add(Response, Propagation, t.server.loop.least)
	t.turn.add(Response, Wire, t.drained())
	t.turn.Duration = t.turn.Time.Sum()
	t.lastEnd = t.end
	bulk := max(t.turn.request, t.turn.response) > maxMessage
	t.take(&t.turn.Turn, bulk)
	if bulk {
		t.lastEnd = 0 // not seen
	}
	t.bulk = 0
}

// drained returns how much later than by the empty path the last segment of the response reached the client: a line
// beyond the tap first delivers the data queued before it. The last acknowledgement may have waited for a timer, the
// one before it did not.
func (t *Tracker) drained() int64 {
	x := &t.server
	all := x.risen - t.end - x.loop.least
	if x.acked < x.high || all <= t.jitter() {
		return 0
	}
	acks := &x.acks
	if acks.last.pos-acks.previous.pos >= 2*x.segment {
		return all
	}
	arrived := acks.previous.at
	if acks.previous.pos > acks.first.pos {
		rest := float64(x.high-acks.previous.pos) / float64(acks.previous.pos-acks.first.pos)
		arrived += int64(rest * float64(acks.previous.at-acks.first.at))
	}
	return min(max(arrived-t.end-x.loop.least, 0), all)
}

// Finish closes the last turn.
func (t *Tracker) Finish() {
	if t.phase == requesting {
		t.Unanswered++
	}
	t.EndTurn()
	t.phase = idle
}

func (t *Turn) add(s Stage, c Cause, d int64) {
	t.Time[s][c] += max(d, 0)
}
