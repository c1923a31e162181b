package live

import (
	"sort"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// connection is one TCP connection seen from its sender, cut into rounds, with what its
// receiver knew at the same time.
type connection struct {
	sender           *transfer.Stream
	receiver         *transfer.Stream // nil: cannot be seen
	spec             *transfer.Socket // the sender's
	commonFields     transfer.Fields  // the fields that every sample of the sender has
	mss              int64
	hasResponses     bool // the peer sends often enough for the program to wait for its responses
	samples          []transfer.Sample
	rounds           []round
	delivered        []float64 // payload that had arrived at the receiver, sample by sample
	startedAt        time.Duration
	bufferEmptyRatio float64 // share of the time in which its writer waited with nothing unsent
	runningRatio     float64 // share of the time in which its writer waited for nothing
	runqueueRatio    float64 // share of the time in which its writer had no core, with nothing unsent
	windowFullRatio  float64 // share of the time in which the connection was rwnd-limited
	unsentRatio      float64 // share of the time in which data waited though every window had room
}

// round is a stretch of at least two round trips, long enough for its rate to mean
// something whatever the sampling clock hits. Counters are differenced over it.
type round struct {
	samples         []transfer.Sample // the sender's, oldest first; the counters of start are not among them
	receiverSamples []transfer.Sample // the receiver's around the same time, if it can be seen
	start           *transfer.Sample
	end             *transfer.Sample
	length          time.Duration
	bps             float64 // payload delivered
}

func newConnection(r *transfer.Result, i int, minRTT time.Duration) *connection {
	s := &r.Sender().Streams[i]
	c := &connection{sender: s, receiver: partner(r.Receiver(), r.Sender(), i), mss: s.Handshake.SegmentSize(),
		spec: &r.Spec.Near}
	if r.Spec.Direction == transfer.Down {
		c.spec = &r.Spec.Far
	}
	before, samples := during(s)
	c.samples = samples
	c.commonFields = common(c.samples)
	c.delivered = arrivals(samples, before, c.mss)
	if len(samples) == 0 {
		return c
	}
	c.rounds = cut(before, samples, max(scale(minRTT, threshold.RoundTrips.Value), threshold.ShortestRound.Time()), c.mss)
	var dry, ran, starved, rwndLimited, unsent, total time.Duration
	for i := range c.rounds {
		r := &c.rounds[i]
		r.bps = (c.arrivingBy(r.end.At) - c.arrivingBy(r.start.At)) * 8 / r.length.Seconds()
		dry += c.bufferEmptyTime(r)
		ran += max(c.writerRan(r), 0)
		starved += c.clockWhile(r, c.sendQueueEmpty, runqueueClock)
		rwndLimited += c.windowLimited(r)
		unsent += scale(r.length, c.unsentShare(r))
		total += r.length
	}
	c.runqueueRatio = ratio(starved, total)
	c.windowFullRatio = ratio(rwndLimited, total)
	c.bufferEmptyRatio = ratio(dry, total)
	c.runningRatio = ratio(ran, total)
	c.unsentRatio = ratio(unsent, total)
	c.startedAt = c.slowStartEnd(minRTT)
	c.hasResponses = c.respondsOften(minRTT)
	if c.receiver != nil {
		c.alignReader(s.First - c.receiver.First)
	}
	return c
}

// partner returns the receiver's half of the sender's stream i. It matches by address, or by position if a NAT is in
// the path.
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

// during returns the stream's samples from its first byte to its end: the last byte
// that was moved or, where the program had written all long before it was delivered,
// the last acknowledgement. before is the last sample ahead of the first byte: counters
// run from the connection's start.
func during(s *transfer.Stream) (before transfer.Sample, kept []transfer.Sample) {
	before.At = s.First
	end := lastProgress(s)
	from := 0
	for i := range s.Samples {
		sample := &s.Samples[i]
		switch {
		case s.First < 0 || sample.At < 0 || sample.At > threshold.MaxTime.Time():
		case sample.At <= s.First:
			before = *sample
			before.At = s.First
		case len(kept) == 0:
			kept = s.Samples[i : i+1 : i+1]
			from = i
		case sample.At <= kept[len(kept)-1].At || kept[len(kept)-1].At >= end:
		case i == from+len(kept): // none was left out: they lie where they lay
			kept = s.Samples[from : i+1 : i+1]
		default:
			kept = append(kept, *sample)
		}
	}
	return before, kept
}

func lastProgress(s *transfer.Stream) time.Duration {
	end := s.Last
	acked := int64(0)
	atLast := int64(0)
	for i := range s.Samples {
		sample := &s.Samples[i]
		if sample.Have&transfer.HaveAcked == 0 {
			continue
		}
		if sample.At <= s.Last {
			atLast = sample.Acked
		}
		if sample.Acked > acked {
			acked = sample.Acked
			end = max(end, sample.At)
		}
	}
	if float64(acked-atLast) < threshold.DrainedShare.Value*float64(acked) {
		return s.Last
	}
	return end
}

func common(samples []transfer.Sample) transfer.Fields {
	if len(samples) == 0 {
		return 0
	}
	have := samples[0].Have
	for i := range samples {
		have &= samples[i].Have
	}
	return have
}

// cut divides the samples into rounds of at least the given length. The rest at the end joins the last round.
func cut(start transfer.Sample, samples []transfer.Sample, least time.Duration, mss int64) (rounds []round) {
	const initialWindow = 10 // segments, RFC 6928
	if start.Cwnd == 0 {
		start.Cwnd = initialWindow * mss
	}
	if n := len(samples); n > 0 && least > 0 {
		most := max((samples[n-1].At-start.At)/least, 0) + 1
		rounds = make([]round, 0, min(int(most), n))
	}
	from := 0
	before := &start
	for i := range samples {
		sample := &samples[i]
		final := i == len(samples)-1
		if sample.At-before.At < least && !final {
			continue
		}
		if final && sample.At-before.At < least/2 && len(rounds) > 0 {
			from -= len(rounds[len(rounds)-1].samples)
			before = rounds[len(rounds)-1].start
			rounds = rounds[:len(rounds)-1]
		}
		r := round{samples: samples[from : i+1], start: before, end: sample, length: sample.At - before.At}
		rounds = append(rounds, r)
		before = sample
		from = i + 1
	}
	return rounds
}

// alignReader gives each round the receiver's samples of the same time, with one on
// either side; offset is added to the receiver's clock.
func (c *connection) alignReader(offset time.Duration) {
	all := c.receiver.Samples
	at := func(t time.Duration) int { return firstFrom(all, t-offset) }
	for i := range c.rounds {
		r := &c.rounds[i]
		from := at(r.start.At)
		to := at(r.end.At)
		r.receiverSamples = all[max(from-1, 0):min(max(to, from)+1, len(all))]
	}
}

// firstFrom is where the first sample lies that is not before t.
func firstFrom(samples []transfer.Sample, t time.Duration) int {
	return sort.Search(len(samples), func(i int) bool { return samples[i].At >= t })
}

func (c *connection) has(f transfer.Fields) bool { return c.commonFields&f == f }

// advance returns how far one of the sender's clocks ran in the round.
func (r *round) advance(clock func(*transfer.Sample) time.Duration) time.Duration {
	return min(max(clock(r.end)-clock(r.start), 0), r.length)
}

// portion returns the share of the samples for which is returns true, or 0 without samples.
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
