package socklist

import (
	"testing"
	"time"
	"unsafe"
)

// The layouts are those of a compiler that has Windows' own headers: TestWine reads what a library of its kind fills.
// Here only the sizes, which that compiler gave for 64 bits.
func TestStatisticsHaveWindowsSizes(t *testing.T) {
	var e estats
	for name, sizes := range map[string][2]uintptr{"data": {unsafe.Sizeof(e.data), 96},
		"congestion": {unsafe.Sizeof(e.congestion), 88}, "path": {unsafe.Sizeof(e.path), 160},
		"buffer": {unsafe.Sizeof(e.buffer), 32}, "receiver": {unsafe.Sizeof(e.receiver), 72},
		"peer": {unsafe.Sizeof(e.peer), 16}} {
		if sizes[0] != sizes[1] {
			t.Errorf("%s: %d bytes, not %d", name, sizes[0], sizes[1])
		}
	}
}

func TestStatisticsAreRead(t *testing.T) {
	var s Socket
	var e estats
	e.congestion.Window.Time, e.congestion.CurSsthresh = 100, 1<<32-1
	e.path.SmoothedRtt, e.path.MinRtt, e.data.ThruBytesAcked, e.data.ThruBytesReceived = 43, 1<<32-1, 1e10, 7
	e.buffer.CurRetxQueue, e.buffer.CurAppWQueue, e.peer.CurRwinRcvd = 14480, 5000, 65535
	e.path.PktsRetrans, e.peer.WinScaleRcvd, e.receiver.WinScaleSent = 2, 255, 8
	e.fill(&s, 5e9)
	if got := s.Sample; got.RTT != 43*time.Millisecond || got.MinRTT != 0 || got.Acked != 1e10 || got.Ssthresh != 0 ||
		got.Received != 7 || got.InFlight != 14480 || got.NotSent != 5000 || got.SendWnd != 65535 ||
		got.Sent != 1e10+14480+5e9 || got.RwndLimited != 100*time.Millisecond || got.Retransmitted != 2 {
		t.Errorf("%+v", got)
	}
	if s.Unacked != 19480 || s.Handshake.SendScale != -1 || s.Handshake.ReceiveScale != 8 || !s.WindowClock {
		t.Errorf("%+v", s)
	}
}

func TestKept_DropsUnlisted(t *testing.T) {
	var k kept[int, string]
	k.begin()
	*k.get(1), *k.get(2) = "one", "two"
	k.end()
	k.begin()
	if *k.get(1) != "one" {
		t.Error("forgotten")
	}
	k.end()
	if len(k.all) != 1 {
		t.Errorf("%d are kept", len(k.all))
	}
}
