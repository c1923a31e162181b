package link

import (
	"encoding/binary"
	"testing"
	"time"
)

// ackPacket returns an IPv4 TCP packet with options and payload.
func ackPacket(flags byte, number uint32, window uint16, payload int, options ...byte) []byte {
	for len(options)%4 != 0 {
		options = append(options, 1)
	}
	p := make([]byte, 40+len(options)+payload)
	p[0], p[9] = 0x45, 6
	binary.BigEndian.PutUint16(p[2:], uint16(len(p)))
	tcp := p[20:]
	binary.BigEndian.PutUint16(tcp, 5201)
	binary.BigEndian.PutUint16(tcp[2:], 40000)
	binary.BigEndian.PutUint32(tcp[8:], number)
	tcp[12], tcp[13] = byte(20+len(options))<<2, flags
	binary.BigEndian.PutUint16(tcp[14:], window)
	copy(tcp[20:], options)
	return p
}

func TestAckHolder_Hold(t *testing.T) {
	const syn, ack, fin, ms = 2, 16, 1, int64(time.Millisecond)
	mss := []byte{2, 4, 1460 >> 8, 1460 & 255}
	stamp := []byte{1, 1, 8, 10, 0, 0, 0, 0, 0, 0, 0, 0}
	sack := []byte{1, 1, 5, 10, 0, 0, 0, 0, 0, 0, 0, 0}
	type step struct {
		at     int64 // ms
		packet []byte
		delays bool
	}
	plain := func(number uint32, window uint16, options ...byte) []byte {
		return ackPacket(ack, number, window, 0, options...)
	}
	for _, c := range []struct {
		name    string
		segment int
		steps   []step
		timers  []int64 // when delayed packets left
	}{
		{"every second segment", 0, []step{{0, plain(1461, 8760), true}, {1, plain(2921, 8760), false}, {2, plain(4381, 8760),
			true},
			{3, plain(5841, 8760), false}}, nil},
		{"less than two segments", 0, []step{{0, plain(1073, 1072), true}, {1, plain(1073, 2144), true},
			{2, plain(2145, 2144), true}}, []int64{200}},
		{"two halves of a window below two full segments", 0, []step{{0, plain(1461, 8760), true}, {1, plain(2921, 8760),
			false},
			{2, plain(3993, 2144), true}, {3, plain(5065, 2144), true}}, []int64{202}},
		{"a single one", 0, []step{{5, plain(1461, 8760), true}}, []int64{205}},
		{"timestamps take twelve bytes", 0, []step{{0, plain(1449, 8760, stamp...), true}, {1, plain(2897, 8760, stamp...),
			false}}, nil},
		{"an acknowledgement of ten segments", 0, []step{{0, plain(14601, 8760), false}, {1, plain(16061, 8760), true}},
			[]int64{201}},
		{"the same with a smaller MSS", 1000, []step{{0, plain(14601, 8760), false}, {1, plain(15601, 8760), true},
			{2, plain(16601, 8760), false}}, nil},
		{"duplicate acknowledgements are not delayed", 0, []step{{0, plain(2921, 8760), false}, {1, plain(2921, 8760), false},
			{2, plain(2921, 8760, sack...), false}}, nil},
		{"data releases it", 0, []step{{0, plain(1461, 8760), true}, {1, ackPacket(ack, 1461, 8760, 10), false}},
			nil},
		{"FIN releases it", 0, []step{{0, plain(1461, 8760), true}, {1, ackPacket(ack|fin, 1461, 8760, 0), false}}, nil},
		{"a zero window and a window update", 0, []step{{0, plain(1461, 0), false}, {1, plain(1461, 2920), false}}, nil},
		{"numbers wrap", 0, []step{{0, plain(0, 8760), false}, {1, plain(1460, 8760), true}, {2, plain(2920, 8760), false}},
			nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := AckHolder{Wait: 200 * time.Millisecond, Segment: c.segment}
			hold := func(at int64, p []byte) bool {
				f, ok := Inspect(p)
				return ok && h.Hold(at*ms, 0, p, f)
			}
			first := uint32(1)
			if c.name == "numbers wrap" {
				first = 1<<32 - 2920
			}
			if hold(0, ackPacket(syn|ack, first, 8760, 0, mss...)) {
				t.Fatal("a SYN-ACK is delayed")
			}
			for i, s := range c.steps {
				if delayed := hold(s.at, s.packet); delayed != s.delays {
					t.Errorf("step %d: delayed %v", i, delayed)
				}
			}
			var timers []int64
			for h.Next() != Never {
				at := h.Next()
				if _, early := h.Pop(at - 1); early {
					t.Error("popped too early")
				}
				if p, ok := h.Pop(at); !ok || len(p) < 40 {
					t.Fatal("nothing to pop")
				}
				timers = append(timers, at/ms)
			}
			if len(timers) != len(c.timers) || len(timers) > 0 && timers[0] != c.timers[0] {
				t.Errorf("delayed packets left at %v, want %v", timers, c.timers)
			}
		})
	}
}

// FuzzAckHolder checks that every delayed packet leaves and that a flow has at most one.
func FuzzAckHolder(f *testing.F) {
	f.Add(ackPacket(2, 1, 100, 0, 2, 4, 5, 180), ackPacket(16, 1461, 100, 0), ackPacket(16, 1500, 100, 0, 5, 2))
	f.Add(ackPacket(18, 1, 100, 0), ackPacket(16, 2, 0, 3), ackPacket(17, 5, 1, 0, 8, 10))
	f.Fuzz(func(t *testing.T, a, b, c []byte) {
		h := AckHolder{Wait: time.Millisecond}
		waiting := 0
		for i, p := range [][]byte{a, b, c, b, c, a, c} {
			frame, ok := Inspect(p)
			if ok && h.Hold(int64(i), 0, p, frame) {
				waiting++
			}
			if len(h.pending) > waiting || len(h.pending) > len(h.flows) {
				t.Fatalf("%d pending of %d delayed, %d flows", len(h.pending), waiting, len(h.flows))
			}
		}
		for h.Next() != Never {
			if p, ok := h.Pop(h.Next()); !ok || len(p) == 0 {
				t.Fatal("waits for nothing")
			}
		}
	})
}
