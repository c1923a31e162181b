package limiter

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Of what the round trip had waited, acknowledgements on their way back waited at least
// this much where they are what limits, and this little where data surely is.
const (
	mostlyAnswers = 0.7
	hardlyAnswers = 0.35
)

// answersShare is the part of what stands in the path that are acknowledgements on their
// way back, where nothing is lost and one connection was seen at both ends; else 0. Their
// counters tell: by how much later than the receiver had them the sender learns that bytes
// arrived, as far as that is more than at the best of times; the ends' clocks may differ by
// any constant.
func (h *hearing) answersShare() float64 {
	if h.receiver == nil || len(h.connections) != 1 || h.path.resent > losing || !h.path.standing() {
		return 0
	}
	return ratio(h.connections[0].answersWaited(), h.path.rtt-h.path.base)
}

// answersWaited is by how much longer than at best it took on the mean until the sender
// knew what the receiver had, 0 where that cannot be told.
func (c *connection) answersWaited() time.Duration {
	const (
		few      = 10
		resolved = 20 * time.Millisecond
	)
	if c.receiver == nil {
		return 0
	}
	lags, every := c.answerLags()
	if len(lags) < few {
		return 0
	}
	slices.Sort(every)
	least, sum := lags[0], time.Duration(0)
	for i := 1; i+1 < len(lags); i++ {
		// A single sample may be off: its thread had to wait for a core.
		a, b, c := lags[i-1], lags[i], lags[i+1]
		lag := max(min(a, b), min(max(a, b), c))
		sum += lag
		if i == 1 || lag < least {
			least = lag
		}
	}
	waited := sum/time.Duration(len(lags)-2) - least
	if waited < max(resolved, 2*every[len(every)/2]) {
		return 0
	}
	return waited
}

// answerLags are the times between bytes' arrival by the receiver's clock and their
// acknowledgement's by the sender's, sample by sample, and how far apart the receiver was
// sampled.
func (c *connection) answerLags() (lags, every []time.Duration) {
	_, arrived := during(c.receiver)
	next := 1
	for i := range c.samples {
		s := &c.samples[i]
		if s.Have&transfer.HaveAcked == 0 {
			return nil, nil
		}
		for next < len(arrived) && arrived[next].Received < s.Acked {
			next++
		}
		if next >= len(arrived) {
			break
		}
		a, b := &arrived[next-1], &arrived[next]
		if a.Have&b.Have&transfer.HaveReceived == 0 || a.Received > s.Acked || b.Received <= a.Received {
			continue
		}
		part := float64(s.Acked-a.Received) / float64(b.Received-a.Received)
		every = append(every, b.At-a.At)
		lags = append(lags, s.At-a.At-scale(b.At-a.At, part))
	}
	return lags, every
}
