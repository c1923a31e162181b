package sweep

import (
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// Trial is one transfer of one cell.
type Trial struct {
	Cell    int           // its index in Axes.Cells
	Elapsed time.Duration // by this host's clock, including connection setup
	// GoodputBps is payload in bit/s, without slow start where the rate settled.
	GoodputBps float64
	Settled    bool
	Bytes      int64 // payload received
	Limiter    verdict.Name
	Subtype    string
	Confidence verdict.Confidence
	// Send and Receive are nil if that end cannot be observed.
	Send          *transfer.Buffer
	Receive       *transfer.Buffer
	RTT           time.Duration // the least; 0: not known
	MSS           int
	Congestion    string // in use by the sender
	Retransmitted *int64
	// Problem is the reason why the run does not count; "" is a good run.
	Problem string
}

// newTrial returns the Trial of one transfer.
func newTrial(cell int, c record.SweepSetup, elapsed time.Duration, result *transfer.Result) Trial {
	r := Trial{Cell: cell, Elapsed: elapsed}
	received, ok := result.Received()
	if !ok || received.Bytes == 0 {
		r.Problem = fmt.Sprintf("nothing arrived in %s", units.Time(elapsed))
		return r
	}
	if received.Last > r.Elapsed { // a simulated peer has its own clock
		r.Elapsed = received.Last
	}
	r.GoodputBps = received.Bps()
	r.Bytes = received.Bytes
	if r.GoodputBps == 0 { // one read returned all of it
		r.GoodputBps = float64(received.Bytes) * 8 / math.Max(r.Elapsed.Seconds(), 1e-6)
	}
	if startup, ok := result.Startup(); ok {
		r.GoodputBps = startup.SteadyBps
		r.Settled = true
	}
	v := live.Judge(result)
	r.Limiter = v.Limiter
	r.Subtype = v.Subtype
	r.Confidence = v.Confidence
	r.senderSide(result.Sender())
	if e := result.Receiver(); e != nil && len(e.Streams) > 0 {
		b := e.Streams[0].ReceiveBuffer
		b.Clipped = b.Clipped || v.Limiter == verdict.ReceiverWindow && short(b.Effective, c.Receive)
		r.Receive = &b
		if h := e.Streams[0].Handshake; h != nil && r.MSS == 0 {
			r.MSS = h.MSS
		}
	}
	return r
}

// short reports whether a window stayed well below the requested size.
func short(effective, asked int) bool {
	return asked > 0 && effective > 0 && float64(effective) < 0.9*float64(asked)
}

func (r *Trial) senderSide(e *transfer.End) {
	if e == nil || len(e.Streams) == 0 {
		return
	}
	s := &e.Streams[0]
	b := s.SendBuffer
	r.Send = &b
	r.Congestion = s.Congestion
	if s.Handshake != nil {
		r.MSS = s.Handshake.MSS
	}
	r.RTT = e.MinRTT()
	if n := len(s.Samples); n > 0 && s.Samples[n-1].Have&transfer.HaveRetrans != 0 {
		again := s.Samples[n-1].Retransmitted
		r.Retransmitted = &again
	}
}
