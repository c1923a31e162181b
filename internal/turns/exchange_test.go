package turns

import "testing"

// TestExchange_Turn splits turns on a path of 6 ms. Each has one cause.
func TestExchange_Turn(t *testing.T) {
	path := Path{RoundTrip: 6 * ms, Smoothed: 7 * ms, Segment: 1448}
	one := Repaired{Segments: 1}
	for name, c := range map[string]struct {
		x        Exchange
		cause    Cause
		byClient bool
		waited   int64
		stage    Stage
	}{
		"no wait":       {Exchange{Duration: 6 * ms}, Unknown, false, 0, Response},
		"an unseen one": {Exchange{Duration: 240 * ms}, Unknown, false, 0, Response},
		"lost response": {Exchange{Duration: 240 * ms, Server: one}, TailLossProbe, false, 234 * ms, Response},
		"lost response, and the request was repeated": {Exchange{Duration: 240 * ms, Server: one, Client: one},
			TailLossProbe, false, 234 * ms, Response},
		"both lost, one after the other": {Exchange{Duration: 480 * ms, Server: one, Client: one}, Unknown, false, 0,
			Response},
		"lost request": {Exchange{Duration: 240 * ms, Client: one}, TailLossProbe, true, 234 * ms, Request},
		"timeout": {Exchange{Duration: 450 * ms, Server: Repaired{2, 1}}, Timeout, false, 444 * ms,
			Response},
		"kernel without counters": {Exchange{Duration: 240 * ms, Server: Repaired{1, -1}}, Unknown, false, 0, Response},
		"fast retransmit in a long response": {Exchange{Duration: 14 * ms, Response: 60_000, Server: one},
			Unknown, false, 0, Response}, // no stall
		"long response, by a timer or in several rounds": {Exchange{Duration: 240 * ms, Response: 60_000, Server: one},
			Unknown, false, 0, Response},
		"a needless repair": {Exchange{Duration: 6*ms + 1, Server: one}, Unknown, false, 0, Response},
		"lost SYN": {Exchange{Duration: 1012 * ms, Connect: 1006 * ms, LostSYNs: 1}, LostSYN, true, 1000 * ms,
			Connect},
		"due before a connection was free": {Exchange{Duration: 1512 * ms, Backlog: 500 * ms, Connect: 1006 * ms,
			LostSYNs: 1}, LostSYN, true, 1000 * ms, Connect},
		"busy server": {Exchange{Duration: 106 * ms, Thinking: 100 * ms}, Unknown, false, 0, Thinking},
	} {
		turn, cause, byClient, waited := c.x.turn(&path)
		if cause != c.cause || byClient != c.byClient || waited != c.waited {
			t.Errorf("%s: %v by the client %v, %d ms; want %v %v %d", name, cause, byClient, waited/ms, c.cause,
				c.byClient, c.waited/ms)
		}
		if sum := turn.Time.Sum(); sum != c.x.Duration {
			t.Errorf("%s: the stages add up to %d of %d", name, sum, c.x.Duration)
		}
		if c.waited > 0 && turn.Time[c.stage][c.cause] != c.waited {
			t.Errorf("%s: %v", name, turn.Time)
		}
	}
	fast := Exchange{Duration: 14 * ms, Response: 60_000, Server: one}
	if turn, _, _, _ := fast.turn(&path); turn.Time[Response][FastRetransmit] != 8*ms {
		t.Errorf("a fast retransmission: %v", turn.Time)
	}
}

// TestExchanges_Profile checks that percentiles are those of all turns, and stages those of the sample.
func TestExchanges_Profile(t *testing.T) {
	path := Path{RoundTrip: 6 * ms, Smoothed: 6 * ms, Segment: 1448}
	all := Exchanges{Count: 4_000, P50: 7 * ms, P90: 8 * ms, P99: 240 * ms, Max: 300 * ms}
	for i := range uint32(100) {
		all.Sample = append(all.Sample, Exchange{Number: 40 * i, Duration: 7 * ms})
	}
	for i := range uint32(60) {
		all.Slow = append(all.Slow, Exchange{Number: i + 5_000, Duration: int64(240+i) * ms, Server: Repaired{Segments: 1}})
	}
	p := all.Profile(path)
	if p.Count != 4_000 || p.P50 != 7*ms || p.P90 != 8*ms || p.P99 != 240*ms || p.Max != 300*ms {
		t.Errorf("%+v", p)
	}
	if p.Median[Response][Propagation] != 6*ms || p.Median[Response][Unknown] != ms {
		t.Errorf("median %v", p.Median)
	}
	if s := p.Stalled[TailLossProbe][0]; s.Count != 60 {
		t.Errorf("stalls: %+v", p.Stalled)
	}
	if len(p.Longest) != maxSlowest || p.Longest[0].Duration != 299*ms {
		t.Errorf("longest: %+v", p.Longest)
	}
}
