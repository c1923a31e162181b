// Package rfc6349 carries out the TCP throughput test of RFC 6349: path MTU, idle round
// trip, the bottleneck's bandwidth in each direction, TCP with windows around the
// bandwidth-delay product, over one and several connections, each direction alone and
// both together, and the three metrics of its section 4; against a committed rate it
// signs a line off or says why not. With frame sizes given it also searches the largest
// rate of each, after RFC 2544.
//
// The test fills the path. Rates are counted at the IP layer unless said otherwise.
package rfc6349

import (
	"context"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Config says what to test and against what. Only Peer and Directions are needed.
type Config struct {
	Peer       transfer.Peer
	Directions []transfer.Direction
	// Committed is the rate that each direction is held to, bit/s, each packet counted
	// with Overhead bytes of framing: 0 at the IP layer, 18 for Ethernet frames, 38 with
	// preamble and gap. A direction without one is measured and not judged.
	Committed map[transfer.Direction]float64
	Overhead  int
	Tolerance float64 // share by which a rate may stay below what is due; 0: DefaultTolerance
	// LeastEfficiency and MostBufferDelay judge these metrics too; 0: they are only told.
	LeastEfficiency, MostBufferDelay float64
	Time                             time.Duration // of each TCP run; 0: DefaultTime
	Budget                           time.Duration // of the whole; 0: what the runs take
	Frames                           Frames
	// Echo asks the idle path to a host for round trips and for its MTU; nil: what the
	// transfers tell has to do.
	Echo     func(ctx context.Context, to netip.AddrPort, rtt, spend time.Duration) (path.RoundTrips, path.MTU)
	Progress func(Progress) // called from Run's goroutine; nil: none
}

const (
	DefaultTolerance = 0.05
	// DefaultTime is shorter than the 30 s of section 3.3; reports say so.
	DefaultTime = 10 * time.Second
	// AdvisedTime is what section 3.3 asks of a run.
	AdvisedTime = 30 * time.Second
)

// Progress is what the test is doing now.
type Progress struct {
	Direction transfer.Direction
	Doing     Statement
	Done      float64 // share of the expected time
	BestBps   float64
}

// Result is what the test found. What was not reached is its zero value.
type Result struct {
	Near, Far   *transfer.End // of the last transfer; nil: cannot be seen
	Path        Path
	Directions  []Direction
	Verdict     Verdict
	Warnings    []Statement
	RunTime     time.Duration // of each TCP run, after the budget
	TrialTime   time.Duration // of each of the frames' trials, after the budget
	Elapsed     time.Duration
	Bytes       int64 // payload moved, UDP included
	Interrupted bool
}

// Path is what the idle path told (sections 3.1 and 3.2.1).
type Path struct {
	MTU       int
	MTUMethod Statement // MTUProbed or MTUOfKernel; zero: not known
	FirstMTU  int       // what the first link would carry; 0: not known
	RTT       time.Duration
	RTTMethod Statement
	RTTCount  int // samples behind it; 0: not told
	Jitter    time.Duration
	MSS       int
	Headers   int // IP and TCP headers of each full segment, timestamps included
	// Timestamps and IPv6 are what Headers is made of.
	Timestamps, IPv6 bool
}

// Bottleneck is the bandwidth of one direction (section 3.2.2).
type Bottleneck struct {
	Bps     float64
	AtLeast bool      // the hosts, not the path, set its end
	Method  Statement // ByUDP or why it is TCP's
	Range   [2]float64
	// BurstBytes are what got through beyond the rate at a trial's beginning, or were
	// counted after its end.
	BurstBytes int64
	Trials     []Datagrams
}

// Datagrams is one UDP trial, rates at the IP layer.
type Datagrams struct {
	Offered, Sent, Received float64 // bit/s
	Loss                    float64 // share
	Variation               time.Duration
}

// Kind of a TCP test.
type Kind string

const (
	Window    Kind = "window"    // one connection, one rung of the ladder
	Automatic Kind = "automatic" // one connection as the systems size it
	Full      Kind = "single"    // one connection whose window suffices
	Several   Kind = "several"   // as many that share such a window
	Both      Kind = "both"      // Full while the other direction runs too
)

// Test is one TCP test and its runs.
type Test struct {
	Kind        Kind
	Direction   transfer.Direction
	Connections int
	Window      int     // of each connection, asked for; 0: automatic
	Share       float64 // of the bandwidth-delay product, all connections together; 0: automatic
	// AchievableBps is what the window and the bottleneck allow.
	AchievableBps float64
	Runs          []Outcome
	Goodput       stats.Interval // in equilibrium, 95 %
	Skipped       Statement      // why it did not run
}

// Outcome is one transfer and its metrics.
type Outcome struct {
	Started     time.Time
	Duration    time.Duration
	Startup     time.Duration // before equilibrium (section 1.3)
	Bytes       int64
	Opening     int64   // of Bytes, those that had arrived when Duration began
	GoodputBps  float64 // first to last byte
	SteadyBps   float64 // in equilibrium
	Reached     int     // window or bytes in flight, all connections together; 0: not known
	Ideal       time.Duration
	Ratio       float64 // Transfer Time Ratio of the whole run
	SteadyRatio float64 // the same in equilibrium
	Sent, Again int64   // bytes sent, and of them retransmitted; Sent 0: the sender cannot be seen
	MeanRTT     time.Duration
	Verdict     verdict.Verdict
	Intervals   []transfer.Interval
	RTTs        []RTT
}

// RTT is the mean of a second's samples.
type RTT struct {
	At, Mean time.Duration // At since the first byte
}

// Direction is one direction's share.
type Direction struct {
	Direction  transfer.Direction
	Committed  float64 // as Config counts it; 0: none
	Bottleneck Bottleneck
	// ReferenceBps and ReferenceOverhead are the rate that MaxTCPBps follows from: the
	// committed one, else the bottleneck's.
	ReferenceBps      float64
	ReferenceOverhead int
	MaxTCPBps         float64 // largest goodput of TCP (section 4.1.1)
	MaxBesideAcksBps  float64 // the same while the other direction runs; 0: not tested
	BDPBytes          float64
	Tests             []Test
	Frames            []Frame
	Criteria          []Criterion
}

// Run carries the test out. With an error, or when ctx ends, the Result holds what was
// measured until then.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	t := newTester(cfg)
	err := t.run(ctx)
	t.out.Interrupted = err != nil
	t.out.Elapsed = time.Since(t.began)
	t.judge()
	return t.out, err
}
