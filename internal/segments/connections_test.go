package segments

import (
	"encoding/binary"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/turns"
)

const ms = 1_000_000 // ns

// host makes the records of one connection's segments at one end.
type host struct {
	all            connections
	socket, cookie uint64
	syn            int32  // of arrivals
	minRTT         uint32 // µs
	sent, received uint32
	id             uint16 // of the peer's packets
}

// put adds a segment. Those that arrive have the cookie.
func (h *host) put(at int64, leaves bool, flags turns.Flags, payload uint32, change func([]byte)) {
	b := make([]byte, recordSize)
	binary.NativeEndian.PutUint64(b[recTime:], uint64(at))
	binary.NativeEndian.PutUint64(b[recSocket:], h.socket)
	binary.NativeEndian.PutUint32(b[recLength:], 32+payload)
	binary.BigEndian.PutUint16(b[recProtocol:], typeIPv4)
	tcp := b[recHeader:]
	seq := &h.received
	ack := &h.sent
	b[recScales] = 7 | 3<<4
	if leaves {
		b[recLeaves] = 1
		seq, ack = ack, seq
		binary.NativeEndian.PutUint32(b[recSYN:], 1<<32-1)
	} else {
		h.id++
		binary.NativeEndian.PutUint32(b[recMinRTT:], h.minRTT)
		binary.NativeEndian.PutUint64(b[recCookie:], h.cookie)
		binary.NativeEndian.PutUint32(b[recSYN:], uint32(h.syn))
		b[recBefore] = plainIPv4
		binary.BigEndian.PutUint16(b[recBefore+4:], h.id)
	}
	binary.BigEndian.PutUint32(tcp[4:], *seq)
	binary.BigEndian.PutUint32(tcp[8:], *ack)
	tcp[12] = 8 << 4
	tcp[13] = byte(flags)
	binary.BigEndian.PutUint16(tcp[14:], 500)
	copy(tcp[20:], []byte{1, 1, optionTimestamps, 10})
	binary.BigEndian.PutUint32(tcp[24:], uint32(at/ms))
	*seq += payload
	if flags&turns.SYN != 0 {
		*seq++
	}
	if change != nil {
		change(b)
	}
	var s segment
	if decode(b, &s) {
		h.all.add(&s)
	}
}

// turn is a request and a response at a client, trip apart.
func (h *host) turn(at, trip int64, isClient bool) {
	h.put(at, isClient, turns.ACK|turns.PSH, 200, nil)
	h.put(at+trip, !isClient, turns.ACK|turns.PSH, 400, nil)
}

func newHost(socket uint64) *host {
	return &host{all: newConnections(), socket: socket, cookie: socket + 1000, minRTT: 6000}
}

func TestConnections_LearnTheClient(t *testing.T) {
	for name, c := range map[string]struct {
		begin    func(h *host)
		syn      int32
		isClient bool
		want     int64 // turns of ten; the last one is open
		connect  bool
	}{
		"a new connection of this host": {begin: func(h *host) {
			h.put(0, true, turns.SYN, 0, nil)
			h.received++ // the SYN-ACK is not seen
			h.put(6*ms, true, turns.ACK, 0, nil)
		}, syn: 1, isClient: true, want: 9, connect: true},
		"this host sent the SYN before": {begin: func(*host) {}, syn: 1, isClient: true, want: 8}, // its first request
		"a peer sent the SYN":           {begin: func(*host) {}, syn: 0, isClient: false, want: 9},
		"neither is known":              {begin: func(*host) {}, syn: 7, isClient: true, want: 0},
		"a response was on its way then": {begin: func(h *host) { h.put(0, false, turns.ACK, 400, nil) }, syn: 1,
			isClient: true, want: 9},
	} {
		t.Run(name, func(t *testing.T) {
			h := newHost(1)
			h.syn = c.syn
			c.begin(h)
			for i := range int64(10) {
				h.turn((i+1)*20*ms, 6*ms, c.isClient)
			}
			r := h.all.take()[h.cookie]
			if c.want == 0 {
				if r != nil {
					t.Fatalf("%+v", r.Counts)
				}
				return
			}
			if r == nil || r.Client != c.isClient || r.Count != c.want {
				t.Fatalf("%+v", r)
			}
			p := turns.ProfileOf(&r.Summary)
			if c.isClient && p.P50/1000 != 6*ms/1000 {
				t.Errorf("median %d", p.P50)
			}
			if connected := p.Longest[0].Time.Of(turns.Propagation) > 7*ms; connected != c.connect {
				t.Errorf("longest %v", p.Longest[0].Time)
			}
			if again := h.all.take(); len(again) > 0 {
				t.Errorf("taken twice: %v", again)
			}
		})
	}
}

// TestConnections_RetransmissionHasTheKernelsReason retransmits a request in each state of congestion control.
func TestConnections_RetransmissionHasTheKernelsReason(t *testing.T) {
	for state, want := range map[byte]turns.Cause{0: turns.TailLossProbe, 1: turns.TailLossProbe, 3: turns.FastRetransmit,
		4: turns.Timeout} {
		h := newHost(1)
		h.syn = 1
		h.put(0, false, turns.ACK, 0, nil)
		for i := range int64(20) {
			at := (i + 1) * 500 * ms
			if i == 10 {
				h.put(at, true, turns.ACK|turns.PSH, 200, nil)
				h.sent -= 200
				h.put(at+220*ms, true, turns.ACK|turns.PSH, 200, func(b []byte) { b[recState] = state })
				h.put(at+226*ms, false, turns.ACK|turns.PSH, 400, nil)
				continue
			}
			h.turn(at, 6*ms, true)
		}
		r := h.all.take()[h.cookie]
		if r == nil || r.Stalled[want][1].Count != 1 || r.Stalled[want][1].Time != 220*ms {
			t.Errorf("state %d: %+v", state, r != nil)
		}
	}
}

// TestConnections_AddressIsUsedAgain gives the socket of a closed connection to another one.
func TestConnections_AddressIsUsedAgain(t *testing.T) {
	h := newHost(1)
	for i := range int64(4) { // accepted ones
		h.cookie = 100 + uint64(i)
		for j := range int64(6) {
			h.turn((10*i+j)*20*ms, 6*ms, false)
		}
	}
	for i := range int64(3) { // begun ones: the cookie comes late
		h.syn = 1
		h.cookie = 200 + uint64(i)
		at := (100 + 10*i) * 20 * ms
		h.put(at, true, turns.SYN, 0, nil)
		h.received++
		h.put(at+6*ms, true, turns.ACK, 0, nil)
		for j := range int64(6) {
			h.turn(at+(j+1)*20*ms, 6*ms, true)
		}
	}
	found := h.all.take()
	if len(found) != 7 {
		t.Fatalf("%d connections", len(found))
	}
	for cookie, r := range found {
		turns := int64(6)
		if cookie == 202 {
			turns = 5 // the last one is open
		}
		if r.Count != turns || r.Client != (cookie >= 200) {
			t.Errorf("%d: %+v", cookie, r.Counts)
		}
	}
}

// TestConnections_OneRequestEach closes each connection after its request, from either end. In the last period a
// connection sends a request, closes its side and has no response yet.
func TestConnections_OneRequestEach(t *testing.T) {
	for _, isClient := range []bool{true, false} {
		for _, clientCloses := range []bool{true, false} {
			h := newHost(0)
			h.syn = 1
			if !isClient {
				h.syn = 0
			}
			for i := range int64(3 * maxConnections) {
				h.socket = uint64(i + 1)
				h.cookie = h.socket + 1000
				h.put(100*i*ms, false, turns.ACK, 0, nil)
				h.turn((100*i+1)*ms, 33*ms, isClient)
				h.put((100*i+40)*ms, isClient == clientCloses, turns.ACK|turns.FIN, 0, nil)
				if i%1000 != 999 {
					continue
				}
				taken := h.all.take()
				for cookie, r := range taken {
					if r.Count != 1 || r.Unanswered != 0 || r.Client != isClient {
						t.Fatalf("%d: %+v", cookie, r.Counts)
					}
				}
				if len(taken) != 1000 || len(h.all.of) > 1000 || h.all.forgotten > 0 {
					t.Fatalf("%d connections, %d in memory, %d forgotten", len(taken), len(h.all.of), h.all.forgotten)
				}
			}
			h.socket = 1 << 40
			h.cookie = h.socket
			h.put(1e15, false, turns.ACK, 0, nil)
			h.put(1e15+1, isClient, turns.ACK, 200, nil)
			h.put(1e15+2, isClient, turns.ACK|turns.FIN, 0, nil)
			if r := h.all.take()[h.cookie]; r != nil {
				t.Errorf("without a response: %+v", r.Counts)
			}
			h.put(1e15+33*ms, !isClient, turns.ACK|turns.PSH, 400, nil)
			if r := h.all.take()[h.cookie]; r == nil || r.Count != 1 {
				t.Errorf("after half-close: %+v", r)
			}
		}
	}
}

func TestConnections_MemoryIsBounded(t *testing.T) {
	h := newHost(1)
	for i := range uint64(2 * maxConnections) {
		h.socket = i
		h.cookie = i + 1
		h.put(int64(i)*1000, false, turns.ACK, 200, nil)
	}
	if len(h.all.of) != maxConnections || h.all.forgotten != maxConnections {
		t.Errorf("%d connections, %d forgotten", len(h.all.of), h.all.forgotten)
	}
	h.socket = 1 << 40
	h.put(1e12, false, turns.ACK, 200, nil) // much later
	if len(h.all.of) != 1 {
		t.Errorf("%d connections", len(h.all.of))
	}
}

// TestDecode_Options reads options of all kinds, also cut ones.
func TestDecode_Options(t *testing.T) {
	h := newHost(1)
	for name, c := range map[string]struct {
		options []byte
		sacks   uint8
		dsack   bool
		tsval   uint32
	}{
		"timestamps": {[]byte{1, 1, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6}, 0, false, 5},
		"SACK":       {[]byte{1, 1, 5, 10, 0, 0, 0, 90, 0, 0, 0, 99}, 1, false, 0},
		"DSACK":      {[]byte{1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 1}, 1, true, 0},
		"length 0":   {[]byte{8, 0, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6}, 0, false, 0},
		"cut":        {[]byte{1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 8, 10}, 0, false, 0},
		"end":        {[]byte{0, 8, 10, 0, 0, 0, 5, 0, 0, 0, 6, 0}, 0, false, 0},
	} {
		h.sent = 1 // the acknowledged position
		h.put(0, false, turns.ACK, 0, func(b []byte) {
			copy(b[recHeader+20:recHeader+32], c.options)
			var s segment
			if !decode(b, &s) || s.SACK != c.sacks || s.DSACK != c.dsack || s.TSVal != c.tsval {
				t.Errorf("%s: %+v", name, s)
			}
			b[recHeader+12] = 2 << 4
			if decode(b, &s) || decode(b[:recordSize-1], &s) {
				t.Errorf("%s: a short header was accepted", name)
			}
		})
	}
}

// BenchmarkConnections_Turn takes the records of a turn at a client: a request, and a response that acknowledges it.
func BenchmarkConnections_Turn(b *testing.B) {
	h := newHost(1)
	h.syn = 1
	h.put(0, false, turns.ACK, 0, nil)
	record := make([][]byte, 2)
	h.put(0, true, turns.ACK, 200, func(b []byte) { record[0] = append([]byte{}, b...) })
	h.put(0, false, turns.ACK, 400, func(b []byte) { record[1] = append([]byte{}, b...) })
	var s segment
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		for j, r := range record {
			binary.NativeEndian.PutUint64(r[recTime:], uint64(1000*i+500*j))
			seq := uint32(i)*uint32(200+200*j) + 1
			binary.BigEndian.PutUint32(r[recHeader+4:], seq)
			binary.BigEndian.PutUint32(r[recHeader+8:], uint32(i)*uint32(400-200*j)+1+uint32(200*j))
			if decode(r, &s) {
				h.all.add(&s)
			}
		}
	}
	b.ReportMetric(float64(h.all.take()[h.cookie].Count)/float64(b.N), "turns/op")
}

// TestPace_LeavesOutHalfOfTheConnections counts 100,000 segments a second, then 50,000.
func TestPace_LeavesOutHalfOfTheConnections(t *testing.T) {
	p := pace{}
	changes := 0
	for i := range int64(100_000) {
		if p.tooFast(i * 10_000) {
			changes++
		}
	}
	for i := range int64(100_000) {
		if p.tooFast(2e9 + i*20_000) {
			changes++
		}
	}
	if p.mask != 1 || changes != 1 {
		t.Errorf("mask %d after %d changes", p.mask, changes)
	}
}
