package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// judgeReceiver judges a transfer without data from the sender: a web server, a stock iperf3. The receiver knows its
// own program and its own window for certain, and no other limiter of the sender.
func judgeReceiver(r *transfer.Result, as scope) verdict.Verdict {
	end := r.Receiver()
	minRTT := minRTTOf(end)
	var total, unread, window time.Duration
	var largest int64
	have := ^transfer.Fields(0)
	for i := range end.Streams {
		_, samples := during(&end.Streams[i])
		if len(samples) > 0 {
			have &= common(samples)
		}
		for from, j := 0, 1; j < len(samples); j++ {
			b := &samples[j]
			if b.At-samples[from].At < time.Duration(threshold.EvenedOut.Value)*minRTT && j < len(samples)-1 {
				continue // a window's worth comes in bursts, a round trip apart
			}
			span := samples[from : j+1]
			from = j
			d := unreadTime(span)
			total += b.At - span[0].At
			unread += d
			if wnd := largestWindow(span); windowExplains(&span[0], b, wnd, minRTT) {
				window += b.At - span[0].At - d
				largest = max(largest, wnd)
			}
		}
	}
	if total == 0 {
		return verdict.Unobserved(verdict.Evidence{Code: verdict.SampledRarely}, verdict.Application, verdict.SendBuffer,
			verdict.Congestion, verdict.Bottleneck)
	}
	shares := verdict.Shares{}
	for name, d := range map[verdict.Name]time.Duration{verdict.ReceiverApplication: unread,
		verdict.ReceiverWindow: window, verdict.Unknown: total - unread - window} {
		if d > 0 {
			shares[name] = ratio(d, total)
		}
	}
	return concludeReceiver(verdict.Headline(shares), end, have, largest, minRTT, as)
}

// unreadTime is the time of a span in which the receiving program left data unread.
func unreadTime(span []transfer.Sample) (sum time.Duration) {
	for i := 1; i < len(span); i++ {
		a := &span[i-1]
		b := &span[i]
		if d := b.At - a.At; leftUnread(b) && float64(b.Blocked-a.Blocked) < threshold.MostlyWaiting.Value*float64(d) {
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
	have := transfer.HaveQueue | transfer.HaveReceiveWnd
	return s.Have&have == have && s.Queued > 0 &&
		float64(s.Queued) >= threshold.Unread.Value*float64(s.Queued+s.ReceiveWnd)
}

// windowExplains says whether a whole window came in every round trip.
func windowExplains(a, b *transfer.Sample, window int64, minRTT time.Duration) bool {
	have := transfer.HaveReceived | transfer.HaveReceiveWnd
	if a.Have&b.Have&have != have || minRTT <= 0 || b.At-a.At <= 0 {
		return false
	}
	rate := float64(b.Received-a.Received) / (b.At - a.At).Seconds()
	return float64(window)/minRTT.Seconds() <= threshold.WindowLimits.Value*rate
}

func concludeReceiver(v verdict.Verdict, end *transfer.End, have transfer.Fields, window int64,
	minRTT time.Duration, as scope) verdict.Verdict {
	add := func(n verdict.Name, c verdict.Code, values verdict.Values) {
		v.Evidence = append(v.Evidence, verdict.Evidence{Limiter: n, Code: c, Values: values})
	}
	if share := v.Shares[verdict.ReceiverApplication]; share >= threshold.EvidenceShare.Value {
		add(verdict.ReceiverApplication, verdict.Unread, verdict.Values{"time_ratio": share})
	}
	if share := v.Shares[verdict.ReceiverWindow]; share >= threshold.EvidenceShare.Value {
		add(verdict.ReceiverWindow, verdict.WindowEachRoundTrip, verdict.Values{"time_ratio": share,
			"window_bytes": float64(window),
			"rtt_s":        minRTT.Seconds(), "allows_bps": float64(window) * 8 / minRTT.Seconds()})
	}
	switch v.Limiter {
	case verdict.ReceiverApplication:
		v.Confidence = verdict.LowerUnless(have&transfer.HaveProgram != 0, verdict.High)
	case verdict.ReceiverWindow:
		v.Confidence = verdict.Medium
		v.Subtype = ownWindowSubtype(&end.Streams[0], window, as.watched != nil)
	default:
		open := []verdict.Name{verdict.Application, verdict.SendBuffer, verdict.Congestion, verdict.Bottleneck,
			verdict.LocalQueue, verdict.Pacing, verdict.CPU, verdict.AckPath, verdict.NagleDelayedAck}
		for _, own := range []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication} {
			if v.Shares[own] >= threshold.CandidateShare.Value {
				open = slices.Insert(open, 0, own)
			}
		}
		v.Candidates = open
		add(verdict.Unknown, verdict.SenderUnseen, nil)
	}
	return v
}

// ownWindowSubtype returns the reason for the size of the receiver's own window. Another program's buffer is known
// to be automatic at its ceiling only.
func ownWindowSubtype(s *transfer.Stream, window int64, isWatched bool) string {
	f := verdict.WindowFacts{Largest: window, Middle: window, Last: window,
		SizeKnown: !isWatched || !s.ReceiveBuffer.Automatic() || s.ReceiveBuffer.AutomaticMax > 0,
		Automatic: s.ReceiveBuffer.Automatic(), Constant: s.ReceiveBuffer.Constant,
		Requested: int64(s.ReceiveBuffer.Requested)}
	if s.Handshake != nil {
		f.Scale = s.Handshake.ReceiveScale
		f.ScaleKnown = true
	}
	return f.Subtype()
}
