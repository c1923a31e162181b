package flow

import (
	"cmp"
	"slices"
	"testing"
)

// Only a SYN that a sender's timer repeats was lost: a mirror port or a second interface copies
// SYNs too, at once or some milliseconds later.
func TestConnection_LostSYNs(t *testing.T) {
	const ms = int64(1e6)
	tests := []struct {
		name string
		at   []int64 // of the SYNs, ms
		lost int
		wait int64 // ms
	}{
		{"one SYN", []int64{0}, 0, 0},
		{"a copy at once", []int64{0, 0}, 0, 0},
		{"a copy 50 ms later", []int64{0, 50}, 0, 0},
		{"one lost", []int64{0, 1000}, 1, 1000},
		{"a short timeout", []int64{0, 250, 750}, 2, 750},
		{"four copies of each", []int64{0, 0, 1, 1, 505, 505, 506, 506}, 1, 505},
		{"copies of repeated SYNs", []int64{0, 2, 1000, 1002, 3000, 3002}, 2, 3000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client, server := Endpoint4(1, 40000), Endpoint4(2, 443)
			table := NewTable(Config{})
			for i, at := range test.at {
				table.Add(&Segment{At: at*ms + int64(i), Src: client, Dst: server, Seq: 999, Flags: SYN, Window: 64512,
					TTL: uint8(64 - i%4)})
			}
			c := table.Finish()[0]
			if c.LostSYNs != test.lost || c.SYNWait/ms != test.wait {
				t.Errorf("%d SYNs lost in %d ms, want %d in %d ms", c.LostSYNs, c.SYNWait/ms, test.lost, test.wait)
			}
		})
	}
}

// A tap near the server sees the SYN-ACKs that are lost behind it. Which of them the answer belongs to is not known
// (Karn's algorithm).
func TestConnection_LostSYNACKs(t *testing.T) {
	const ms = int64(1e6)
	tests := []struct {
		name     string
		syns     []int64 // ms
		synAcks  []int64
		lost     int
		lostAcks int
		wait     int64 // ms
	}{
		{"none", []int64{0}, []int64{1}, 0, 0, 0},
		{"both timers", []int64{0, 1000, 3000}, []int64{1, 1002, 3002}, 2, 2, 3000},
		{"the server's timer alone", []int64{0}, []int64{1, 1001, 3001}, 2, 2, 3001},
		{"a SYN, then a SYN-ACK", []int64{0, 1000, 3000}, []int64{1001, 3001}, 2, 1, 3000},
		{"no SYN", nil, []int64{1, 1001}, 1, 1, 1000},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client, server := Endpoint4(1, 40000), Endpoint4(2, 443)
			var all []Segment
			for _, at := range test.syns {
				all = append(all, Segment{At: at * ms, Src: client, Dst: server, Seq: 999, Flags: SYN, Window: 64512})
			}
			for _, at := range test.synAcks {
				all = append(all, Segment{At: at * ms, Src: server, Dst: client, Seq: 4999, Ack: 1000, Flags: SYN | ACK,
					Window: 64512})
			}
			slices.SortStableFunc(all, func(a, b Segment) int { return cmp.Compare(a.At, b.At) })
			last := all[len(all)-1].At
			all = append(all, Segment{At: last + 50*ms, Src: client, Dst: server, Seq: 1000, Ack: 5000, Flags: ACK, Window: 500})
			table := NewTable(Config{})
			for i := range all {
				table.Add(&all[i])
			}
			c := table.Finish()[0]
			if c.LostSYNs != test.lost || c.LostSYNACKs != test.lostAcks || c.SYNWait/ms != test.wait {
				t.Errorf("%d lost, %d of them SYN-ACKs, in %d ms, want %d, %d, %d ms", c.LostSYNs, c.LostSYNACKs, c.SYNWait/ms,
					test.lost, test.lostAcks, test.wait)
			}
			if known := c.throughClient > 0; known != (len(test.synAcks) == 1) {
				t.Errorf("round trip through the client of %d ns", c.throughClient)
			}
		})
	}
}
