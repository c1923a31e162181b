package limiter

import (
	"fmt"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// worthTelling is the share of time from which a limiter's evidence is told.
const worthTelling = 0.05

// evidence tells what supports the shares, the largest first, and then which window was
// full without limiting.
func (h *hearing) evidence(shares Shares) (all []Evidence) {
	for _, name := range shares.Top() {
		if shares[name] < worthTelling {
			continue
		}
		text, values := h.tell(name, shares[name])
		if text == "" {
			continue
		}
		all = append(all, Evidence{name, text, values})
	}
	if shares[Bottleneck] >= worthTelling {
		all = append(all, h.alsoFull()...)
	}
	return all
}

func (h *hearing) tell(name Name, share float64) (string, map[string]float64) {
	c := h.connections[0]
	p := h.path
	took := fmt.Sprintf("%s of the time", percent(share))
	switch name {
	case h.network.name:
		return h.network.text, h.network.values
	case Bottleneck:
		return fmt.Sprintf("once the congestion window was open, the path gave a steady %s and a queue stood in it %s", units.Rate(p.top), took), nil
	case Unknown:
		return "the sender's kernel does not tell what held it back " + took, nil
	case Application:
		text := "the sending program had nothing to send " + took
		if paused := h.sum((*connection).paused); paused > 0 {
			text += fmt.Sprintf(" (it chose not to write for %s of %s)", units.Time(paused), units.Time(h.total))
		}
		if awaited := h.sum((*connection).awaited); awaited > 0 {
			text += fmt.Sprintf(" (it waited for the other program's answer for %s of %s)", units.Time(awaited), units.Time(h.total))
		}
		return text, map[string]float64{"idle_s": h.sum((*connection).idle).Seconds()}
	case SendBuffer:
		size := h.typical((*connection).outstanding)
		text := fmt.Sprintf("the send buffer lets out %s, which at %s allows %s; the writer waited for space %s of the time",
			units.Size(size).Exact(), units.Time(p.rtt), units.Rate(p.carries(size)), percent(ratio(h.sum((*connection).blocked), h.total)))
		if h.sender.BufferRule != "" {
			text += "; rule in force: " + h.sender.BufferRule
		}
		return text, map[string]float64{"outstanding_bytes": float64(size), "rtt_s": p.rtt.Seconds(), "granted_bytes": float64(c.sender.SendBuffer.Granted)}
	case ReceiverWindow:
		size := h.typical((*connection).window)
		return fmt.Sprintf("receive window %s at %s allows %s; full %s", units.Size(size).Exact(), units.Time(p.rtt), units.Rate(p.carries(size)), took),
			map[string]float64{"window_bytes": float64(size), "rtt_s": p.rtt.Seconds()}
	case ReceiverApplication:
		return h.tellReader(took)
	case SlowStart:
		return fmt.Sprintf("the congestion window was still opening %s; the transfer lasted %.0f round trips", took,
				float64(h.total)/float64(len(h.connections))/float64(max(p.minRTT, 1))),
			map[string]float64{"rtt_s": p.minRTT.Seconds()}
	case NagleDelayedAck:
		return "less than a segment waited for the acknowledgement of the one before it " + took + ", with room in every window (Nagle's rule against a delayed ACK)", nil
	case MTUBlackHole:
		return "nothing at all got through while segments were sent again and timed out " + took, nil
	case Pacing:
		text := "data waited with room in every window " + took + ", at the rate that the socket is paced to"
		if c.spec.PacingBps == 0 {
			return text, nil
		}
		return fmt.Sprintf("%s (%s asked)", text, units.Rate(c.spec.PacingBps)), map[string]float64{"pacing_bps": c.spec.PacingBps}
	case LocalQueue:
		return fmt.Sprintf("data waited unsent %s although the congestion window (%s) had room for more than was in flight (%s) and nothing was lost: this host's own queue holds it back",
				took, units.Size(h.typical((*connection).congestionWindow)).Exact(), units.Size(h.typical((*connection).outstanding)).Exact()),
			map[string]float64{"cwnd_bytes": float64(h.typical((*connection).congestionWindow))}
	case CPU:
		return h.tellCPU()
	}
	return "", nil
}

func (h *hearing) tellReader(took string) (string, map[string]float64) {
	if h.receiver == nil {
		return fmt.Sprintf("the receiver's window kept closing and held data back %s", took), nil
	}
	var unread, paused, n float64
	for _, c := range h.connections {
		for i := range c.rounds {
			r := &c.rounds[i]
			unread += mean(r.reader, func(s *transfer.Sample) float64 { return float64(s.Queued) })
			n++
			paused += c.readerPaused(r).Seconds()
		}
	}
	unread /= max(n, 1)
	return fmt.Sprintf("the receiving program left %s unread on average and so closed the window %s; it chose not to read for %s",
			units.Size(unread), took, units.Time(seconds(paused))),
		map[string]float64{"unread_bytes": unread, "paused_s": paused}
}

func (h *hearing) tellCPU() (string, map[string]float64) {
	running := h.connections[0].running
	if starved := h.connections[0].starved; !saturated(h.sender) && running < saturatedThread && starved >= starvedMatters {
		return fmt.Sprintf("the writer was ready but had no core %s of the time, with nothing left to send: other programs hold it, or its share is used up", percent(starved)),
			map[string]float64{"starved_ratio": starved}
	}
	if !saturated(h.sender) && running < saturatedThread {
		if h.receiver == nil || h.receiver.CPU == nil {
			return "data waited to be read by a program that had no core", nil
		}
		if starved := h.receiver.CPU.StarvedThread; !saturated(h.receiver) {
			return fmt.Sprintf("the receiver's data thread was ready but had no core %s of the time, while data waited to be read", percent(starved)),
				map[string]float64{"starved_ratio": starved}
		}
		thread := h.receiver.CPU.BusiestThread
		return fmt.Sprintf("the receiver's data thread ran %s of the time while data waited to be read", percent(thread)),
			map[string]float64{"busiest_thread_ratio": thread}
	}
	text := fmt.Sprintf("the writer waited for nothing %s of the time", percent(running))
	if h.sender.CPU == nil {
		return text, nil
	}
	return fmt.Sprintf("%s; its thread ran %s of it", text, percent(h.sender.CPU.BusiestThread)),
		map[string]float64{"busiest_thread_ratio": h.sender.CPU.BusiestThread}
}

// alsoFull names the windows that were full behind a full link and did not limit.
func (h *hearing) alsoFull() (all []Evidence) {
	for _, w := range []struct {
		name  Name
		what  string
		held  time.Duration
		bytes func(*connection, *round) int64
	}{
		{ReceiverWindow, "receive window", h.sum((*connection).windowLimited), (*connection).window},
		{SendBuffer, "send buffer", h.sum((*connection).sendLimited), (*connection).outstanding},
	} {
		if full := ratio(w.held, h.total); full > 0.25 && h.time[w.name] < w.held/2 {
			size := h.typical(w.bytes)
			all = append(all, Evidence{w.name, fmt.Sprintf("%s also full (%s of the time), but its %s would allow %s",
				w.what, percent(full), units.Size(size).Exact(), units.Rate(h.path.allows(size))),
				map[string]float64{"window_bytes": float64(size), "full_ratio": full}})
		}
	}
	return all
}

func (c *connection) congestionWindow(r *round) int64 { return r.end.Cwnd }

// sum adds a clock up over all rounds of all connections.
func (h *hearing) sum(clock func(*connection, *round) time.Duration) (sum time.Duration) {
	for _, c := range h.connections {
		for i := range c.rounds {
			sum += clock(c, &c.rounds[i])
		}
	}
	return sum
}

// typical is the median over all rounds of all connections.
func (h *hearing) typical(size func(*connection, *round) int64) int64 {
	var all []int64
	for _, c := range h.connections {
		for i := range c.rounds {
			all = append(all, size(c, &c.rounds[i]))
		}
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func ratio(a, b time.Duration) float64 {
	if b <= 0 {
		return 0
	}
	return float64(a) / float64(b)
}
