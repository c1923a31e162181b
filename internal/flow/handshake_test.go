package flow

import "testing"

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
