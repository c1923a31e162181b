package turns

// connecting is the handshake. Its time belongs to the first turn.
type connecting struct {
	start, first       int64 // of the first SYN, as in Turn
	syn, synAck        int64 // times of the last ones
	sawSYN, sawSYNACK  bool
	synAgain           [2]bool // [0] the SYN-ACK, [1] the SYN
	complete, counted  bool
	stalls             int
	roundTrips, waited int64 // time of the path, and for lost SYNs and SYN-ACKs
}

func (t *Tracker) handshake(p *Packet, x, y *stream) {
	const options = 40 // bytes that options can take of a segment
	y.segment = max(y.segment, p.MSS-options)
	h := &t.connecting
	switch {
	case p.FromClient && !h.complete:
		if h.sawSYN {
			t.waitedForSYN(p)
		} else {
			h.start = p.At
			h.first = p.Number
		}
		h.syn = p.At
		h.sawSYN = true
		t.client.begin(p.Seq + 1)
		t.forgetSYNData()
		t.cursor = p.At
	case h.complete || !h.sawSYN:
		if !x.begun {
			x.begin(p.Seq + 1)
		}
	default:
		if h.sawSYNACK {
			t.waitedForSYN(p)
		} else {
			h.roundTrips += max(p.At-h.syn, 0)
			if !h.synAgain[1] {
				t.client.loop.sample(p.At - h.syn)
			}
		}
		if t.client.position(p.Ack) <= 0 { // the server did not take what the SYN carried
			t.forgetSYNData()
		}
		h.synAck = p.At
		h.sawSYNACK = true
		t.server.begin(p.Seq + 1)
	}
}

// waitedForSYN takes a repeated SYN or SYN-ACK.
func (t *Tracker) waitedForSYN(p *Packet) {
	h := &t.connecting
	waited := max(p.At-max(h.syn, h.synAck), 0)
	h.synAgain[sideIndex(p.FromClient)] = true
	h.waited += waited
	h.stalls++
	t.note(LostSYN, p.FromClient, waited, 1)
}

// open ends the handshake with the client's first segment after the SYN-ACK.
func (t *Tracker) open(p *Packet) {
	h := &t.connecting
	h.complete = true
	if !h.synAgain[0] {
		t.server.loop.sample(p.At - h.synAck)
	}
	h.roundTrips += max(p.At-h.synAck, 0)
	if t.phase == idle {
		t.cursor = p.At
	}
}

// forgetSYNData drops a request that a SYN carried and that will be sent once more.
func (t *Tracker) forgetSYNData() {
	t.phase = idle
	t.client.high = 0
	t.connecting.counted = false
}

// maxAfterConnect is how long after the handshake a request still belongs to it: a connection of a
// pool waits longer.
const maxAfterConnect = 1_000_000_000
