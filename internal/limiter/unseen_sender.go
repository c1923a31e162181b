package limiter

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// judgeReceiver judges a transfer whose sender cannot be seen: a web server, a stock
// iperf3. The receiver knows its own program and its own window for certain, and
// nothing of what else held the sender back.
func judgeReceiver(r *transfer.Result) Verdict {
	end := r.Receiver()
	minRTT := leastRTT(end)
	var total, reading, window time.Duration
	var largest int64
	have := ^transfer.Fields(0)
	for i := range end.Streams {
		_, samples := during(&end.Streams[i])
		if len(samples) > 0 {
			have &= common(samples)
		}
		for from, j := 0, 1; j < len(samples); j++ {
			b := &samples[j]
			if b.At-samples[from].At < evenedOut*minRTT && j < len(samples)-1 {
				continue // a window's worth comes in bursts, a round trip apart
			}
			span := samples[from : j+1]
			from = j
			d := unreadTime(span)
			total += b.At - span[0].At
			reading += d
			if wnd := largestWindow(span); windowExplains(&span[0], b, wnd, minRTT) {
				window += b.At - span[0].At - d
				largest = max(largest, wnd)
			}
		}
	}
	if total == 0 {
		return unseen("the sender cannot be seen and the receiver was sampled too rarely", Application, SendBuffer, Congestion, Bottleneck)
	}
	shares := Shares{}
	for name, d := range map[Name]time.Duration{ReceiverApplication: reading, ReceiverWindow: window, Unknown: total - reading - window} {
		if d > 0 {
			shares[name] = ratio(d, total)
		}
	}
	return concludeReceiver(headline(shares), end, have, largest, minRTT)
}

// evenedOut is over how many round trips a rate is one and not the moment of a burst.
const evenedOut = 4

// unreadTime is the time of a span in which the receiving program left data unread.
func unreadTime(span []transfer.Sample) (sum time.Duration) {
	for i := 1; i < len(span); i++ {
		a, b := &span[i-1], &span[i]
		if d := b.At - a.At; leftUnread(b) && b.Blocked-a.Blocked < d/2 {
			sum += d
		}
	}
	return sum
}

func largestWindow(span []transfer.Sample) (most int64) {
	for i := range span {
		most = max(most, span[i].ReceiveWnd)
	}
	return most
}

func leftUnread(s *transfer.Sample) bool {
	const matters = 0.25
	have := transfer.HaveQueue | transfer.HaveReceiveWnd
	return s.Have&have == have && s.Queued > 0 && float64(s.Queued) >= matters*float64(s.Queued+s.ReceiveWnd)
}

// windowExplains says whether a whole window came in every round trip.
func windowExplains(a, b *transfer.Sample, window int64, minRTT time.Duration) bool {
	have := transfer.HaveReceived | transfer.HaveReceiveWnd
	if a.Have&b.Have&have != have || minRTT <= 0 || b.At-a.At <= 0 {
		return false
	}
	rate := float64(b.Received-a.Received) / (b.At - a.At).Seconds()
	return float64(window)/minRTT.Seconds() <= fullNotLimiting*rate
}

func concludeReceiver(v Verdict, end *transfer.End, have transfer.Fields, window int64, minRTT time.Duration) Verdict {
	v.Evidence = nil
	if share := v.Shares[ReceiverApplication]; share >= worthTelling {
		v.Evidence = append(v.Evidence, Evidence{ReceiverApplication, "the receiving program left data unread " + percent(share) + " of the time", nil})
	}
	if share := v.Shares[ReceiverWindow]; share >= worthTelling {
		allows := units.Rate(float64(window) * 8 / minRTT.Seconds())
		v.Evidence = append(v.Evidence, Evidence{ReceiverWindow, fmt.Sprintf("receive window %s at %s allows %s, and that is what came %s of the time",
			units.Size(window).Exact(), units.Time(minRTT), allows, percent(share)), map[string]float64{"window_bytes": float64(window), "rtt_s": minRTT.Seconds()}})
	}
	switch v.Limiter {
	case ReceiverApplication:
		v.Confidence = when(have&transfer.HaveProgram != 0, High)
	case ReceiverWindow:
		v.Confidence = Medium
		v.Subtype = ownWindowSubtype(&end.Streams[0])
	default:
		v.Candidates = []Name{Application, SendBuffer, Congestion, Bottleneck, LocalQueue, Pacing, CPU}
		v.Evidence = append(v.Evidence, Evidence{Unknown, "the sender cannot be seen: its program, its buffer, loss and a full link look the same from here", nil})
	}
	return v
}

func ownWindowSubtype(s *transfer.Stream) string {
	switch {
	case !s.ReceiveBuffer.Automatic():
		return Fixed
	case s.Handshake != nil && s.Handshake.ReceiveScale <= 0:
		return Unscaled
	}
	return Stuck
}
