package turns

import "testing"

// exchange gives a Tracker segments that follow each other by a millisecond.
type exchange struct {
	*Tracker
	at   int64
	next [2]uint32 // sequence numbers
}

func (e *exchange) send(client bool, bytes uint32) {
	e.at += ms
	side := sideIndex(client)
	e.Add(&Packet{At: e.at, FromClient: client, Flags: ACK, Seq: e.next[side], Ack: e.next[1-side], Payload: bytes,
		Window: 1 << 20})
	e.next[side] += bytes
}

// message sends one that is long, and returns how much of it was skipped.
func (e *exchange) message(client bool, bytes int64) (skipped int64) {
	for e.bulk <= maxMessage {
		e.send(client, 1448)
		bytes -= 1448
	}
	for ; bytes > 0; bytes -= 1 << 30 {
		e.at += ms
		n := min(bytes, 1<<30)
		if e.Skips(client, uint32(n)) {
			skipped += n
		}
		e.next[sideIndex(client)] += uint32(n)
	}
	return skipped
}

// TestTracker_BulkTransfers sends a small request and response, a large message of one end, and a small request and
// response. Their sequence numbers go round.
func TestTracker_BulkTransfers(t *testing.T) {
	for _, size := range []int64{1 << 20, 3 << 30, 5 << 30} {
		for _, fromClient := range []bool{true, false} {
			e := &exchange{Tracker: &Tracker{}}
			e.send(true, 300)
			e.send(false, 1000)
			e.send(true, 300)
			skipped := e.message(fromClient, size)
			e.send(false, 100)
			e.send(true, 300)
			e.send(false, 100)
			e.send(true, 300)
			e.send(false, 100)
			e.Finish()
			p := ProfileOf(&e.Summary)
			for _, one := range p.Longest {
				if one.Duration > 10*ms {
					t.Errorf("%d bytes, from the client %v: the bulk transfer's time is in %+v", size, fromClient, one)
				}
			}
			if p.Count != 4 || p.Bulky != 1 || p.Overlapping != 0 || skipped < size/2 {
				t.Errorf("%d bytes, from the client %v: %+v, %d bytes skipped", size, fromClient, p.Counts, skipped)
			}
		}
	}
}

// TestTracker_BulkPush sends a large message of the server first.
func TestTracker_BulkPush(t *testing.T) {
	e := &exchange{Tracker: &Tracker{}}
	skipped := e.message(false, 3<<30)
	e.send(true, 300)
	e.send(false, 100)
	e.Finish()
	if e.Count != 1 || e.Bulky != 0 || e.Pushes == 0 || skipped < 2<<30 {
		t.Errorf("%+v, %d bytes skipped", e.Counts, skipped)
	}
}

// TestProfileOf_ManyTurns keeps few turns of many: counts and the slowest stay exact, and connections weigh by their
// turns.
func TestProfileOf_ManyTurns(t *testing.T) {
	slow := Summary{MaxKept: 10}
	for i := range int64(1000) {
		one := Turn{Start: i, Duration: 10 * ms}
		one.Duration += i % 7
		if i == 501 {
			one.Duration = 900 * ms
		}
		one.Time[Thinking][Server] = one.Duration
		slow.take(&one, false)
	}
	fast := Summary{}
	for range 100 {
		one := Turn{Duration: ms}
		one.Time[Response][Propagation] = one.Duration
		fast.take(&one, false)
	}
	p := ProfileOf(&fast, &slow)
	switch {
	case p.Count != 1100 || len(slow.kept) > 10:
		t.Errorf("%d turns, %d kept", p.Count, len(slow.kept))
	case p.P50 < 10*ms || p.P90 < 10*ms || p.Max != 900*ms:
		t.Errorf("%+v", p)
	case p.Longest[0].Start != 501 || p.Longest[0].Connection != 1 || len(p.Longest) != maxSlowest:
		t.Errorf("%+v", p.Longest)
	case p.Median.Of(Server) < 10*ms || p.Median.Of(Propagation) != 0:
		t.Errorf("%v", p.Median)
	}
	var sum int64
	for i, bin := range p.Distribution {
		sum += bin.Count
		if i > 0 && bin.Below <= p.Distribution[i-1].Below {
			t.Errorf("%v", p.Distribution)
		}
	}
	if kept := int64(len(slow.kept))*slow.every + 100; sum != kept || len(p.Distribution) > 3 {
		t.Errorf("%v counts %d turns, want %d", p.Distribution, sum, kept)
	}
}
