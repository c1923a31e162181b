package model

import (
	"testing"
)

func TestAFDOutstanding(t *testing.T) {
	for _, tt := range []struct{ quota, write, want int }{
		{8192, 1024, 8192}, {8192, 3000, 8192}, {8192, 8192, 8192}, {8192, 16384, 24576}, {16384, 16384, 16384}, {8192, 0, 0},
	} {
		if got := (AFD{tt.quota}).Outstanding(tt.write); got != tt.want {
			t.Errorf("quota %d, writes of %d: %d outstanding, want %d", tt.quota, tt.write, got, tt.want)
		}
	}
}
