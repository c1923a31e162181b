package plan

import (
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Path is the path of a plan.
type Path struct {
	RateBps     float64       // bottleneck rate at the IP layer from this host
	BackBps     float64       // bottleneck rate at the IP layer to this host; 0 is RateBps
	RTT         time.Duration // minimum RTT
	Jitter      time.Duration // p95 of the RTT minus its minimum
	MSS         int           // payload bytes of a full segment; 0 is 1460
	Overhead    int           // bytes below IP that each packet takes on the link
	HalfDuplex  bool          // both directions share one link
	FlowCapBps  float64       // maximum of one connection, a limit in clouds; 0: none
	Connections int           // concurrent bulk connections; 0 is 1
	// MemoryBytes is the host's main memory; 0 is unknown and limits nothing.
	MemoryBytes int64
	// ReceiveWindow and SendBuffer are bytes of payload that a measurement chose. They replace the arithmetic if not 0.
	ReceiveWindow, SendBuffer int

	headers   int // IP, TCP and options, bytes
	maxWindow int // bytes; larger windows and buffers are lowered to it; 0: none is
}

// DefaultMSS is Ethernet's, without timestamps.
const DefaultMSS = 1460

// leastMSS is the smallest payload of a full segment that a plan takes.
const leastMSS = 48

// ArgumentError says which part of a Path is impossible.
type ArgumentError struct{ Argument, Message, Right string }

func (e *ArgumentError) Error() string { return e.Argument + ": " + e.Message }

// Try returns a correct value.
func (e *ArgumentError) Try() string { return e.Right }

func (p Path) check() error {
	switch {
	case !(p.RateBps > 0) || math.IsInf(p.RateBps, 0):
		return &ArgumentError{"--rate", "is missing: the rate of the path, above 0", "--rate 100mbit"}
	case p.BackBps < 0 || math.IsInf(p.BackBps, 0) || math.IsNaN(p.BackBps):
		return &ArgumentError{"--rate-down", "a path has a rate above 0", "--rate-down 100mbit"}
	case p.FlowCapBps < 0 || math.IsInf(p.FlowCapBps, 0) || math.IsNaN(p.FlowCapBps):
		return &ArgumentError{"--flow-cap", "not a rate", "--flow-cap 5gbit"}
	case p.RTT <= 0:
		return &ArgumentError{"--rtt", "a path has a round trip above 0", "--rtt 40ms"}
	case p.RTT > time.Hour, p.Jitter > time.Hour:
		return &ArgumentError{"--rtt", "more than an hour", "--rtt 40ms"}
	case p.Jitter < 0:
		return &ArgumentError{"--jitter", "below 0", "--jitter 20ms"}
	case p.MSS != 0 && (p.MSS < leastMSS || p.MSS > 65495):
		return &ArgumentError{"--mss", fmt.Sprintf("%d is not a segment's payload", p.MSS),
			"48 to 65495; 1460 on Ethernet; --timestamps takes 12 of them"}
	case p.Connections < 0 || p.Connections > 1e6:
		return &ArgumentError{"--connections", fmt.Sprintf("%d connections", p.Connections), "1 to 1000000"}
	case p.MemoryBytes < 0:
		return &ArgumentError{"--memory", "below 0", "--memory 16GiB"}
	}
	return nil
}

// inSegments returns the path with the payload and headers of full segments. Timestamps take bytes of the payload.
func (p Path) inSegments(timestamps bool) Path {
	p.MSS = p.mss()
	p.headers = model.IPHeaders
	if timestamps {
		p.MSS = max(p.MSS-model.TimestampBytes, leastMSS)
		p.headers += model.TimestampBytes
	}
	return p
}

// enough is the share of the line's capacity that a window must reach. The application note's own windows reach it: 22
// segments over 2.5 ms give 96 %.
const enough = 0.95

// ofOneFlow returns the path of one connection.
func (p Path) ofOneFlow() Path {
	if p.FlowCapBps > 0 {
		p.RateBps = min(p.RateBps, p.FlowCapBps)
		p.BackBps = min(p.BackBps, p.FlowCapBps)
	}
	return p
}

// received returns the path for the data that the host receives.
func (p Path) received() Path {
	if p.BackBps > 0 {
		p.RateBps, p.BackBps = p.BackBps, p.RateBps
	}
	return p
}

// window returns the window of RFC 6349 section 3.3.1 for the round trip plus the jitter, rounded up to an even number
// of segments. Where a segment's time on the line is not small against the round trip, model.Service needs a larger
// one.
func (p Path) window() int {
	needed := model.BDP(p.RateBps, p.RTT+p.Jitter)
	window := max(model.Window(needed, p.MSS), p.service().Window(p.MSS, enough, p.Jitter))
	unscaled := model.LargestUnscaled(p.MSS)
	if needed <= model.MaxUnscaled && window > unscaled && p.Fills(unscaled) >= enough {
		return unscaled
	}
	return window
}

// service returns the times of segments and acknowledgements on the path.
func (p Path) service() model.Service {
	ackBps := p.BackBps
	if ackBps <= 0 {
		ackBps = p.RateBps
	}
	s := model.NewService(p.RTT, p.RateBps, ackBps, p.MSS, max(p.headers, model.IPHeaders), p.Overhead)
	s.HalfDuplex = p.HalfDuplex
	return s
}

// Goodput returns the goodput in bit/s of one connection with a receive window and at most inFlight bytes
// unacknowledged, and the line's capacity. Segments of a window are whole; a sender with a full buffer also sends
// parts of one. plan, predict and audit share this arithmetic.
func (p Path) Goodput(window, inFlight int) (goodput, capacity float64) {
	p.MSS = p.mss()
	line := p.service()
	capacity = line.Capacity(p.MSS)
	line.RTT += p.Jitter
	return min(line.Goodput(window, p.MSS), line.Rate(inFlight)), capacity
}

// Fills returns the share of the line's capacity that a window reaches.
func (p Path) Fills(window int) float64 {
	goodput, capacity := p.Goodput(window, model.MaxWindow)
	return goodput / capacity
}

// Limits reports whether a goodput on a line of that capacity is a limit: without it the goodput would be at least
// 10 % higher, as for every limiter (package verdict).
func Limits(goodput, capacity float64) bool { return goodput*threshold.CauseFactor.Value <= capacity }
