// Package predict predicts a TCP transfer over a stated path: its goodput as a range, its limiter and the next one.
//
// The path is link's, the formulas are model's. Effects without a formula (startup, queue, few random losses) come from
// a simulation round trip by round trip (simulation.go), with several seeds if there is randomness. The limiter follows
// from its definition: each one is removed in turn and the transfer predicted again (limit.go).
//
// Rates are bit/s of payload, sizes bytes. Nothing is measured here.
package predict

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Setup is the transfer to predict. Its zero value is a long upload by one
// connection with the stacks' defaults.
type Setup struct {
	Direction transfer.Direction // "" is Up: the near end sends
	// SendBuffer and ReceiveBuffer are what SO_SNDBUF and SO_RCVBUF ask for; 0 leaves
	// the stack's automatic sizing on.
	SendBuffer, ReceiveBuffer int
	Window                    int    // bound of the receiver's window (TCP_WINDOW_CLAMP); 0: none
	WriteBytes                int    // of one write; 0: large ones
	NoDelay                   bool   // TCP_NODELAY
	Congestion                string // cubic, reno or bbr; "" is the sender's stack's
	MSS                       int    // largest payload of a segment; 0: as the MTU allows
	Connections               int    // 0 is 1
	FlowCap                   int64  // bit/s at the IP layer that one connection gets at most; 0: no bound
	// Bytes and Time end the transfer, whichever comes first; with neither it lasts
	// until it is steady.
	Bytes int64
	Time  time.Duration
}

// Answer is the prediction of a transfer, as in documents.
type Answer struct {
	Range   `json:"goodput"` // first to last byte
	Limiter verdict.Name     `json:"limiter"`
	Subtype string           `json:"subtype,omitempty"`
	// Sure is false if two limiters are too close to distinguish, or if the path has properties outside the models
	// (Warnings).
	Sure bool `json:"sure"`
	// Candidates are the possible limiters, smallest bound first, if it is not sure.
	Candidates []verdict.Name `json:"candidates,omitempty"`
	// Gain is the factor by which the goodput would rise without the limiter.
	Gain float64 `json:"gain_factor,omitempty"`
	// Next is the prediction without the limiter, or without all candidates if it is mixed; nil if not known.
	Next *Next `json:"next,omitempty"`
	// Time is the duration of Bytes as a range; zero if only a time was stated.
	Time     Times `json:"time,omitzero"`
	BDPBytes int64 `json:"bdp_bytes,omitempty"` // rate at the IP layer times the least round trip, as plan has it
	// WindowBytes and InFlightBytes are the receiver's and the sender's limits of each connection; 0: no limit.
	WindowBytes   int            `json:"window_bytes,omitempty"`
	InFlightBytes int            `json:"in_flight_bytes,omitempty"`
	Caps          []Cap          `json:"caps"` // each formula's own bound, least first
	Warnings      []verdict.Note `json:"warnings"`
}

// Range is a goodput in bit/s: the middle, and where it lies nine times in ten.
type Range struct {
	Low     float64 `json:"low_bps"`
	Typical float64 `json:"typical_bps"`
	High    float64 `json:"high_bps"`
}

// Times is a range of durations.
type Times struct {
	Low     units.Duration `json:"low_s"`
	Typical units.Duration `json:"typical_s"`
	High    units.Duration `json:"high_s"`
}

// Next is the next limiter and its goodput.
type Next struct {
	Limiter verdict.Name `json:"limiter,omitempty"` // "" where nothing known would
	Range
}

// Cap is the bound that one formula puts on the goodput of all connections together.
type Cap struct {
	Limiter verdict.Name `json:"limiter"`
	Bps     float64      `json:"goodput_bps"`
	Text    string       `json:"text"` // the formula with its numbers
}

// Transfer predicts one transfer over a path. An error names the argument of the Setup that no model covers.
func Transfer(path link.Path, s Setup) (*Answer, error) {
	r, err := newScenario(path, s)
	if err != nil {
		return nil, err
	}
	result := r.predict()
	a := &Answer{Range: result.goodput(), WindowBytes: whole(r.window), InFlightBytes: whole(r.send),
		BDPBytes: int64(r.bdp() * r.mss), Caps: append([]Cap{}, r.caps()...),
		Warnings: append([]verdict.Note{}, r.warnings...)}
	if r.segment > 0 {
		a.BDPBytes = int64(model.BDP(r.rate, path.RTT))
	}
	if bps := r.withNoDelay(path, s); bps > 0 {
		a.Warnings = append(a.Warnings, verdict.Note{Code: verdict.FirmWithNoDelay,
			Values: verdict.Values{"goodput_bps": bps}})
	}
	if s.Bytes > 0 && result.finishes {
		a.Time = Times{lasting(s.Bytes, a.High), lasting(s.Bytes, a.Typical), lasting(s.Bytes, a.Low)}
	}
	r.limit(a, result)
	return a, nil
}

// withNoDelay returns the goodput with TCP_NODELAY, which makes a send buffer that part segments overrun a firm bound;
// 0 if it does not.
func (r *scenario) withNoDelay(path link.Path, s Setup) float64 {
	if s.NoDelay || !r.overruns {
		return 0
	}
	s.NoDelay = true
	firm, err := newScenario(path, s)
	if err != nil || firm.overruns {
		return 0
	}
	return firm.predict().typical
}

func lasting(bytes int64, bps float64) units.Duration {
	return units.Duration(math.Min(float64(bytes)*8/bps, math.MaxInt64/2e9) * float64(time.Second))
}

// whole is 0 for no bound.
func whole(bytes float64) int {
	if math.IsInf(bytes, 1) {
		return 0
	}
	return int(bytes)
}
