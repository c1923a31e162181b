package path

import "testing"

// FuzzIsReply checks that only an echo of our own nonce is accepted.
func FuzzIsReply(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0, 0, 1, 0, 7, 1, 2, 3, 4, 5, 6, 7, 8}, uint16(7), false)
	f.Add([]byte{129, 0, 0, 0, 0, 1, 0, 7}, uint16(7), true)
	f.Add([]byte{3, 1, 0, 0, 0, 0, 0, 0, 0x45}, uint16(7), false)
	f.Fuzz(func(t *testing.T, packet []byte, seq uint16, six bool) {
		e := &echo{six: six, seq: seq, from: seq}
		for i := range e.nonce {
			e.nonce[i] = byte(i + 1)
		}
		if !e.isReply(packet) {
			return
		}
		for i, want := range e.nonce {
			if at := 8 + i; at >= len(packet) || packet[at] != want {
				t.Fatalf("% x is accepted for nonce % x", packet, e.nonce)
			}
		}
	})
}
