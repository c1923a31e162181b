// Package rfc6349 runs the TCP throughput test of RFC 6349: path MTU, idle round
// trip, the bottleneck's bandwidth in each direction, TCP with windows around the
// bandwidth-delay product, over one and several connections, each direction alone and
// both together, and the three metrics of its section 4; against a committed rate it
// signs a line off or gives the reason why not. With frame sizes given it also searches the largest
// rate of each, after RFC 2544.
//
// The test fills the path. Rates are counted at the IP layer unless said otherwise.
package rfc6349

import (
	"context"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Config sets the test and its limits. Only Peer and Directions are needed.
type Config struct {
	Peer       transfer.Peer
	Directions []transfer.Direction
	// Committed is each direction's committed rate, bit/s, each packet counted
	// with Overhead bytes of framing: 0 at the IP layer, 18 for Ethernet frames, 38 with
	// preamble and gap. A direction without one is measured and not judged.
	Committed map[transfer.Direction]float64
	Overhead  int
	Tolerance float64 // share by which a rate may stay below the committed one; 0: DefaultTolerance
	// LeastEfficiency and MostBufferDelay are limits for these metrics; 0: they are only reported.
	LeastEfficiency, MostBufferDelay float64
	Time                             time.Duration // of each TCP run; 0: DefaultTime
	Budget                           time.Duration // of the whole test; 0: no limit
	Frames                           Frames
	// Echo asks the idle path to a host for round trips and for its MTU; nil: use
	// the transfers' values.
	Echo     func(ctx context.Context, to netip.AddrPort, rtt, spend time.Duration) (path.RoundTrips, path.MTU)
	Progress func(Progress) // called from Run's goroutine; nil: none
}

const (
	DefaultTolerance = 0.05
	// DefaultTime is shorter than the 30 s of section 3.3; reports say so.
	DefaultTime = 10 * time.Second
	// AdvisedTime is the length of a run in section 3.3.
	AdvisedTime = 30 * time.Second
)

// Progress describes the current step of the test.
type Progress struct {
	Direction transfer.Direction
	Doing     Statement
	Done      float64 // share of the expected time
	BestBps   float64
}

// Result has the findings of the test. Parts that were not reached have their zero value.
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

// The parts of a result are those of its document.
type (
	Path       = record.RFC6349Path
	Direction  = record.RFC6349Direction
	Bottleneck = record.RFC6349Bottleneck
	Datagrams  = search.CapacityTrial
	Kind       = record.RFC6349Kind
	Test       = record.RFC6349Test
	Outcome    = record.RFC6349Run
	Frame      = record.RFC6349Frame
	Criterion  = record.RFC6349Criterion
	Verdict    = record.RFC6349Verdict
	Statement  = record.RFC6349Statement
	Code       = record.RFC6349Code
)

// Kinds of TCP tests.
const (
	Window    Kind = "window"    // one connection, one rung of the ladder
	Automatic Kind = "automatic" // one connection as the systems size it
	Full      Kind = "single"    // one connection whose window suffices
	Several   Kind = "several"   // as many that share such a window
	Both      Kind = "both"      // Full while the other direction runs too
)

// Run runs the test. With an error, or when ctx ends, the Result has the measurements
// until then.
func Run(ctx context.Context, cfg Config) (*Result, error) {
	t := newTester(cfg)
	err := t.run(ctx)
	t.out.Interrupted = err != nil
	t.out.Elapsed = time.Since(t.began)
	t.judge()
	return t.out, err
}
