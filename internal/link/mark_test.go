package link

import (
	"slices"
	"testing"
)

// The first packet is on the line and the next three are below the threshold. Later ones are marked, or dropped if
// they are not ECN-capable.
func TestMarksFromAThresholdOn(t *testing.T) {
	config := Config{Rate: 1e8, QueueBytes: 1 << 20, MarkBytes: 3 * 1500}
	for _, ect := range []bool{true, false} {
		l := only(config)
		kept, _ := l.Offer(0, Batch{ID: 1, Segments: 10, Bytes: 1500, Last: 1500, ECT: ect})
		var got []Run
		for run, ok := l.Pop(100 * ms); ok; run, ok = l.Pop(100 * ms) {
			run.Due = 0
			got = append(got, run)
		}
		want := []Run{{ID: 1, Count: 4}}
		marked, dropped := int64(0), int64(6)
		if ect {
			want, marked, dropped = append(want, Run{ID: 1, First: 4, Count: 6, CE: true}), 6, 0
		}
		if !slices.Equal(got, want) || kept != int(10-dropped) || l.Counters.Marked != marked ||
			l.Counters.DroppedUnmarked != dropped {
			t.Errorf("ECT %v: %v, %d kept, %+v", ect, got, kept, l.Counters)
		}
	}
}

func TestMarkCE(t *testing.T) {
	v4 := make([]byte, 20)
	v4[0], v4[1], v4[9] = 0x45, 0xb8|2, protocolTCP
	ipv4Checksum(v4)
	v6 := make([]byte, 40)
	v6[0], v6[1] = 0x6b, 0x85
	if !ECT(v4) || ECT(v6) {
		t.Errorf("ECT: %v, %v", ECT(v4), ECT(v6))
	}
	v6[1] |= 1 << 4
	if !ECT(v6) {
		t.Error("no ECT(1) in IPv6")
	}
	MarkCE(v4)
	MarkCE(v6)
	if v4[1] != 0xb8|3 || fold(sum(v4)) != 0xffff {
		t.Errorf("IPv4: %x, checksum %x", v4[1], fold(sum(v4)))
	}
	if v6[0] != 0x6b || v6[1] != 0xb5 {
		t.Errorf("IPv6: %x", v6[:2])
	}
}
