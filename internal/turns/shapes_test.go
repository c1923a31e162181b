package turns

import "testing"

// step is a segment of a connection: its time after the one before, its sender and payload.
type step struct {
	after  int64
	client bool
	bytes  uint32
	flags  Flags
}

// TestTracker_Shapes plays exchanges of other shapes than one request and one response.
func TestTracker_Shapes(t *testing.T) {
	const (
		c = true
		s = false
	)
	for name, one := range map[string]struct {
		steps                              []step
		turns, pushes, unanswered, overlap int64
	}{
		"TFO: the SYN carries the request": {[]step{{0, c, 300, SYN}, {10 * ms, s, 0, SYN | ACK}, {ms, s, 900, ACK},
			{10 * ms, c, 0, ACK}, {ms, c, 300, ACK}, {10 * ms, s, 900, ACK}}, 2, 0, 0, 0},
		"half-close: the client closes before the response": {[]step{{0, c, 300, ACK}, {0, c, 0, FIN | ACK},
			{10 * ms, s, 0, ACK}, {ms, s, 900, ACK}, {0, s, 0, FIN | ACK}}, 1, 0, 0, 0},
		"100 Continue is a response of its own": {[]step{{0, c, 300, ACK}, {10 * ms, s, 25, ACK}, {10 * ms, c, 1448, ACK},
			{10 * ms, s, 200, ACK}}, 2, 0, 0, 0},
		"pushes before the first request": {[]step{{0, s, 40, ACK}, {ms, s, 40, ACK}, {10 * ms, c, 300, ACK},
			{10 * ms, s, 100, ACK}}, 1, 2, 0, 0},
		"typing: each key comes back": {[]step{{0, c, 36, ACK}, {10 * ms, s, 36, ACK}, {90 * ms, c, 36, ACK},
			{10 * ms, s, 36, ACK}, {90 * ms, c, 36, ACK}, {10 * ms, s, 36, ACK}, {0, s, 180, ACK}}, 3, 0, 0, 0},
		"merged segments": {[]step{{0, c, 300, ACK}, {10 * ms, s, 1448 * 10, ACK}, {10 * ms, s, 1448 * 16, ACK},
			{10 * ms, c, 300, ACK}, {10 * ms, s, 1448 * 3, ACK}}, 2, 0, 0, 0},
		"a request without a response": {[]step{{0, c, 300, ACK}, {10 * ms, s, 900, ACK}, {10 * ms, c, 300, ACK},
			{10 * ms, s, 0, ACK}}, 1, 0, 1, 0},
		"keep-alives and pure ACKs are no data": {[]step{{0, c, 300, ACK}, {10 * ms, s, 900, ACK}, {10 * ms, c, 0, ACK},
			{10000 * ms, c, 0, ACK}, {10 * ms, s, 0, ACK}}, 1, 0, 0, 0},
	} {
		e := &exchange{Tracker: &Tracker{}}
		for _, step := range one.steps {
			e.at += step.after
			side := sideIndex(step.client)
			e.Add(&Packet{At: e.at, FromClient: step.client, Flags: step.flags, Seq: e.next[side], Ack: e.next[1-side],
				Payload: step.bytes, Window: 1 << 20})
			e.next[side] += step.bytes
			if step.flags&(SYN|FIN) != 0 {
				e.next[side]++
			}
		}
		e.Finish()
		if e.Count != one.turns || e.Pushes != one.pushes || e.Unanswered != one.unanswered ||
			e.Overlapping != one.overlap {
			t.Errorf("%s: %d turns, %d pushes, %d unanswered, %d overlapping", name, e.Count, e.Pushes, e.Unanswered,
				e.Overlapping)
		}
		for _, slow := range ProfileOf(&e.Summary).Longest {
			if slow.Duration < 0 || slow.Duration > 100*ms {
				t.Errorf("%s: a turn of %d ns", name, slow.Duration)
			}
		}
	}
}

// TestTracker_RefusedFastOpen repeats what the SYN carried after a SYN-ACK that acknowledges the SYN alone.
func TestTracker_RefusedFastOpen(t *testing.T) {
	tracker := &Tracker{}
	for _, p := range []Packet{
		{FromClient: true, Flags: SYN, Payload: 300, Window: 1 << 16},
		{At: 10 * ms, Flags: SYN | ACK, Ack: 1, Window: 1 << 16},
		{At: 20 * ms, FromClient: true, Flags: ACK, Seq: 1, Ack: 1, Payload: 300, Window: 1 << 16},
		{At: 30 * ms, Flags: ACK, Seq: 1, Ack: 301, Payload: 900, Window: 1 << 16},
	} {
		tracker.Add(&p)
	}
	tracker.Finish()
	p := ProfileOf(&tracker.Summary)
	if p.Count != 1 || p.Stalled != (Counts{}).Stalled || p.Max < 35*ms || p.Max > 45*ms {
		t.Errorf("%+v", p.Longest)
	}
}

// TestTracker_FullSegment: merged segments are no full ones, where this end's system knows how long those are, and a
// message shorter than one ends with a short one.
func TestTracker_FullSegment(t *testing.T) {
	tracker := &Tracker{}
	tracker.FullSegment(0)
	tracker.FullSegment(1448)
	at, seq := int64(0), uint32(1)
	for _, c := range []struct {
		payload uint32
		short   bool
	}{{200, true}, {1448, false}, {2896, false}, {5792, false}, {8688, false}, {60_816, false}, {5800, true}} {
		at += 1_000_000
		tracker.Add(&Packet{At: at, Seq: seq, FromClient: true, Flags: ACK, Payload: c.payload, Window: 65_535})
		seq += c.payload
		if x := &tracker.client; x.segment != 1448 || x.lastShort != c.short {
			t.Errorf("%d bytes: a full segment has %d, this one is short: %v", c.payload, x.segment, x.lastShort)
		}
	}
}
