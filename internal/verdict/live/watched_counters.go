package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// undividedNetwork are the limiters that the kernel's clocks leave undivided.
var undividedNetwork = []verdict.Name{verdict.Congestion, verdict.Bottleneck, verdict.LocalQueue, verdict.Pacing}

// Tally counts the states of a connection at the samples of a period. A dump also reports states that no clock counts.
type Tally struct {
	samples uint16 // with the sizes of the socket's buffers, or by a list
	sending uint16 // of them, those with the state of the send buffer
	dry     uint16 // all that was written was on its way, and the send buffer was full
	roomy   uint16 // the same, and it had room
	// half: the same, and it had some room, but less than a third, which is when a writer that waits
	// is woken.
	half    uint16
	small   uint16  // less than a segment waited for an acknowledgement
	unread  uint16  // received data was left unread
	fastest float32 // delivery, bit/s
}

// Add counts a sample of a connection with segments of mss bytes. estimated reports that its clocks are estimated from
// the samples of a list.
func (y *Tally) Add(s *transfer.Sample, q Queues, estimated bool, mss int64) {
	if q.SendBuffer == 0 && !estimated || s.Have&transfer.HaveNotSent == 0 || y.samples == 1<<16-1 {
		return
	}
	y.samples++
	y.fastest = max(y.fastest, float32(s.DeliveryBps))
	if unreadRatio(s, q.Unread) >= threshold.Unread.Value {
		y.unread++
	}
	if q.SendBuffer == 0 || estimated && q.Unacked == 0 { // the latter is idle time by the clocks already
		return
	}
	y.sending++
	switch full := float64(q.SendQueued) / float64(q.SendBuffer); {
	case s.Recovering || s.Lost > 0:
	case s.NotSent > 0 && s.NotSent < mss && s.InFlight > 0 && 4*s.InFlight < s.Cwnd:
		y.small++
	case (s.NotSent < mss || s.AppLimited) && full >= threshold.FilledBuffer:
		y.dry++
	case s.NotSent < mss && full < threshold.RoomyBuffer:
		y.roomy++
	case s.NotSent < mss:
		y.half++
	}
}

// ratio returns a count as a share of the samples with the state of the send buffer.
func (y *Tally) ratio(n uint16) float64 {
	if y.sending == 0 {
		return 0
	}
	return float64(n) / float64(y.sending)
}

// unreadRatio returns the share of the receive window that is filled with unread data.
func unreadRatio(s *transfer.Sample, unread int64) float64 {
	if s.Have&transfer.HaveReceiveWnd == 0 || unread <= 0 {
		return 0
	}
	return float64(unread) / float64(unread+s.ReceiveWnd)
}

// AllUnread reports whether data was left unread in all samples.
func (y *Tally) AllUnread() bool { return y.samples > 0 && y.unread == y.samples }

// ByCounters judges the sent data of a connection between two samples by the kernel's cumulative clocks and by the
// tally of the samples in between. It knows less than the live judge: the network stays undivided, and a full window
// may be small or its program may not read.
func ByCounters(from, to *transfer.Sample, seen Tally) verdict.Verdict {
	span := to.At - from.At
	const clocks = transfer.HaveLimits
	if span <= 0 || from.Have&to.Have&clocks == 0 {
		return verdict.Unobserved(verdict.Evidence{Code: verdict.KernelSilent, Values: verdict.Values{"time_ratio": 1}},
			append([]verdict.Name{verdict.Application, verdict.SendBuffer, verdict.ReceiverWindow}, undividedNetwork...)...)
	}
	part := func(d time.Duration) float64 { return min(max(d.Seconds()/span.Seconds(), 0), 1) }
	busy := part(to.Busy - from.Busy)
	window := min(part(to.RwndLimited-from.RwndLimited), busy)
	buffer := min(part(to.SndbufLimited-from.SndbufLimited), busy-window)
	left := max(busy-window-buffer, 0)
	if seen.dry == 0 { // a writer that waits has filled it before
		seen.roomy = seen.roomy + seen.half
		seen.half = 0
	}
	if seen.ratio(seen.small) >= threshold.CandidateShare.Value {
		// The program may then wait for a response to the data that waits to be sent.
		seen.roomy = 0
		seen.half = 0
	}
	dry := left * seen.ratio(seen.dry)
	roomy := left * seen.ratio(seen.roomy)
	either := left * seen.ratio(seen.half)
	beyond := 0.0 // a full window that allows more than the rate, over the empty path
	filled := 0.0 // the same of the send buffer
	if seen.linkMayBeFull(from, to, span) {
		dry = 0
		either = 0
		filled = buffer
		buffer = 0 // its data is in a queue
		if windowAllowsMore(from, to, span) {
			beyond = window
			window = 0
		}
	} else if to.Received > from.Received { // one request may fill the buffer
		either = either + dry
		dry = 0
	}
	rest := left - dry - roomy - either + beyond + filled
	unread := verdict.ReceiverWindow
	if to.Have&transfer.HaveSendWnd != 0 && to.SendWnd == 0 {
		unread = verdict.ReceiverApplication // a window that is shut, not small
	}
	shares := verdict.Shares{}
	for name, share := range map[verdict.Name]float64{verdict.Application: 1 - busy + roomy, unread: window,
		verdict.SendBuffer: buffer + dry, verdict.Sender: either, verdict.Unknown: rest} {
		if share > 1e-9 {
			shares[name] = share
		}
	}
	v := verdict.Headline(shares)
	switch v.Limiter {
	case verdict.Unknown:
		v.Candidates = seen.candidates(to)
		if beyond > 0 {
			v.Candidates = append([]verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}, v.Candidates...)
		}
		if filled > 0 && !slices.Contains(v.Candidates, verdict.SendBuffer) {
			v.Candidates = append(v.Candidates, verdict.SendBuffer)
		}
	case verdict.Mixed:
		if rest >= threshold.CandidateShare.Value {
			v.Candidates = append(v.Candidates, undividedNetwork...)
		}
	case verdict.ReceiverWindow, verdict.ReceiverApplication:
		v.Confidence = verdict.Medium
		v.Candidates = []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}
	case verdict.Sender:
		v.Candidates = []verdict.Name{verdict.Application, verdict.SendBuffer}
	default:
		v.Confidence = verdict.LowerUnless(dry+roomy < shares[v.Limiter]/2 || seen.sending >= threshold.SeveralSamples,
			verdict.Medium)
	}
	v.Evidence = []verdict.Evidence{{Limiter: v.Limiter, Code: verdict.ClocksAlone, Values: verdict.Values{
		"window_s": span.Seconds(), "idle_ratio": 1 - busy, "receiver_ratio": window + beyond,
		"send_buffer_ratio": buffer + filled}}}
	if dry+roomy+either > 0 {
		v.Evidence = append(v.Evidence, verdict.Evidence{Limiter: v.Limiter, Code: verdict.SendQueueSampled,
			Values: verdict.Values{"readings": float64(seen.sending), "full_ratio": seen.ratio(seen.dry),
				"room_ratio": seen.ratio(seen.roomy)}})
	}
	return v
}

// linkMayBeFull reports that a queue is in the path and no delivery was faster than the mean rate: the link may then be
// the reason for the full send buffer.
func (y *Tally) linkMayBeFull(from, to *transfer.Sample, span time.Duration) bool {
	rate := float64(to.Acked-from.Acked) * 8 / span.Seconds()
	return rate > 0 && to.MinRTT > 0 && to.RTT.Seconds() >= threshold.QueuedRTT*to.MinRTT.Seconds() &&
		float64(y.fastest) < threshold.BurstRate*rate
}

// windowAllowsMore says that the peer's window, over the least round trip, is well above the rate.
func windowAllowsMore(from, to *transfer.Sample, span time.Duration) bool {
	rate := float64(to.Acked-from.Acked) / span.Seconds()
	return float64(to.SendWnd) > threshold.WindowLimits.Value*rate*to.MinRTT.Seconds()
}

// candidates returns the candidates if the network, or something like it, took most of the time.
func (y *Tally) candidates(to *transfer.Sample) []verdict.Name {
	all := slices.Clone(undividedNetwork)
	if to.RTT.Seconds() >= threshold.QueuedRTT*to.MinRTT.Seconds() {
		all = append(all, verdict.AckPath)
	}
	if to.Timeouts > 0 {
		all = append(all, verdict.MTUBlackHole)
	}
	if y.small > 0 {
		all = append([]verdict.Name{verdict.NagleDelayedAck}, all...)
	}
	if y.dry > 0 || y.sending == 0 {
		all = append([]verdict.Name{verdict.SendBuffer}, all...)
	}
	if to.AppLimited || to.NotSent == 0 || y.small > 0 {
		// A dialogue over a long path always has something outstanding.
		all = append([]verdict.Name{verdict.Application}, all...)
	}
	return all
}

// UnseenSender returns the verdict on received data if only the clocks were read: they measure sending alone.
func (y *Tally) UnseenSender() verdict.Verdict {
	v := verdict.Unobserved(verdict.Evidence{Code: verdict.SenderUnseen},
		append([]verdict.Name{verdict.Application, verdict.SendBuffer, verdict.ReceiverWindow,
			verdict.ReceiverApplication},
			append(slices.Clone(undividedNetwork), verdict.AckPath, verdict.NagleDelayedAck)...)...)
	share := 0.0
	if y.samples > 0 {
		share = float64(y.unread) / float64(y.samples)
	}
	if share < threshold.HeadlineShare.Value {
		return v
	}
	v.Limiter = verdict.ReceiverApplication
	v.Candidates = nil
	v.Shares = verdict.Shares{verdict.ReceiverApplication: share}
	if share < 1 {
		v.Shares[verdict.Unknown] = 1 - share
	}
	v.Confidence = verdict.LowerUnless(y.samples >= threshold.SeveralSamples, verdict.Medium)
	v.Evidence = []verdict.Evidence{{Limiter: verdict.ReceiverApplication, Code: verdict.Unread,
		Values: verdict.Values{"time_ratio": share}}}
	return v
}

// LowerConfidence returns a verdict by clocks that were estimated from the samples of a list.
func (y *Tally) LowerConfidence(v verdict.Verdict) verdict.Verdict {
	if v.Limiter != verdict.Unknown {
		v.Confidence = verdict.Low
	}
	for i := range v.Evidence {
		if e := &v.Evidence[i]; e.Code == verdict.ClocksAlone {
			delete(e.Values, "send_buffer_ratio")
			e.Code = verdict.SnapshotsAlone
			e.Values["readings"] = float64(y.samples)
		}
	}
	return v
}
