package lost

import (
	"encoding/binary"
	"encoding/hex"
	"testing"
)

// packet4 is a TCP segment over IPv4 with 8 bytes of payload, from 10.0.0.1:5000 to 10.0.0.2:80, sequence number 1000.
func packet4(t testing.TB) []byte {
	b, err := hex.DecodeString("450000300000400040060000" + "0a0000010a000002" +
		"13880050000003e800000000" + "5018ffff00000000")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// packet6 is the same over IPv6, from fd00::1 to fd00::2.
func packet6(t testing.TB) []byte {
	b, err := hex.DecodeString("60000000001c0640" + "fd000000000000000000000000000001" +
		"fd000000000000000000000000000002" + "13880050000003e800000000" + "5018ffff00000000")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParsePacket(t *testing.T) {
	change := func(b []byte, at int, to ...byte) []byte { copy(b[at:], to); return b }
	for _, tt := range []struct {
		name   string
		packet []byte
		length uint32
		flow   Flow
		bytes  uint32 // 0: refused
	}{
		{"IPv4", packet4(t), 48, flowA, 8},
		{"IPv4, padded by Ethernet", packet4(t), 60, flowA, 8},
		{"IPv4, cut short", packet4(t), 44, flowA, 4},
		{"IPv4, merged to more than 64 KiB", change(packet4(t), 2, 0, 0), 100_000, flowA, 99_960},
		{"IPv6", packet6(t), 68, flowB, 8},
		{"IPv6, merged", change(packet6(t), 4, 0, 0), 30_000, flowB, 29_940},
		{"SYN", change(packet4(t), 33, flagSYN), 40, flowA, 1},
		{"FIN", change(packet4(t), 33, flagFIN), 48, flowA, 9},
		{"UDP", change(packet4(t), 9, 17), 48, Flow{flowA.Source, flowA.Destination, true}, 20},
		{"UDP over IPv6", change(packet6(t), 6, 17), 68, Flow{flowB.Source, flowB.Destination, true}, 20},
		{"UDP without payload", change(packet4(t), 9, 17), 28, Flow{}, 0},
		{"ICMP", change(packet4(t), 9, 1), 48, Flow{}, 0},
		{"a later fragment", change(packet4(t), 6, 0, 1), 48, Flow{}, 0},
		{"IPv6 with extension headers", change(packet6(t), 6, 0), 68, Flow{}, 0},
		{"short header", change(packet4(t), 0, 0x44), 48, Flow{}, 0},
		{"no header", packet4(t)[:19], 48, Flow{}, 0},
	} {
		flow, seq, bytes, ok := ParsePacket(tt.packet, tt.length)
		if ok != (tt.bytes > 0) || ok && (flow != tt.flow || !flow.UDP && seq != 1000 || bytes != tt.bytes) {
			t.Errorf("%s: %v, %d, %d, %v", tt.name, flow, seq, bytes, ok)
		}
	}
}

func FuzzParsePacket(f *testing.F) {
	f.Add(packet4(f), uint32(48))
	f.Add(packet6(f), uint32(68))
	f.Fuzz(func(t *testing.T, b []byte, length uint32) {
		flow, _, bytes, ok := ParsePacket(b, length)
		if !ok {
			return
		}
		if bytes > length+2 || !flow.Source.IsValid() || binary.BigEndian.Uint16(b) == 0 {
			t.Errorf("%x, %d: %v, %d bytes", b, length, flow, bytes)
		}
	})
}
