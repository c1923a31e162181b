package model

import "testing"

func TestAFDOutstanding(t *testing.T) {
	for _, tt := range []struct{ quota, write, want int }{
		{8192, 1024, 8192}, {8192, 2048, 8192}, {8192, 3000, 8192}, {8192, 8192, 8192},
		{8192, 16384, 24576}, {16384, 16384, 16384}, {8192, 0, 0},
	} {
		rule, outstanding, most := AFD{tt.quota}, 0, 0
		// The two functions must agree: write whenever the rule lets us, with segments of
		// 512 bytes acknowledged one by one.
		for range 100 {
			if tt.write > 0 && rule.Accepts(tt.write, outstanding) {
				outstanding += tt.write
			} else {
				outstanding = max(outstanding-512, 0)
			}
			most = max(most, outstanding)
		}
		if got := rule.Outstanding(tt.write); got != tt.want || most > tt.want || most <= tt.want-512 && tt.want > 0 {
			t.Errorf("quota %d, writes of %d: %d outstanding by the formula, %d by the rule, want %d", tt.quota, tt.write, got, most, tt.want)
		}
	}
}
