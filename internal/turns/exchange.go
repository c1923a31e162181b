package turns

import (
	"cmp"
	"slices"
)

// Exchange is a turn that its two ends saw, without a tap.
type Exchange struct {
	Stream uint16 // of several at the client
	Number uint32 // of the turn on its stream; the first is 1

	Start, Duration   int64 // the client's
	Backlog           int64 // the first part of Duration: the turn was due, and no connection was free
	Connect           int64 // the next part, until the connection was established; 0: it existed before
	TLS               int64 // the next part: the handshake above TCP
	TLSRounds         int   // its round trips
	FirstByte         int64 // from the request until the response's first byte; 0: not known, or the server reports
	Request, Response int64 // payload
	Thinking          int64 // of the server's program; 0: not known
	LostSYNs          int64 // retransmitted SYNs of the client
	LostSYNACKs       int64 // retransmitted SYN-ACKs of the server
	Client, Server    Repaired
}

// Repaired counts one end's retransmissions of payload during a turn.
type Repaired struct {
	Segments int64
	Timeouts int64 // of the retransmission timer; -1: not known
}

// Path has the kernel's figures of the connections.
type Path struct {
	RoundTrip int64 // least
	Smoothed  int64
	Segment   int64 // the least payload of a full segment
}

// minStall is the least wait that is a stall, and the least excess over the round trip that is looked into.
const minStall = 5e6

// fullTimeout is Linux's least retransmission timeout above the smoothed round trip (TCP_RTO_MIN).
const fullTimeout = 200e6

// stallTime returns the wait above which an owed packet is a stall: min(2 × SRTT, RTO), and at least minStall.
func (p *Path) stallTime() int64 {
	return max(min(2*p.Smoothed, p.Smoothed+fullTimeout), minStall)
}

// Suspicious returns the duration from which a turn may be a stall.
func (p *Path) Suspicious() int64 { return p.RoundTrip + minStall }

// turn splits an exchange. Of a stall it returns the end that owed the packet and the wait; cause is
// Unknown where no stall is known.
func (x *Exchange) turn(p *Path) (t Turn, cause Cause, byClient bool, waited int64) {
	t = Turn{Start: x.Start, Duration: x.Duration}
	t.add(Connect, Backlog, x.Backlog)
	handshake := min(x.Connect, p.RoundTrip)
	t.add(Connect, Propagation, handshake)
	cause = Unknown
	if handshake > 0 && x.LostSYNs+x.LostSYNACKs > 0 {
		cause = LostSYN
		byClient = x.LostSYNs > 0
		waited = x.Connect - handshake
	}
	t.add(Connect, cause, x.Connect-handshake)
	tls := min(x.TLS, int64(x.TLSRounds)*p.RoundTrip)
	t.add(TLS, Propagation, tls)
	t.add(TLS, Unknown, x.TLS-tls)
	rest := x.Duration - x.Backlog - x.Connect - x.TLS
	path := min(rest, p.RoundTrip)
	thinking := min(rest-path, x.Thinking)
	t.add(Response, Propagation, path)
	t.add(Thinking, Server, thinking)
	rest -= path + thinking
	if x.FirstByte > path && x.Client.Segments == 0 {
		first := min(x.FirstByte-path, rest)
		t.add(Thinking, FirstByte, first)
		rest -= first
	}
	stage, repair := x.repair(p, rest)
	t.add(stage, repair, rest)
	if repair != Unknown && rest > waited {
		cause = repair
		byClient = stage == Request
		waited = rest
	}
	if waited < p.stallTime() {
		return t, Unknown, false, 0
	}
	return t, cause, byClient, waited
}

// repair returns the stage and the cause of the time that is neither the path's nor the server's.
func (x *Exchange) repair(p *Path, rest int64) (Stage, Cause) {
	client := x.Client
	server := x.Server
	// A server that retransmits had received the request. The lost response would have acknowledged it, so
	// the client's timer runs too. Two timers in a row are a loss of both.
	bothLost := client.Segments > 0 && server.Segments > 0 && rest >= 2*fullTimeout
	switch {
	case rest < p.RoundTrip || bothLost: // shorter than any repair
		return Response, Unknown
	case server.Segments > 0:
		return Response, server.kind(p, x.Response, rest)
	case client.Segments > 0:
		return Request, client.kind(p, x.Request, rest)
	}
	return Response, Unknown
}

// kind returns what caused the retransmission of a part of a message.
func (r *Repaired) kind(p *Path, message, waited int64) Cause {
	switch {
	case r.Timeouts > 0:
		return Timeout
	case r.Timeouts < 0:
		return Unknown
	case message <= p.Segment: // nothing follows that could be acknowledged
		return TailLossProbe
	case waited < 2*p.Smoothed: // a probe waits longer (RFC 8985, 7.2)
		return FastRetransmit
	}
	return Unknown
}

// ExchangeStalls returns the names of the kinds of stalls that both ends' counters separate.
func ExchangeStalls() []string {
	return []string{LostSYN.String(), FastRetransmit.String(), TailLossProbe.String(), Timeout.String()}
}

// Exchanges are the turns of a load of requests. Counts and percentiles are of all turns.
type Exchanges struct {
	Count, Unanswered  int64
	P50, P90, P99, Max int64
	Distribution       []Bin
	Sample             []Exchange // evenly chosen
	Slow               []Exchange // the suspicious ones
}

// Profile splits the turns. The counts of stalls are of the slow ones.
func (e *Exchanges) Profile(path Path) Profile {
	s := Summary{MaxKept: len(e.Sample) + 1}
	var unclassified int64
	for i := range e.Sample {
		t, _, _, _ := e.Sample[i].turn(&path)
		s.take(&t, false)
	}
	for i := range e.Slow {
		x := &e.Slow[i]
		t, cause, client, waited := x.turn(&path)
		if cause != Unknown {
			s.note(cause, client, waited, 1)
		}
		if x.Client.Segments+x.Server.Segments > 0 && t.Time.Of(Unknown) >= path.stallTime() {
			unclassified++
		}
	}
	p := ProfileOf(&s)
	p.Unclassified = unclassified
	p.Count = e.Count
	p.Unanswered = e.Unanswered
	p.P50 = e.P50
	p.P90 = 0
	p.P99 = 0
	if e.Count >= minForP90 {
		p.P90 = e.P90
	}
	if e.Count >= minForP99 {
		p.P99 = e.P99
	}
	p.Max = e.Max
	p.Distribution = e.Distribution
	p.Longest = e.longest(&path)
	return p
}

// longest returns the slowest turns; Connection is their stream.
func (e *Exchanges) longest(path *Path) (all []Slow) {
	both := slices.Concat(e.Slow, e.Sample)
	slices.SortFunc(both, func(a, b Exchange) int {
		return cmp.Or(cmp.Compare(b.Duration, a.Duration), cmp.Compare(a.Start, b.Start),
			cmp.Compare(a.Stream, b.Stream), cmp.Compare(a.Number, b.Number))
	})
	both = slices.CompactFunc(both, func(a, b Exchange) bool { return a.Stream == b.Stream && a.Number == b.Number })
	for i := range both[:min(len(both), maxSlowest)] {
		t, _, _, _ := both[i].turn(path)
		all = append(all, Slow{t, int(both[i].Stream)})
	}
	return all
}
