package socklist

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// record is one of the list's records: its length without the padding, its kind, and values at some offsets.
func record(size, kind int, words map[int]uint32) []byte {
	b := make([]byte, padded(uint32(size)))
	binary.LittleEndian.PutUint32(b, uint32(size))
	binary.LittleEndian.PutUint32(b[4:], uint32(kind))
	for at, word := range words {
		binary.LittleEndian.PutUint32(b[at:], word)
	}
	return b
}

func header() []byte { return record(headerSize, 1, nil) }

// connection is what macOS lists of one: lengths are those of xnu-11417.
func connection(state uint32, tcp map[int]uint32, unread, unacked uint32) []byte {
	address := record(104, kindAddress, nil)
	binary.BigEndian.PutUint16(address[16:], 443)
	binary.BigEndian.PutUint16(address[18:], 50000)
	address[44] = 1
	copy(address[60:], []byte{192, 0, 2, 7})
	copy(address[76:], []byte{198, 51, 100, 9})
	words := map[int]uint32{36: state, 96: 131072, 100: 14480, 132: 1448, 136: 40 << 5, 140: 5 << 4}
	for at, word := range tcp {
		words[at] = word
	}
	return slices.Concat(address, record(104, kindSocket, map[int]uint32{64: 501, 68: 4711, 76: 99}),
		record(32, kindReceive, map[int]uint32{8: unread, 12: 131072}),
		record(32, kindSend, map[int]uint32{8: unacked, 12: 146808}), record(136, 0x08, nil), record(204, kindTCP, words))
}

func all(t *testing.T, list []byte) (found []pcb) {
	t.Helper()
	must.Do(t, parse(list, func(p *pcb) { found = append(found, *p) }))
	return found
}

func TestAListIsRead(t *testing.T) {
	sending := map[int]uint32{48: 1001 + 50_000, 52: 1001 + 60_000, 72: 1000, 76: 7000, 80: 7001 + 300, 84: 7301 + 65_535}
	list := slices.Concat(header(), connection(stateEstablished, sending, 12, 30_000), connection(10, sending, 0, 0),
		connection(stateEstablished, nil, 0, 0), header())
	found := all(t, list)
	if len(found) != 1 { // not the one in TIME-WAIT, nor the one of a program's own TCP
		t.Fatalf("%d connections", len(found))
	}
	p, s := found[0], found[0].Sample
	if p.Local != netip.MustParseAddrPort("198.51.100.9:50000") || p.Remote != netip.MustParseAddrPort("192.0.2.7:443") ||
		p.PID != 4711 || p.UID != 501 || p.Key != 99 || !p.Established || p.Handshake.MSS != 1448 {
		t.Errorf("whose: %+v", p.Socket)
	}
	if s.Acked != 50_000 || s.InFlight != 10_000 || s.NotSent != 20_000 || s.Sent != 60_000 || s.Received != 300 ||
		s.ReceiveWnd != 65_535 || s.SendWnd != 131072 || s.Cwnd != 14480 || s.RTT != 40*time.Millisecond ||
		s.RTTVar != 5*time.Millisecond || p.Unread != 12 || p.SendBuffer != 146808 || p.ReceiveBuffer != 131072 {
		t.Errorf("%+v of %+v", s, p.Socket)
	}
}

// FINs, which sequence numbers count, are no payload.
func TestFINsAreNoPayload(t *testing.T) {
	closed := map[int]uint32{48: 1001 + 50, 52: 1001 + 51, 72: 1000, 76: 7000, 80: 7001 + 300 + 1, 84: 7302}
	for state, peer := range map[uint32]bool{stateFinWait1: false, stateLastAck: true, stateClosing: true} {
		found := all(t, slices.Concat(header(), connection(state, closed, 0, 0), header()))
		if len(found) != 1 {
			t.Fatalf("state %d: %d connections", state, len(found))
		}
		received := int64(301)
		if peer {
			received = 300
		}
		if p := found[0]; p.Sample.Acked != 50 || p.Sample.Sent != 50 || p.Sample.InFlight != 0 ||
			p.Sample.Received != received || p.Established || p.PeerClosed != peer {
			t.Errorf("state %d: %+v", state, p)
		}
	}
}

func TestSequenceNumbersBeginAgain(t *testing.T) {
	var was wrapped
	var acked, received uint32 = 1<<32 - 1000, 10
	var whole [2]int64
	for i := range 5 {
		p := pcb{}
		p.Sample.Acked, p.Sample.Received = int64(acked), int64(received)
		p.Sample.Sent = p.Sample.Acked + 7
		p.unwrap(&was)
		if i > 0 && (p.Sample.Acked-whole[0] != 1e9 || p.Sample.Received-whole[1] != 2e9 ||
			p.Sample.Sent != p.Sample.Acked+7) {
			t.Errorf("reading %d: %d and %d after %v", i, p.Sample.Acked, p.Sample.Received, whole)
		}
		whole = [2]int64{p.Sample.Acked, p.Sample.Received}
		acked, received = acked+1e9, received+2e9
	}
	p := pcb{} // a FIN that was counted before the state changed
	p.Sample.Received = int64(uint32(was.received - 1))
	p.Sample.Acked = int64(uint32(was.acked))
	if p.unwrap(&was); p.Sample.Received != was.received || p.Sample.Received != whole[1] {
		t.Errorf("%d received after %d", p.Sample.Received, whole[1])
	}
}

func FuzzParse(f *testing.F) {
	sending := map[int]uint32{48: 51_001, 52: 61_001, 72: 1000, 76: 7000, 80: 7301, 84: 72_836}
	one := connection(stateEstablished, sending, 12, 30_000)
	f.Add(slices.Concat(header(), one, one, header()))
	f.Add(slices.Concat(header(), one[:200]))
	f.Add(slices.Concat(header(), record(40, kindTCP, nil), one, header()))
	f.Fuzz(func(t *testing.T, list []byte) {
		_ = parse(list, func(p *pcb) {
			if s := p.Sample; min(s.Acked, s.InFlight, s.NotSent, s.Received, s.ReceiveWnd) < 0 || s.Sent < s.Acked {
				t.Errorf("%+v", s)
			}
		})
	})
}
