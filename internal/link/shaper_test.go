package link

import (
	"testing"
	"time"
)

// A shaper paces each flow at its own rate, exact to the nanosecond; the line's rate applies after it.
func TestFlowsAreBoundEach(t *testing.T) {
	const n, bytes = 200, 1500
	l := only(Config{Rate: 1e9, FlowRate: 40e6, Delay: 10 * time.Millisecond, QueueBytes: 2 * n * bytes})
	for i := range n {
		for flow := range uint64(3) {
			batch := one(int32(3*i+int(flow)), bytes)
			batch.Flow = flow // flow 0 is not shaped
			if kept, _ := l.Offer(0, batch); kept != 1 {
				t.Fatalf("packet %d of flow %d was not taken", i, flow)
			}
		}
	}
	last := map[int]int64{}
	runs, times := drain(l)
	for i, r := range runs {
		if r.Lost {
			t.Fatalf("packet %d was lost", r.ID)
		}
		last[int(r.ID)%3] = times[i]
	}
	const bound = n*bytes*8*1e9/40e6 + 10e6 // ns
	line := int64(bytes * 8)                // ns on the line
	for flow, want := range map[int]int64{0: n*bytes*8 + 10e6, 1: bound + line, 2: bound + 2*line} {
		if got := last[flow]; len(runs) != 3*n || got < want-1 || got > want+2*line {
			t.Errorf("flow %d: its last of %d packets came at %d ns, want %d", flow, len(runs), got, want)
		}
	}
}

// A full flow queue drops packets of that flow only.
func TestFlowsHaveQueuesOfTheirOwn(t *testing.T) {
	l := only(Config{Rate: 1e9, FlowRate: 10e6, QueueBytes: 20 * 1500})
	offer := func(flow uint64, n int) (kept int) {
		for i := range n {
			batch := one(int32(i), 1500)
			batch.Flow = flow
			k, _ := l.Offer(0, batch)
			kept += k
		}
		return kept
	}
	// One packet is in transmission, twenty wait.
	if a, b := offer(1, 50), offer(2, 5); a != 21 || b != 5 || l.Counters.DroppedQueue != 29 {
		t.Errorf("%d of 50 and %d of 5 were taken, %d dropped", a, b, l.Counters.DroppedQueue)
	}
	if runs, _ := drain(l); len(runs) != 26 {
		t.Errorf("%d packets came", len(runs))
	}
}

// FlowOf separates connections by their ports, and the two directions of one.
func TestFlowOf(t *testing.T) {
	packet := func(protocol, from, to byte) ([]byte, Frame) {
		b := make([]byte, 40)
		b[0], b[9], b[3] = 0x45, protocol, 40
		b[12], b[16] = 10, 20
		b[21], b[23] = from, to
		f, _ := Inspect(b)
		return b, f
	}
	seen := map[uint64]bool{}
	for _, ports := range [][2]byte{{1, 2}, {2, 1}, {1, 3}, {4, 2}} {
		for _, protocol := range []byte{protocolTCP, protocolUDP} {
			b, f := packet(protocol, ports[0], ports[1])
			flow := FlowOf(b, f)
			if again := FlowOf(b, f); flow == 0 || again != flow || seen[flow] {
				t.Errorf("%v over %d: flow %d, then %d", ports, protocol, flow, again)
			}
			seen[flow] = true
		}
	}
	if b, f := packet(protocolICMP, 1, 2); FlowOf(b, f) != 0 {
		t.Error("an echo is no flow")
	}
}
