package main

import (
	"errors"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// TestTheMemoryBoundIsNotThePlansToLeaveOut holds a plan that says nothing of memory, or
// too little, against this host's.
func TestTheMemoryBoundIsNotThePlansToLeaveOut(t *testing.T) {
	now, err := host.Snapshot()
	if errors.Is(err, socket.ErrNotSupported) {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	if now.Crowds(2*2147483647) == "" {
		t.Skip("a host with so much memory takes every buffer")
	}
	most := "4096 16384 2147483647"
	would := []host.Did{{Kind: host.Sysctl, Name: "net.ipv4.tcp_wmem", New: &most},
		{Kind: host.Sysctl, Name: "net.ipv4.tcp_rmem", New: &most}}
	for _, planned := range []int64{0, 1, -1 << 60} {
		var refused *memoryError
		if err := checkMemory(planned, would); !errors.As(err, &refused) {
			t.Errorf("a plan of %d bytes: %v", planned, err)
		}
	}
	if err := checkMemory(0, nil); err != nil {
		t.Error(err)
	}
}
