package testenv

import (
	"net"
	"strconv"
	"testing"
)

func TestFreePort_SkipsUsedPorts(t *testing.T) {
	start := next
	l, err := net.Listen("tcp", net.JoinHostPort("", strconv.Itoa(start+1)))
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if first := FreePort(t, 3); first <= start+1 && first+3 > start+1 {
		t.Errorf("ports %d to %d include %d, which is in use", first, first+2, start+1)
	}
}

func TestFreePort_NeverReturnsAPortTwice(t *testing.T) {
	seen := map[int]bool{}
	for range 50 {
		first := FreePort(t, 2)
		if seen[first] || seen[first+1] || first < firstPort || first+1 > lastPort {
			t.Fatalf("ports %d and %d: seen before or out of range", first, first+1)
		}
		seen[first], seen[first+1] = true, true
	}
}
