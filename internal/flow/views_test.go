package flow

import "testing"

// Both sides of a firewall that renumbers are in one capture: it is one connection, with the
// figures of one view.
func TestTable_RenumberedTwice(t *testing.T) {
	tests := []struct {
		name           string
		client, server uint32 // added by the box
		behind         int64  // ns
		segments       int
	}{
		{"both numbers", 464_000_000, 2_394_967_296, 4000, 280},
		{"the client's only", 77_000_000, 0, 900_000, 2000},
		{"far behind", 3_000_000_000, 1, 30_000_000, 100},
		{"past the end of the sequence space", 4_294_000_000, 4_000_000_000, 100_000, 500},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client, server := Endpoint4(1, 40000), Endpoint4(2, 443)
			table := NewTable(Config{})
			var all []Segment
			send := func(s Segment) { all = append(all, s) }
			const rtt = 80e6
			send(Segment{Src: client, Dst: server, Seq: 999, Flags: SYN, Window: 64512, MSS: 1460, Options: HasMSS})
			send(Segment{At: rtt / 2, Src: server, Dst: client, Seq: 4999, Ack: 1000, Flags: SYN | ACK, Window: 64512,
				MSS: 1460, Options: HasMSS})
			send(Segment{At: rtt, Src: client, Dst: server, Seq: 1000, Ack: 5000, Flags: ACK, Window: 64512})
			send(Segment{At: rtt + 1e6, Src: client, Dst: server, Seq: 1000, Ack: 5000, Flags: ACK, Window: 64512,
				Payload: 300})
			for i := range test.segments {
				at := int64(2*rtt) + int64(i)*100_000_000
				send(Segment{At: at, Src: server, Dst: client, Seq: 5000 + uint32(i)*1460, Ack: 1300, Flags: ACK,
					Window: 64512, Payload: 1460})
				send(Segment{At: at + 50e6, Src: client, Dst: server, Seq: 1300, Ack: 5000 + uint32(i+1)*1460, Flags: ACK,
					Window: 64512})
			}
			for i := range all {
				outer := all[i]
				outer.At += test.behind
				outer.TTL = 63
				add := func(n, a uint32) {
					outer.Seq += n
					if outer.Flags&ACK != 0 {
						outer.Ack += a
					}
				}
				if outer.Src == client {
					add(test.client, test.server)
				} else {
					add(test.server, test.client)
				}
				all[i].TTL = 64
				table.Add(&all[i])
				table.Add(&outer)
			}
			got := table.Finish()
			if len(got) != 1 || !got[0].Renumbered {
				t.Fatalf("%d connections, renumbered: %t", len(got), got[0].Renumbered)
			}
			sent := []int64{300, int64(test.segments) * 1460}
			for i, d := range got[0].Directions() {
				if d.Bytes != sent[i] || d.Missing+d.Unseen+d.Retransmitted > 0 {
					t.Errorf("%d bytes, want %d; %d missing, %d unseen, %d retransmitted", d.Bytes, sent[i], d.Missing, d.Unseen,
						d.Retransmitted)
				}
			}
		})
	}
}

// TestTable_RenumberedWithoutHandshake checks captures of both sides of such a firewall that begin after the handshake.
func TestTable_RenumberedWithoutHandshake(t *testing.T) {
	tests := []struct {
		name       string
		apart      uint32
		renumbered bool
	}{
		{"ahead", 1 << 31, true},
		{"behind", 1<<32 - 1<<28, true},
		{"as far as a fast path comes", 100 << 20, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client := Endpoint4(1, 40000)
			server := Endpoint4(2, 443)
			table := NewTable(Config{})
			const segments = 200
			for i := range int64(segments) {
				for view := range int64(2) {
					moved := uint32(view) * test.apart
					table.Add(&Segment{At: i*10e6 + view*50e3, Src: server, Dst: client, Seq: 5000 + uint32(i)*1460 + moved,
						Ack: 1300, Flags: ACK, Window: 500, Payload: 1460, TTL: uint8(64 - view)})
					table.Add(&Segment{At: i*10e6 + 5e6 - view*50e3, Src: client, Dst: server, Seq: 1300,
						Ack: 5000 + uint32(i+1)*1460 + moved, Flags: ACK, Window: 500, TTL: uint8(64 - view)})
				}
			}
			got := table.Finish()
			if len(got) != 1 || got[0].Renumbered != test.renumbered {
				t.Fatalf("%d connections, renumbered: %t", len(got), got[0].Renumbered)
			}
			if d := got[0].Directions()[0]; test.renumbered && (d.Bytes != segments*1460 || d.Missing+d.Retransmitted > 0) {
				t.Errorf("%d bytes, want %d; %d missing, %d retransmitted", d.Bytes, segments*1460, d.Missing, d.Retransmitted)
			}
		})
	}
}
