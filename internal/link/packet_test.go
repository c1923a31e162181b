package link

import (
	"bytes"
	"encoding/binary"
	"testing"
)

// tcpPacket returns an IP packet with full checksums. The length of options must be a multiple of four.
func tcpPacket(version int, flags byte, options, payload []byte) []byte {
	length := 20 + len(options) + len(payload)
	var p []byte
	if version == 4 {
		p = make([]byte, 20, 20+length)
		p[0], p[8], p[9] = 0x45, 64, protocolTCP
		binary.BigEndian.PutUint16(p[2:], uint16(20+length))
		binary.BigEndian.PutUint16(p[4:], 0xfffe)
		copy(p[12:], []byte{198, 18, 0, 1, 198, 18, 0, 2})
		ipv4Checksum(p)
	} else {
		p = make([]byte, 40, 40+length)
		p[0], p[6], p[7] = 0x60, protocolTCP, 64
		binary.BigEndian.PutUint16(p[4:], uint16(length))
		p[8], p[23], p[24], p[39] = 0x20, 1, 0x20, 2
	}
	at := len(p)
	p = append(p, make([]byte, 20)...)
	tcp := p[at:]
	binary.BigEndian.PutUint16(tcp, 40000)
	binary.BigEndian.PutUint16(tcp[2:], 5201)
	binary.BigEndian.PutUint32(tcp[4:], 0xfffffff0)
	tcp[12], tcp[13] = byte(20+len(options))/4<<4, flags
	p = append(append(p, options...), payload...)
	binary.BigEndian.PutUint16(p[at+16:], ^fold(pseudoSum(p, protocolTCP, length)+sum(p[at:])))
	return p
}

// valid reports whether a packet's checksums are right.
func valid(p []byte) bool {
	f, ok := Inspect(p)
	if !ok || f.Version == 4 && fold(sum(p[:f.Transport])) != 0xffff {
		return false
	}
	return fold(pseudoSum(p, f.Protocol, len(p)-f.Transport)+sum(p[f.Transport:])) == 0xffff
}

var synOptions = []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}

func TestStripOptions(t *testing.T) {
	tests := []struct {
		strip Options
		want  []byte
	}{
		{WindowScale, []byte{2, 4, 5, 0xb4, 4, 2, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 1, 1, 1}},
		{SACK, []byte{2, 4, 5, 0xb4, 1, 1, 8, 10, 1, 2, 3, 4, 0, 0, 0, 0, 1, 3, 3, 7}},
		{Timestamps | SACK, []byte{2, 4, 5, 0xb4, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 3, 3, 7}},
		{0, synOptions},
	}
	for _, version := range []int{4, 6} {
		for _, test := range tests {
			for _, flags := range []byte{2, 0x12, 0x10} {
				p := tcpPacket(version, flags, synOptions, nil)
				f, _ := Inspect(p)
				StripOptions(p, f, test.strip, false)
				want := test.want
				if flags == 0x10 {
					want = synOptions // only handshakes are touched
				}
				if !bytes.Equal(p[f.Transport+20:], want) || !valid(p) {
					t.Errorf("IPv%d, flags %#x, strip %v: % x, checksum right: %v", version, flags, test.strip, p[f.Transport+20:],
						valid(p))
				}
			}
		}
	}
}

func TestStripLeavesPartialChecksumsAlone(t *testing.T) {
	p := tcpPacket(4, 2, synOptions, nil)
	binary.BigEndian.PutUint16(p[36:], 0x1234)
	f, _ := Inspect(p)
	StripOptions(p, f, WindowScale, true)
	if p[36] != 0x12 || p[37] != 0x34 || p[20+20+17] != 1 {
		t.Errorf("% x", p)
	}
}

// The segments cut from a super-packet together equal it.
func TestIntervalSchedule(t *testing.T) {
	const mss, fin, psh, cwr = 1000, 1, 8, 128
	payload := make([]byte, 4*mss+123)
	for i := range payload {
		payload[i] = byte(i * 7)
	}
	for _, version := range []int{4, 6} {
		p := tcpPacket(version, fin|psh|cwr|0x10, []byte{1, 1, 8, 10, 0, 0, 0, 1, 0, 0, 0, 2}, payload)
		f, _ := Inspect(p)
		header, batch, ok := Split(p, f.Transport, mss)
		if !ok || batch != (Batch{Segments: 5, Bytes: header + mss, Last: header + 123}) {
			t.Fatalf("IPv%d: split into %+v, %v", version, batch, ok)
		}
		for first := range batch.Segments {
			for count := 1; first+count <= batch.Segments; count++ {
				head := make([]byte, header)
				part := Cut(p, f.Transport, header, mss, first, count, head)
				got := append(head, part...)
				// Complete the checksum as a device does.
				at := f.Transport + 16
				binary.BigEndian.PutUint16(got[at:], ^fold(sum(got[f.Transport:])))
				if !valid(got) {
					t.Errorf("IPv%d, %d from %d: checksums are wrong", version, count, first)
				}
				last := first+count == batch.Segments
				flags := got[f.Transport+13]
				if (flags&(fin|psh) != 0) != last || (flags&cwr != 0) != (first == 0) {
					t.Errorf("IPv%d, %d from %d: flags %#x", version, count, first, flags)
				}
				if sequence := binary.BigEndian.Uint32(got[f.Transport+4:]); sequence != 0xfffffff0+uint32(first*mss) {
					t.Errorf("IPv%d, %d from %d: sequence %#x", version, count, first, sequence)
				}
				if !bytes.Equal(part, payload[first*mss:min((first+count)*mss, len(payload))]) {
					t.Errorf("IPv%d, %d from %d: other payload", version, count, first)
				}
			}
		}
	}
}

func TestTooBig(t *testing.T) {
	for _, test := range []struct{ version, offset int }{{4, 26}, {6, 44}} {
		p := tcpPacket(test.version, 0x10, nil, make([]byte, 1400))
		f, _ := Inspect(p)
		buffer := make([]byte, 1280)
		n := TooBig(p, f, 1300, buffer)
		answer := buffer[:n]
		g, ok := Inspect(answer)
		if !ok || g.Version != test.version {
			t.Fatalf("IPv%d: % x", test.version, answer)
		}
		whole := fold(sum(answer[g.Transport:])) == 0xffff
		if test.version == 6 {
			whole = valid(answer)
		}
		quoted := answer[g.Transport+8:]
		if !whole || !bytes.Equal(quoted, p[:len(quoted)]) {
			t.Errorf("IPv%d: checksum right: %v, %d bytes quoted", test.version, whole, len(quoted))
		}
		if mtu := binary.BigEndian.Uint16(answer[test.offset+2*(test.version-4)/2:]); mtu != 1300 {
			t.Errorf("IPv%d: reports an MTU of %d", test.version, mtu)
		}
		if TooBig(answer, g, 1300, make([]byte, 1280)) != 0 {
			t.Errorf("IPv%d: an ICMP error caused an ICMP error", test.version)
		}
	}
}

func FuzzPacket(f *testing.F) {
	f.Add(tcpPacket(4, 2, synOptions, nil), uint16(1000), byte(7))
	f.Add(tcpPacket(6, 0x12, synOptions, make([]byte, 3000)), uint16(1000), byte(3))
	f.Add([]byte{0x60, 0, 0, 0, 0, 8, 44, 0}, uint16(1), byte(1))
	f.Fuzz(func(t *testing.T, p []byte, mss uint16, strip byte) {
		frame, ok := Inspect(p)
		if !ok {
			return
		}
		if len(p) > 65535 {
			return
		}
		before := valid(p)
		StripOptions(p, frame, Options(strip), false)
		if before && !valid(p) {
			t.Fatal("stripping broke the checksum")
		}
		TooBig(p, frame, 1280, make([]byte, 1280))
		header, batch, ok := Split(p, frame.Transport, int(mss))
		if !ok {
			return
		}
		total := 0
		for i := range batch.Segments {
			part := Cut(p, frame.Transport, header, int(mss), i, 1, make([]byte, header))
			total += len(part)
			size := batch.Bytes
			if i == batch.Segments-1 {
				size = batch.Last
			}
			if header+len(part) != size {
				t.Fatalf("segment %d has %d bytes, the batch says %d", i, header+len(part), size)
			}
		}
		if total != len(p)-header {
			t.Fatalf("cut into %d of %d bytes", total, len(p)-header)
		}
	})
}
