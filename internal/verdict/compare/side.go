package compare

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Side is one of two paths to the same far end, over all transfers that were measured on it. A zero field is not known.
type Side struct {
	Goodputs []float64         // bit/s, in the order of measuring
	Verdicts []verdict.Verdict // of the same transfers
	MSS      int               // payload bytes of a full segment
	PathMTU  int               // as the sender's kernel knows it
	RTTMin   time.Duration
	RTTMean  time.Duration // while transferring
	// Sent and Resent are payload bytes, those repeated in both.
	Sent, Resent int64
	// InFlight and Window are the largest that were seen, in bytes: unacknowledged, and
	// advertised by the receiver.
	InFlight, Window int
	// NearCPU and FarCPU are the share (0 to 1) of the whole host that was busy.
	NearCPU, FarCPU *float64
}

// NewSide returns the Side of a path's transfers. The goodputs exclude the startup if it is known for all transfers.
func NewSide(results []*transfer.Result) Side {
	var s Side
	var steady, rttMeans, nearCPU, farCPU []float64
	for _, r := range results {
		received, ok := r.Received()
		if !ok || received.Bps() <= 0 {
			continue
		}
		s.Goodputs = append(s.Goodputs, received.Bps())
		if startup, ok := r.Startup(); ok && startup.SteadyBps > 0 {
			steady = append(steady, startup.SteadyBps)
		}
		s.Verdicts = append(s.Verdicts, live.Judge(r))
		if e := r.Sender(); e != nil {
			rttMeans = append(rttMeans, s.addSender(e)...)
		}
		if e := r.Receiver(); e != nil {
			for _, stream := range e.Streams {
				s.Window = max(s.Window, stream.ReceiveBuffer.Effective)
			}
		}
		nearCPU = append(nearCPU, busy(r.Near)...)
		farCPU = append(farCPU, busy(r.Far)...)
	}
	if len(steady) == len(s.Goodputs) {
		s.Goodputs = steady
	}
	if len(rttMeans) > 0 {
		s.RTTMean = time.Duration(stats.Median(rttMeans))
	}
	s.NearCPU = middle(nearCPU)
	s.FarCPU = middle(farCPU)
	return s
}

// addSender adds the sender's figures to the side and returns each connection's mean RTT in nanoseconds.
func (s *Side) addSender(e *transfer.End) (rttMeans []float64) {
	if least := e.MinRTT(); least > 0 && (s.RTTMin == 0 || least < s.RTTMin) {
		s.RTTMin = least
	}
	for _, stream := range e.Streams {
		if h := stream.Handshake; h != nil {
			s.MSS = h.MSS
			s.PathMTU = h.PathMTU
		}
		s.InFlight = max(s.InFlight, stream.SendBuffer.Effective)
		var sum, n float64
		for _, sample := range stream.Samples {
			if sample.Have&transfer.HaveRTT != 0 && sample.RTT > 0 {
				sum = sum + float64(sample.RTT)
				n = n + 1
			}
		}
		if n > 0 {
			rttMeans = append(rttMeans, sum/n)
		}
		if n := len(stream.Samples); n > 0 {
			last := stream.Samples[n-1]
			if last.Have&transfer.HaveRetrans != 0 && last.Have&transfer.HaveAcked != 0 {
				s.Sent += last.Sent
				s.Resent += last.RetransmittedBytes
			}
		}
	}
	return rttMeans
}

// LossRatio is the share of payload that was retransmitted; ok is false where it is not
// known.
func (s *Side) LossRatio() (ratio float64, ok bool) {
	if s.Sent <= 0 {
		return 0, false
	}
	return float64(s.Resent) / float64(s.Sent), true
}

// limiters returns the limiters of the transfers, without those of few transfers.
func (s *Side) limiters() (names []verdict.Name) {
	count := map[verdict.Name]float64{}
	for _, v := range s.Verdicts {
		name := v.Limiter
		if v.Subtype == verdict.Policer {
			name = verdict.Bottleneck // of another kind
		}
		count[name]++
	}
	for _, name := range verdict.Names() {
		if count[name] > 0 && count[name] >= threshold.LimiterCounts.Value*float64(len(s.Verdicts)) {
			names = append(names, name)
		}
	}
	return names
}

// saturated says that one of the hosts had no CPU left.
func (s *Side) saturated() bool {
	return s.NearCPU != nil && *s.NearCPU >= threshold.SaturatedHost.Value || s.FarCPU != nil &&
		*s.FarCPU >= threshold.SaturatedHost.Value
}

func busy(e *transfer.End) []float64 {
	if e == nil || e.CPU == nil || e.CPU.Host == nil {
		return nil
	}
	return []float64{*e.CPU.Host}
}

func middle(values []float64) *float64 {
	if len(values) == 0 {
		return nil
	}
	m := stats.Median(values)
	return &m
}
