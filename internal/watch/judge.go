package watch

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

const (
	// fewestSamples of the fast tier make a window that the live judge is asked about.
	fewestSamples = 20
	// least is the payload of a direction in a period below which nothing is judged: a
	// question or an acknowledgement of the program's own.
	least = 16 << 10
	// crowdedSend is the part of the send buffer from which a writer sleeps, roomySend the
	// part below which it surely does not (net/core/stream.c, sk_stream_write_space: it is
	// woken when a third is free).
	crowdedSend, roomySend = 2.0 / 3, 1.0 / 2
	// filledSend is the part that a writer which waits has reached: a segment more is let in.
	filledSend = 0.95
)

// network are the limiters that the kernel's clocks leave undivided.
var network = []verdict.Name{verdict.Congestion, verdict.Bottleneck, verdict.LocalQueue, verdict.Pacing}

// coarse judges what a connection sent between two readings by the kernel's cumulative
// clocks alone. It knows less than the live judge and says so: the network stays undivided,
// and a window that was full may be small or not read from.
func coarse(from *counters, to *transfer.Sample) verdict.Verdict {
	span := to.At - from.At
	const clocks = transfer.HaveLimits
	if span <= 0 || from.Have&to.Have&clocks == 0 {
		return verdict.Unseen(verdict.Evidence{Code: verdict.KernelSilent, Values: verdict.Values{"time_ratio": 1}},
			append([]verdict.Name{verdict.Application, verdict.SendBuffer, verdict.ReceiverWindow}, network...)...)
	}
	part := func(d time.Duration) float64 { return min(max(d.Seconds()/span.Seconds(), 0), 1) }
	busy := part(to.Busy - from.Busy)
	window := min(part(to.ReceiveLimited-from.ReceiveLimited), busy)
	buffer := min(part(to.SendLimited-from.SendLimited), busy-window)
	shares := verdict.Shares{}
	rest := max(busy-window-buffer, 0)
	unread := verdict.ReceiverWindow
	if to.Have&transfer.HaveSendWnd != 0 && to.SendWnd == 0 {
		unread = verdict.ReceiverApplication // a window that is shut, not small
	}
	for name, share := range map[verdict.Name]float64{verdict.Application: 1 - busy, unread: window,
		verdict.SendBuffer: buffer, verdict.Unknown: rest} {
		if share > 0 {
			shares[name] = share
		}
	}
	v := verdict.Headline(shares)
	switch v.Limiter {
	case verdict.Unknown:
		v.Candidates = slices.Clone(network)
		if to.AppLimited || to.NotSent == 0 {
			// A dialogue over a long path always has something outstanding.
			v.Candidates = append([]verdict.Name{verdict.Application}, v.Candidates...)
		}
	case verdict.Mixed:
		if rest >= candidate {
			v.Candidates = append(v.Candidates, network...)
		}
	case verdict.ReceiverWindow, verdict.ReceiverApplication:
		v.Confidence = verdict.Medium
		v.Candidates = []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}
	default:
		v.Confidence = verdict.Medium
	}
	v.Evidence = []verdict.Evidence{{Limiter: v.Limiter, Code: verdict.ClocksAlone, Values: verdict.Values{
		"window_s": span.Seconds(), "idle_ratio": 1 - busy, "receiver_ratio": window, "send_buffer_ratio": buffer}}}
	return v
}

// candidate is the share of time that makes a limiter one of a mixed verdict's.
const candidate = 0.1

// fine judges a window of the fast tier's samples. What the live judge leaves open between
// the program and its send buffer is decided by how full that buffer was.
func fine(c *Connection, sends bool) verdict.Verdict {
	w := live.Watched{Sends: sends, Congestion: c.Congestion, Handshake: c.Handshake}
	w.Send.Granted, w.Receive.Granted = int(c.SendBuffer), int(c.ReceiveBuffer)
	for i := range c.window {
		t := &c.window[i]
		s := t.Sample
		s.Have |= transfer.HaveQueue
		if s.Queued = t.Unacked; !sends {
			s.Queued = t.Unread
		}
		w.Send.Effective = max(w.Send.Effective, int(s.InFlight))
		w.Receive.Effective = max(w.Receive.Effective, int(s.ReceiveWnd))
		w.Samples = append(w.Samples, s)
	}
	v := live.JudgeWatched(w)
	for i := range v.Evidence {
		delete(v.Evidence[i].Values, "blocked_ratio") // the writer's own clock is not known
	}
	if sends {
		v = pair(c.divide(v))
	}
	return v
}

// writerBlocks says whether the program ever waited for the send buffer in the window: it
// writes until what is queued reaches the buffer's size (sk_stream_memory_free), so where it
// never came near that it never waited.
func (c *Connection) writerBlocks() bool {
	for i := range c.window {
		t := &c.window[i]
		if t.SendBuffer > 0 && float64(t.SendQueued) >= filledSend*float64(t.SendBuffer) {
			return true
		}
	}
	first, last := &c.window[0].Sample, &c.window[len(c.window)-1].Sample
	return last.SendLimited > first.SendLimited
}

// pair leaves open what a sender cannot tell: whether the window that held it back is small,
// or the program behind it does not read.
func pair(v verdict.Verdict) verdict.Verdict {
	small, unread := v.Shares[verdict.ReceiverWindow], v.Shares[verdict.ReceiverApplication]
	if v.Limiter != verdict.ReceiverWindow && v.Limiter != verdict.ReceiverApplication || v.Subtype == verdict.Unscaled {
		return v
	}
	v.Candidates = []verdict.Name{verdict.ReceiverWindow, verdict.ReceiverApplication}
	if min(small, unread) >= candidate {
		v.Confidence = verdict.Low
	}
	return v
}

// divide gives the time in which all that was written was on its way to the send buffer
// where that was full, and to the program where it had room.
func (c *Connection) divide(v verdict.Verdict) verdict.Verdict {
	share := v.Shares[verdict.Sender]
	if share <= 0 {
		return v
	}
	mss := int64(1448)
	if c.Handshake != nil && c.Handshake.MSS > 0 {
		mss = int64(c.Handshake.MSS)
	}
	crowded, roomy, n := 0.0, 0.0, 0.0
	var used, size int64
	blocks := c.writerBlocks()
	for i := range c.window {
		t := &c.window[i]
		if t.Sample.NotSent >= mss || t.SendBuffer == 0 {
			continue
		}
		n++
		used, size = max(used, t.SendQueued), t.SendBuffer
		switch full := float64(t.SendQueued) / float64(t.SendBuffer); {
		case full >= crowdedSend && blocks:
			crowded++
		case full < roomySend || !blocks:
			roomy++
		}
	}
	if n == 0 {
		return v
	}
	shares := verdict.Shares{}
	for name, s := range v.Shares {
		shares[name] = s
	}
	delete(shares, verdict.Sender)
	for name, s := range map[verdict.Name]float64{verdict.SendBuffer: crowded / n, verdict.Application: roomy / n,
		verdict.Sender: 1 - (crowded+roomy)/n} {
		if s *= share; s > 1e-9 {
			shares[name] += s
		}
	}
	out := verdict.Headline(shares)
	out.Evidence = append(v.Evidence, verdict.Evidence{Limiter: verdict.Sender, Code: verdict.SendQueueSeen,
		Values: verdict.Values{"queued_bytes": float64(used), "granted_bytes": float64(size), "full_ratio": crowded / n,
			"room_ratio": roomy / n}})
	switch out.Limiter {
	case v.Limiter:
		out.Subtype, out.Confidence, out.Candidates = v.Subtype, v.Confidence, v.Candidates
	case verdict.Application, verdict.SendBuffer:
		out.Confidence = verdict.Medium
	case verdict.Sender:
		out.Candidates = []verdict.Name{verdict.Application, verdict.SendBuffer}
	}
	return out
}
