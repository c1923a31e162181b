package path

import (
	"math/rand/v2"
	"testing"
)

// A probe of the first link delays later ones; on the usual links there is only one.
func TestTheFirstLinkIsAskedWithFewPackets(t *testing.T) {
	for _, c := range []struct{ mtu, packets int }{{1500, 1}, {9000, 1}, {65535, 1}, {1280, 1}, {1420, 1}, {576, 0},
		{1476, 7}, {8996, 13}, {65520, 17}, {600, 11}} {
		left := 0
		got := firstLink(minMTU, func(bytes int) bool {
			if bytes <= c.mtu {
				left++
			}
			return bytes <= c.mtu
		})
		if got != c.mtu || left > c.packets {
			t.Errorf("%d: %d with %d packets", c.mtu, got, left)
		}
	}
}

// The search finds the largest size even if one probe of a smaller size is lost.
func TestLossIsNoSize(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	for range 1000 {
		most := minMTU + rng.IntN(9000)
		carries := minMTU + rng.IntN(most-minMTU+1)
		lost, asked := rng.IntN(12), 0 // the probe that is lost
		got := largest(minMTU, most, func(bytes int) bool {
			asked++
			return bytes <= carries && asked != lost
		})
		// No probe follows the last one.
		if got != carries && asked != lost {
			t.Fatalf("of %d: %d, it carries %d; question %d of %d was lost", most, got, carries, lost, asked)
		}
	}
}
