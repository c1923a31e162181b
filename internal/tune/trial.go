package tune

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Trial is one transfer that the loop made.
type Trial struct {
	Purpose   search.Purpose
	Setup     Setup
	Automatic bool   // nothing was changed
	Remedy    string // changes other than the window; "" if none
	Asked     int    // window
	Effective int    // window that was reached; 0: not known
	Clipped   bool
	Lossless  bool
	Goodput   float64 // bit/s without slow start
	Limiter   verdict.Name
	Spec      transfer.Spec
	whole     bool    // slow start counts: the time of the whole transfer matters
	shared    bool    // another flow shared the path
	inTurn    bool    // of a comparison or a proof
	others    float64 // goodput of that flow, bit/s
	verdict   verdict.Verdict
	result    *transfer.Result
	elapsed   time.Duration
	bytes     int64
}

// name is what a trial tries, in words.
func (t *Trial) name() string {
	switch {
	case t.Remedy != "":
		return t.Remedy
	case t.Automatic:
		return "automatic"
	}
	return units.Size(t.Asked).Exact()
}

// setEffective sets Effective, the window that was in force: the receiver's offer, or the bytes in flight if the send
// buffer was smaller. Autotuning opens the window only as far as it is used, so an offer that was never filled counts
// as the requested window.
func (t *Trial) setEffective(sender, receiver transfer.Socket) {
	offered := t.result.OfferedWindow()
	flight := t.result.MaxInFlight()
	narrow := t.Limiter == verdict.SendBuffer && flight > 0
	switch {
	case t.Asked == 0:
		t.Effective = flight
		if flight == 0 {
			t.Effective = offered
		}
		return
	case offered == 0:
		t.Effective = t.Asked
	case receiver.ReceiveBuffer == 0 && offered < t.Asked && flight < offered*9/10:
		t.Effective = t.Asked
	default:
		t.Effective = min(offered, t.Asked)
		t.Clipped = receiver.ReceiveBuffer > 0 && float64(offered) < 0.97*float64(t.Asked)
	}
	if narrow && sender.SendBuffer > 0 && float64(flight) < 0.9*float64(t.Effective) {
		t.Effective = flight
		t.Clipped = true
	}
}

func (t *Trial) outcome() search.Outcome {
	return search.Outcome{GoodputBps: t.Goodput, Window: t.Effective, Clipped: t.Clipped, Lossless: t.Lossless,
		Elapsed: t.elapsed, Bytes: t.bytes}
}

// loses says that a transfer lost segments: by chance, by a policer, or by a queue that it filled.
func (t *Trial) loses() bool {
	return t.result != nil && !t.Lossless && t.Limiter != verdict.MTUBlackHole
}

// retransmitRatio returns the share of the bytes sent that were retransmitted; false where it is not known.
func (t *Trial) retransmitRatio() (ratio float64, known bool) {
	if t.result == nil {
		return 0, false
	}
	return t.result.RetransmitRatio()
}

// isClean reports that a transfer retransmitted next to nothing.
func (t *Trial) isClean() bool {
	ratio, known := t.retransmitRatio()
	return known && ratio <= threshold.PacedClean.Value
}

// RetransmitRatio returns the share of the bytes sent that were retransmitted; nil where it is not known.
func (t *Trial) RetransmitRatio() *float64 { return retransmits([]*Trial{t}) }

// mayBePoliced says that a transfer lost much without a queue and was too short to show a policer.
func (t *Trial) mayBePoliced() bool {
	return t.Limiter == verdict.Congestion && !t.canShowPolicer() &&
		slices.ContainsFunc(t.verdict.Evidence, func(e verdict.Evidence) bool {
			return e.Code == verdict.LossWithoutQueue && e.Values["retransmitted_ratio"] >= threshold.PolicedLoss.Value
		})
}

// canShowPolicer reports that a transfer was long enough for its verdict to name a policer.
func (t *Trial) canShowPolicer() bool {
	startup, ok := t.result.Startup()
	received, _ := t.result.Received()
	return ok && received.Duration()-startup.End >= threshold.PolicedTime.Time()
}

// drained says that a transfer lost segments, and that its standing queue was gone in the last quarter.
func (t *Trial) drained() bool {
	end := t.result.Sender()
	if !t.loses() || end == nil {
		return false
	}
	empty := float64(t.result.MinRTT()) * (1 + threshold.StandingQueue.Value)
	queued := func(all []transfer.Sample) (n float64) {
		for i := range all {
			if float64(all[i].RTT) > empty {
				n++
			}
		}
		return n
	}
	var early, late, queuedEarly, queuedLate float64
	for i := range end.Streams {
		all := end.Streams[i].Samples
		last := len(all) * 3 / 4
		early = early + float64(last)
		late = late + float64(len(all)-last)
		queuedEarly += queued(all[:last])
		queuedLate += queued(all[last:])
	}
	return queuedEarly >= queueSeen*early && 2*queuedLate < late
}

// queueAtLoss returns how far the round trip was above the shortest one when losses began, in the median of all times
// that they did. It returns false where none was seen.
func queueAtLoss(trials []*Trial) (queue time.Duration, known bool) {
	var queues []float64
	for _, t := range trials {
		end := t.result.Sender()
		if end == nil {
			continue
		}
		for i := range end.Streams {
			losing := false
			all := end.Streams[i].Samples
			for j := 1; j < len(all); j++ {
				lost := all[j].Retransmitted > all[j-1].Retransmitted
				if lost && !losing {
					queues = append(queues, float64(max(all[j-1].RTT, all[j].RTT)-end.MinRTT()))
				}
				losing = lost
			}
		}
	}
	if len(queues) == 0 {
		return 0, false
	}
	return time.Duration(stats.Median(queues)), true
}

// lostSince returns how many segments a connection retransmitted after a moment.
func lostSince(s *transfer.Stream, at time.Duration) int64 {
	all, _ := s.Retransmitted()
	for i := range s.Samples {
		if s.Samples[i].At >= at {
			return all - s.Samples[i].Retransmitted
		}
	}
	return all
}

// each returns a value of each trial.
func each(trials []*Trial, of func(*Trial) float64) (values []float64) {
	for _, t := range trials {
		values = append(values, of(t))
	}
	return values
}

// retransmitRatios returns the known shares of retransmitted bytes.
func retransmitRatios(trials []*Trial) (ratios []float64) {
	for _, t := range trials {
		if ratio, known := t.retransmitRatio(); known {
			ratios = append(ratios, ratio)
		}
	}
	return ratios
}

// retransmits returns the median share of retransmitted bytes; nil where it is not known.
func retransmits(trials []*Trial) *float64 {
	ratios := retransmitRatios(trials)
	if len(ratios) == 0 {
		return nil
	}
	ratio := stats.Median(ratios)
	return &ratio
}

func goodputs(trials []*Trial) []float64 {
	return each(trials, func(t *Trial) float64 { return t.Goodput })
}
