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
	Cell    int           `json:"cell"` // its index in Axes.Cells
	At      time.Time     `json:"at"`
	Elapsed time.Duration `json:"elapsed_ns"` // by this host's clock, including connection setup
	// GoodputBps is payload in bit/s, without slow start where the rate settled.
	GoodputBps float64            `json:"goodput_bps,omitempty"`
	Settled    bool               `json:"settled,omitempty"`
	Bytes      int64              `json:"bytes,omitempty"` // payload received
	Limiter    verdict.Name       `json:"limiter,omitempty"`
	Subtype    string             `json:"subtype,omitempty"`
	Confidence verdict.Confidence `json:"confidence,omitempty"`
	// Send and Receive are nil if that end cannot be observed.
	Send          *transfer.Buffer `json:"send,omitempty"`
	Receive       *transfer.Buffer `json:"receive,omitempty"`
	RTT           time.Duration    `json:"rtt_ns,omitempty"` // the least; 0: not known
	MSS           int              `json:"mss,omitempty"`
	Congestion    string           `json:"congestion,omitempty"` // in use by the sender
	Retransmitted *int64           `json:"retransmitted,omitempty"`
	// Problem is the reason why the run does not count; "" is a good run.
	Problem string `json:"problem,omitempty"`
}

// newTrial returns the Trial of one transfer.
func newTrial(cell int, c record.SweepSetup, at time.Time, elapsed time.Duration, result *transfer.Result) Trial {
	r := Trial{Cell: cell, At: at.UTC().Round(time.Millisecond), Elapsed: elapsed}
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

// check returns an error for an invalid run from a file.
func (r *Trial) check(cells int) error {
	switch {
	case r.Cell < 0 || r.Cell >= cells:
		return fmt.Errorf("there is no cell %d in a grid of %d", r.Cell, cells)
	case r.Elapsed < 0 || r.Bytes < 0 || r.RTT < 0:
		return fmt.Errorf("a time or a size below zero")
	case r.Problem == "" && !(r.GoodputBps > 0 && r.GoodputBps < 1e15):
		return fmt.Errorf("%v is no goodput", r.GoodputBps)
	}
	return nil
}
