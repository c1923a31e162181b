package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// exchange relates the two directions of a watched connection to each other.
type exchange struct {
	span     float64 // s
	rtt      float64 // least, s
	messages float64 // samples since the one before which the other end had sent something
	came     float64 // bytes that it sent
	// asked and unasked are samples since the one before which this end's program had written something, after
	// a message of the other end's since it wrote last, and without one.
	asked, unasked float64
	prompt         float64 // of asked, the samples in whose interval that message also came
	acked          float64 // bytes that it acknowledged
	queued         float64 // the most that was in flight or waited to be
	mss            float64
	inFlight       []float64 // at each sample, sorted
	window         float64   // the receive window's least in the second half
	cwnd           float64
	best           float64 // a tenth of the samples was delivered at that rate or a higher one, bit/s
}

// ownExchanges finds, where a watched program is what limits its sending, the two ways in which
// it waits for the other end's: block by block, and by a window of its own. Samples need
// Queued.
func ownExchanges(w *watchedDirection, v verdict.Verdict) verdict.Verdict {
	const have = transfer.HaveReceived | transfer.HaveAcked | transfer.HaveQueue | transfer.HaveNotSent |
		transfer.HaveMinRTT | transfer.HaveSendWnd | transfer.HaveCwnd
	if !w.Sends || len(w.Samples) < 2 || common(w.Samples)&have != have {
		return v
	}
	e := w.exchange()
	if !e.programLimits(v) {
		return v
	}
	values := verdict.Values{"rtt_s": e.rtt}
	code := verdict.WatchedExchanges
	switch turns := e.inTurn(); {
	case turns > 0:
		v.Subtype = verdict.RequestResponse
		e.addBlockValues(values, float64(turns))
	case e.unevenRequests(v) && e.span >= threshold.FlatShare.Value*e.rtt*e.asked:
		v.Subtype = verdict.RequestResponse
		e.addBlockValues(values, 1)
	case v.Limiter != verdict.SendBuffer && e.ownWindow() || e.unevenRequests(v):
		v.Subtype = verdict.ProgramWindow
		code = verdict.WatchedProgramWindow
		values["program_window_bytes"] = e.level()
		values["window_bytes"] = e.window
		values["allows_bps"] = 8 * e.level() / e.rtt
		values["twice_bps"] = 2 * 8 * e.acked / e.span
	default:
		return v
	}
	if v.Limiter != verdict.Application { // a buffer that one block fills does not limit
		v.Limiter = verdict.Application
		v.Confidence = verdict.Medium
		v.Candidates = nil
	}
	shares := verdict.Shares{}
	for name, s := range v.Shares {
		if name == verdict.Sender || name == verdict.SendBuffer && code == verdict.WatchedExchanges {
			name = verdict.Application
		}
		shares[name] += s
	}
	v.Shares = shares
	values["time_ratio"] = shares[verdict.Application]
	v.Evidence = slices.Insert(slices.Clone(v.Evidence), 0,
		verdict.Evidence{Limiter: verdict.Application, Code: code, Values: values})
	return v
}

// programLimits reports whether the program or its send buffer limits. Blocks also queue on a link while they are
// sent, and the link is then full at times. At those times it delivers more than the mean rate.
func (e *exchange) programLimits(v verdict.Verdict) bool {
	switch v.Limiter {
	case verdict.Application, verdict.Sender, verdict.SendBuffer:
		return true
	case verdict.Mixed:
		its := v.Shares[verdict.Application] + v.Shares[verdict.Sender] + v.Shares[verdict.SendBuffer]
		if 8*e.acked/e.span <= threshold.EvenRate.Value*e.best {
			its += v.Shares[verdict.Bottleneck]
		}
		return its >= threshold.EvenRate.Value && v.Shares[verdict.Bottleneck] < threshold.HeadlineShare.Value
	}
	return false
}

// answeredBlocks finds, where nothing else is known of what a watched end receives, that the other end's
// program sends block by block: each came a round trip after this end had answered the one
// before. Nothing may have been lost: a sender's small window looks the same, without this end's messages.
func answeredBlocks(w *watchedDirection, v verdict.Verdict) verdict.Verdict {
	const have = transfer.HaveReceived | transfer.HaveAcked | transfer.HaveMinRTT
	if w.Sends || v.Limiter != verdict.Unknown || len(w.Samples) < 2 || common(w.Samples)&have != have {
		return v
	}
	first := &w.Samples[0]
	last := &w.Samples[len(w.Samples)-1]
	e := w.exchange()
	e.messages = w.messagesSent(&e)
	if e.messages < threshold.MinRounds.Value || last.RcvOOOPack > first.RcvOOOPack ||
		w.Answered < threshold.ExchangesWait.Value {
		return v
	}
	each := e.span / e.messages
	if wait := w.Answered * each; e.rtt <= 0 || wait < threshold.EvenRate.Value*e.rtt ||
		wait*threshold.ExchangesWait.Value > e.rtt {
		return v
	}
	values := verdict.Values{"exchanges": e.messages, "block_bytes": e.came / e.messages, "exchange_s": each,
		"rtt_s": e.rtt, "time_ratio": w.Answered, "answered_ratio": w.Answered}
	v.Limiter = verdict.Application
	v.Subtype = verdict.RequestResponse
	v.Confidence = verdict.Medium
	v.Candidates = nil
	v.Shares = verdict.Shares{verdict.Application: w.Answered}
	if w.Answered < 1 {
		v.Shares[verdict.Unknown] = 1 - w.Answered
	}
	v.Evidence = slices.DeleteFunc(slices.Clone(v.Evidence), func(e verdict.Evidence) bool {
		return e.Code == verdict.SenderUnseen
	})
	v.Evidence = slices.Insert(v.Evidence, 0, verdict.Evidence{Limiter: verdict.Application,
		Code: verdict.WatchedExchanges, Values: values})
	return v
}

// messagesSent returns how many messages this end's program sent: the samples in which it had sent
// something or, where that happens in nearly all, the segments, if each has a whole message. 0: not
// known. The kernel dates what comes and goes in its ticks, so exchanges that are faster than one
// are not recognised.
func (w *watchedDirection) messagesSent(e *exchange) (n float64) {
	for i := 1; i < len(w.Samples); i++ {
		if w.Samples[i].Sent > w.Samples[i-1].Sent {
			n++
		}
	}
	if e.span >= threshold.SamplesPerExchange.Value*e.sampleInterval()*n {
		return n
	}
	bytes := float64(w.Samples[len(w.Samples)-1].Sent - w.Samples[0].Sent)
	segments := float64(w.DataSent)
	if bytes > threshold.FullArrivals*e.mss*segments || e.rtt < threshold.ArrivalGap.Seconds() {
		return 0
	}
	return segments
}

// least returns the least round trip of the samples.
func least(samples []transfer.Sample) time.Duration {
	var rtt time.Duration
	for i := range samples {
		if s := samples[i].MinRTT; s > 0 && (rtt == 0 || s < rtt) {
			rtt = s
		}
	}
	return rtt
}

func (w *watchedDirection) exchange() exchange {
	first := &w.Samples[0]
	last := &w.Samples[len(w.Samples)-1]
	e := exchange{span: (last.At - first.At).Seconds(), came: float64(last.Received - first.Received),
		acked: float64(last.Acked - first.Acked), mss: float64(w.Handshake.SegmentSize())}
	rates := make([]float64, 0, len(w.Samples))
	message := false
	for i := range w.Samples {
		s := &w.Samples[i]
		if i > 0 && s.Received > w.Samples[i-1].Received {
			e.messages++
			message = true
		}
		if i > 0 && s.Acked+s.Queued > w.Samples[i-1].Acked+w.Samples[i-1].Queued {
			if message {
				e.asked++
				if s.Received > w.Samples[i-1].Received {
					e.prompt++
				}
			} else {
				e.unasked++
			}
			message = false
		}
		e.queued = max(e.queued, float64(s.Queued))
		e.inFlight = append(e.inFlight, float64(s.Queued-s.NotSent))
		e.cwnd = max(e.cwnd, float64(s.Cwnd))
		rates = append(rates, s.DeliveryBps)
		if i == len(w.Samples)/2 || i > len(w.Samples)/2 && float64(s.SendWnd) < e.window {
			e.window = float64(s.SendWnd)
		}
	}
	e.rtt = least(w.Samples).Seconds()
	slices.Sort(e.inFlight)
	slices.Sort(rates)
	e.best = rates[len(rates)*9/10]
	return e
}

// exchanges are the other end's messages, or fewer where each write followed some of them: a server may say
// first that a request takes a while (SMB's interim responses).
func (e *exchange) exchanges() float64 {
	if e.asked < e.messages && e.asked >= threshold.ExchangesRestart.Value*(e.asked+e.unasked) {
		return e.asked
	}
	return e.messages
}

// inTurn returns how many blocks are in flight at a time: 1, 2, or 0 if the blocks do not wait for each other. It
// compares the bytes sent between two messages of the other end with the most bytes in flight: the same for one block,
// half for two. The round trips must take most of the time. Samples further apart than the exchanges cannot count
// them. With two blocks one stays in flight when the other is answered, and a writer that waits for its send buffer
// is woken before.
func (e *exchange) inTurn() int {
	n := e.exchanges()
	if n < threshold.MinRounds.Value || e.rtt <= 0 {
		return 0
	}
	block := e.acked / n
	each := e.span / n
	if e.rtt <= threshold.ExchangesWait.Value*each || each < threshold.SamplesPerExchange.Value*e.sampleInterval() {
		return 0
	}
	for turns := 1; turns <= 2; turns++ {
		k := float64(turns)
		if k*each >= threshold.FlatShare.Value*e.rtt && e.queued >= threshold.EvenRate.Value*k*block &&
			threshold.FlatShare.Value*e.queued <= k*block &&
			(turns == 1 || e.inFlight[len(e.inFlight)/10] <= threshold.TurnsTrough.Value*e.queued) {
			return turns
		}
	}
	return 0
}

// addBlockValues adds the predicted rates with larger blocks. The time of an exchange beyond a round trip is the
// path's time for the blocks.
func (e *exchange) addBlockValues(v verdict.Values, turns float64) {
	n := e.exchanges()
	block := e.acked / n
	each := turns * e.span / n
	v["exchanges"] = n
	v["block_bytes"] = block
	v["exchange_s"] = each
	if turns > 1 {
		v["in_turn"] = turns
	}
	for name, k := range map[string]float64{"twice_bps": 2, "eightfold_bps": 8} {
		v[name] = 8 * k * turns * block / (e.rtt + k*max(each-e.rtt, 0))
	}
}

// unevenRequests reports whether the program keeps a number of requests of any size in flight. Messages come in at
// most half of the samples' intervals, each releases a write in the same interval, few writes come without one, and
// data is always in flight, below every window of TCP's. A writer with a clock of its own matches messages by chance.
func (e *exchange) unevenRequests(v verdict.Verdict) bool {
	n := float64(len(e.inFlight))
	return (v.Limiter == verdict.Application || v.Limiter == verdict.Sender) &&
		e.rtt > 0 && e.asked >= threshold.SureSegments.Value && e.messages <= threshold.ExchangesWait.Value*n &&
		e.prompt >= threshold.FlatShare.Value*max(e.asked+e.unasked, e.messages) &&
		e.span <= e.rtt*e.asked/threshold.ExchangesWait.Value &&
		e.inFlight[len(e.inFlight)/10] >= e.mss && e.level() >= threshold.ProbeSegments.Value*e.mss &&
		e.window >= threshold.ProgramWindowRoom.Value*e.queued && e.cwnd > e.queued &&
		e.came <= threshold.ProgramWindowResponses.Value*e.acked
}

// level returns the third quartile of the bytes in flight.
func (e *exchange) level() float64 { return e.inFlight[len(e.inFlight)*3/4] }

// sampleInterval is the time between two samples, s.
func (e *exchange) sampleInterval() float64 { return e.span / float64(len(e.inFlight)-1) }

// ownWindow reports whether the bytes in flight stay constant, below all windows of TCP, while the other end keeps
// sending messages: then the program has a window of its own, which the messages open. Samples further apart than a
// round trip would show blocks in the same way.
func (e *exchange) ownWindow() bool {
	level := e.level()
	flat := 0.0
	for _, n := range e.inFlight {
		if n >= threshold.FlatShare.Value*level {
			flat++
		}
	}
	rounds := min(e.span/max(e.rtt, 1e-6), float64(len(e.inFlight)-1))
	return level >= threshold.ProbeSegments.Value*e.mss &&
		e.rtt >= threshold.SamplesPerExchange.Value*e.sampleInterval() &&
		e.window >= threshold.ProgramWindowRoom.Value*level && e.cwnd > level &&
		flat >= threshold.WatchedFlat.Value*float64(len(e.inFlight)) &&
		threshold.FlatShare.Value*e.inFlight[len(e.inFlight)-1] <= level &&
		rounds >= threshold.MinRounds.Value && e.messages >= threshold.ExchangesRestart.Value*rounds &&
		e.came <= threshold.ProgramWindowResponses.Value*e.acked
}
