package limiter

import (
	"cmp"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// connection is one TCP connection seen from its sender, cut into rounds, with what its
// receiver knew at the same time.
type connection struct {
	sender   *transfer.Stream
	receiver *transfer.Stream // nil: cannot be seen
	spec     *transfer.Socket // the sender's
	have     transfer.Fields  // what every sample of the sender tells
	mss      int64
	samples  []transfer.Sample
	rounds   []round
}

// round is a stretch of at least two round trips, long enough for its rate to mean
// something whatever the sampling clock hits. Counters are differenced over it.
type round struct {
	samples []transfer.Sample // the sender's, oldest first; the counters of start are not among them
	reader  []transfer.Sample // the receiver's in the same time, if it can be seen
	start   transfer.Sample
	end     transfer.Sample
	length  time.Duration
	bps     float64 // payload acknowledged
}

const (
	roundTrips    = 2
	shortestRound = 50 * time.Millisecond
	// longest is the longest time that is believed: a far end's clock is its own affair.
	longest = 7 * 24 * time.Hour
)

func newConnection(r *transfer.Result, i int, minRTT time.Duration) *connection {
	s := &r.Sender().Streams[i]
	c := &connection{sender: s, receiver: partner(r.Receiver(), r.Sender(), i), mss: 1448, spec: &r.Spec.Near}
	if r.Spec.Direction == transfer.Down {
		c.spec = &r.Spec.Far
	}
	if s.Handshake != nil && s.Handshake.MSS > 0 {
		c.mss = int64(s.Handshake.MSS)
	}
	c.samples = during(s)
	c.have = common(c.samples)
	c.rounds = cut(s, c.samples, max(roundTrips*minRTT, shortestRound), c.mss)
	if c.receiver != nil {
		c.alignReader(s.First - c.receiver.First)
	}
	return c
}

// partner finds the receiver's half of the sender's stream i: by address, or by position
// where an address translator stands between.
func partner(receiver, sender *transfer.End, i int) *transfer.Stream {
	if receiver == nil {
		return nil
	}
	s := &sender.Streams[i]
	for j := range receiver.Streams {
		if p := &receiver.Streams[j]; p.Remote == s.Local && s.Local.IsValid() && p.Remote.Port() != 0 {
			return p
		}
	}
	if len(receiver.Streams) == len(sender.Streams) {
		return &receiver.Streams[i]
	}
	return nil
}

// during returns the stream's samples between its first and last byte; the last of them
// may lie just after, where the final counters were read.
func during(s *transfer.Stream) []transfer.Sample {
	var kept []transfer.Sample
	for _, sample := range s.Samples {
		if s.First < 0 || sample.At <= s.First || sample.At > longest || len(kept) > 0 && sample.At <= kept[len(kept)-1].At {
			continue
		}
		if len(kept) > 0 && kept[len(kept)-1].At >= s.Last && s.Last > 0 {
			break
		}
		kept = append(kept, sample)
	}
	return kept
}

func common(samples []transfer.Sample) transfer.Fields {
	if len(samples) == 0 {
		return 0
	}
	have := samples[0].Have
	for _, s := range samples {
		have &= s.Have
	}
	return have
}

// cut makes rounds of at least the given length; what is left at the end joins the last.
func cut(s *transfer.Stream, samples []transfer.Sample, least time.Duration, mss int64) (rounds []round) {
	const initialWindow = 10 // segments, RFC 6928
	start := transfer.Sample{At: s.First, Cwnd: initialWindow * mss}
	from := 0
	for i, sample := range samples {
		final := i == len(samples)-1
		if sample.At-start.At < least && !final {
			continue
		}
		if final && sample.At-start.At < least/2 && len(rounds) > 0 {
			from -= len(rounds[len(rounds)-1].samples)
			start = rounds[len(rounds)-1].start
			rounds = rounds[:len(rounds)-1]
		}
		r := round{samples: samples[from : i+1], start: start, end: sample, length: sample.At - start.At}
		r.bps = float64(sample.Acked-start.Acked) * 8 / r.length.Seconds()
		rounds = append(rounds, r)
		start, from = sample, i+1
	}
	return rounds
}

// alignReader gives each round the receiver's samples of the same time; offset is added
// to the receiver's clock.
func (c *connection) alignReader(offset time.Duration) {
	all := c.receiver.Samples
	at := func(t time.Duration) int {
		i, _ := slices.BinarySearchFunc(all, t, func(s transfer.Sample, t time.Duration) int { return cmp.Compare(s.At+offset, t) })
		return i
	}
	for i := range c.rounds {
		r := &c.rounds[i]
		r.reader = all[at(r.start.At):max(at(r.end.At), at(r.start.At))]
	}
}

func (c *connection) has(f transfer.Fields) bool { return c.have&f == f }

// spent is how far one of the sender's clocks ran in the round.
func (r *round) spent(clock func(*transfer.Sample) time.Duration) time.Duration {
	return min(max(clock(&r.end)-clock(&r.start), 0), r.length)
}

// portion is the share of the round's samples for which is holds, or 0 without samples.
func portion(samples []transfer.Sample, is func(*transfer.Sample) bool) float64 {
	if len(samples) == 0 {
		return 0
	}
	n := 0
	for i := range samples {
		if is(&samples[i]) {
			n++
		}
	}
	return float64(n) / float64(len(samples))
}

func mean(samples []transfer.Sample, value func(*transfer.Sample) float64) float64 {
	sum := 0.0
	for i := range samples {
		sum += value(&samples[i])
	}
	return sum / float64(max(len(samples), 1))
}

func scale(d time.Duration, share float64) time.Duration { return time.Duration(float64(d) * share) }
