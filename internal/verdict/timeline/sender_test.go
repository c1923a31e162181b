package timeline

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// line is a path that ends in a droptail queue before a link, over which a simulated sender
// with CUBIC's window (RFC 9438) and SACK sends all it may. Each segment is acknowledged, and
// both ends have timestamps in milliseconds.
type line struct {
	bps   float64 // at the IP layer
	rtt   int64   // of the empty path
	queue int     // bytes
	loss  float64 // of segments, at random
	far   bool    // the tap is at the receiver
}

const (
	simMSS    = 1448
	simPacket = simMSS + 52
)

// simulated is the sender and the receiver as they are while a line is played.
type simulated struct {
	line
	r         *rand.Rand
	now, free int64 // free: when the link is
	tape      []flow.Segment
	next      int          // segments sent so far
	flight    []sentOne    // in the order of sending
	arriving  []sentOne    // the part of these that arrives
	again     []int        // lost segments to be retransmitted
	got       map[int]bool // received above expected
	expected  int          // by the receiver
	window    float64      // congestion window, segments
	threshold float64      // slow start's
	most      float64      // the window before its last reduction
	reduced   int64        // when that was
	recovered int          // until then no loss reduces it
	echo      uint32       // the timestamp of the last acknowledgement
}

type sentOne struct {
	segment, order int
	at             int64
	sent           uint32 // timestamp
}

// play is what the tap sees in so much time after the handshake.
func (l line) play(length int64, seed uint64) []flow.Segment {
	s := &simulated{line: l, r: rand.New(rand.NewPCG(seed, 9)), got: map[int]bool{}, window: 10,
		threshold: math.Inf(1), now: l.rtt, free: l.rtt}
	options := flow.HasMSS | flow.HasScale | flow.HasSACKPermitted | flow.HasTimestamps
	half := l.rtt / 2
	if !l.far {
		half = 0
	}
	s.tape = []flow.Segment{
		{At: half, Src: clientEnd, Dst: serverEnd, Seq: 999, Flags: flow.SYN, Window: 64240, MSS: 1460, Scale: 7,
			Options: options, TSVal: 1},
		{At: l.rtt - half, Src: serverEnd, Dst: clientEnd, Seq: 4999, Ack: 1000, Flags: flow.SYN | flow.ACK, Window: 64240,
			MSS: 1460, Scale: 7, Options: options, TSVal: 7001, TSEcr: 1},
		{At: l.rtt + half, Src: clientEnd, Dst: serverEnd, Seq: 1000, Ack: 5000, Flags: flow.ACK, Window: 502,
			Options: flow.HasTimestamps, TSVal: 1 + uint32(l.rtt/ms), TSEcr: 7001}}
	s.echo = 7001
	for order := 0; s.now < length; {
		for float64(len(s.flight)) < s.window {
			order++
			s.send(order)
		}
		s.acknowledge()
	}
	slices.SortStableFunc(s.tape, func(a, b flow.Segment) int { return int(max(min(a.At-b.At, 1), -1)) })
	return s.tape
}

// send sends what was lost, or else something new.
func (s *simulated) send(order int) {
	one := sentOne{segment: s.next, order: order, sent: 1 + uint32(s.now/ms)}
	if len(s.again) > 0 {
		one.segment, s.again = s.again[0], s.again[1:]
	} else {
		s.next++
	}
	s.flight = append(s.flight, one)
	seen := s.now
	waiting := float64(max(s.free-s.now, 0)) / 1e9 * s.bps / 8
	lost := waiting > float64(s.queue) || s.r.Float64() < s.loss
	if !lost {
		s.free = max(s.free, s.now) + int64(simPacket*8/s.bps*1e9)
		one.at = s.free + s.rtt/2
		s.arriving = append(s.arriving, one)
		if s.far {
			seen = one.at
		}
	}
	if lost && s.far {
		return
	}
	s.tape = append(s.tape, flow.Segment{At: seen, Src: clientEnd, Dst: serverEnd, Seq: 1000 + uint32(one.segment*simMSS),
		Ack: 5000, Flags: flow.ACK, Window: 502, Payload: simMSS, Options: flow.HasTimestamps, TSVal: one.sent,
		TSEcr: s.echo})
}

// acknowledge goes on to the next acknowledgement, or to the timeout if none comes.
func (s *simulated) acknowledge() {
	if len(s.arriving) == 0 {
		s.now += max(200*ms, 2*s.rtt)
		for _, one := range s.flight {
			s.again = append(s.again, one.segment)
		}
		s.flight, s.most, s.threshold, s.window, s.reduced, s.recovered = nil, s.window, s.window/2, 1, s.now, s.next
		return
	}
	one := s.arriving[0]
	s.arriving = s.arriving[1:]
	ack := s.receive(one)
	s.now = one.at + s.rtt/2
	if !s.far {
		ack.At = s.now
	}
	s.tape, s.echo = append(s.tape, ack), ack.TSVal
	for s.flight[0].order < one.order { // the path keeps the order: these were lost
		lost := s.flight[0]
		s.flight, s.again = s.flight[1:], append(s.again, lost.segment)
		if lost.segment >= s.recovered || s.recovered == 0 {
			s.most, s.reduced, s.recovered = s.window, s.now, s.next
			s.window = max(0.7*s.window, 2)
			s.threshold = s.window
		}
	}
	s.flight = s.flight[1:]
	if s.expected < s.recovered {
		return
	}
	if s.window < s.threshold {
		s.window++
		return
	}
	t := float64(s.now-s.reduced) / 1e9
	cubic := 0.4*math.Pow(t-math.Cbrt(s.most*0.3/0.4), 3) + s.most
	reno := 0.7*s.most + 0.53*t/(float64(s.rtt)/1e9)
	s.window = max(s.window, min(cubic, 1.5*s.window), reno)
}

// receive acknowledges a segment.
func (s *simulated) receive(one sentOne) flow.Segment {
	if one.segment >= s.expected {
		s.got[one.segment] = true
	}
	for s.got[s.expected] {
		delete(s.got, s.expected)
		s.expected++
	}
	ack := flow.Segment{At: one.at, Src: serverEnd, Dst: clientEnd, Seq: 5000, Ack: 1000 + uint32(s.expected*simMSS),
		Flags: flow.ACK, Window: 32768, Options: flow.HasTimestamps, TSVal: 7001 + uint32(one.at/ms), TSEcr: one.sent}
	if one.segment > s.expected {
		from, to := one.segment, one.segment+1
		for s.got[from-1] {
			from--
		}
		for s.got[to] {
			to++
		}
		ack.SACKs, ack.SACK[0] = 1, [2]uint32{1000 + uint32(from*simMSS), 1000 + uint32(to*simMSS)}
	}
	return ack
}

// Captures without handshake, of full links over shallow queues: congestion and sender have low confidence. A
// hundredth lost at random is congestion.
func TestWithoutHandshake(t *testing.T) {
	for _, l := range []line{
		{bps: 5e6, rtt: 10 * ms, queue: 10 * simPacket},
		{bps: 5e6, rtt: 150 * ms, queue: 10 * simPacket},
		{bps: 20e6, rtt: 60 * ms, queue: 25 * simPacket},
		{bps: 100e6, rtt: 10 * ms, queue: 10 * simPacket},
		{bps: 20e6, rtt: 60 * ms, queue: 100 * simPacket, loss: 0.01},
	} {
		for _, l.far = range []bool{false, true} {
			all := l.play(5000*ms, 1)
			for _, cut := range []int{3, len(all) * 4 / 10} {
				x := tape{all: slices.Clone(all[cut:])}
				g, _ := x.judge(t)
				used := g.GoodputBps * simPacket / simMSS / l.bps
				limits := g.Limiter == verdict.Congestion || g.Limiter == verdict.Sender
				if used > 1/1.1 && limits && g.Confidence != verdict.Low || l.loss > 0 && g.Limiter != verdict.Congestion {
					t.Errorf("%+v from segment %d: %.2f of the link, %s %s %v", l, cut, used, g.Confidence, g.Limiter, g.Shares)
				}
			}
		}
	}
}

// A sender that limits itself is no sure verdict on fewer segments than two initial windows.
func TestJudge_FewSegmentsAreNoSender(t *testing.T) {
	steady := func(segments int) Diagnosis {
		const rtt = 40 * ms
		x := newTape(rtt, 0)
		for i := range segments {
			at := rtt + int64(i)*(rtt/4+1237) // not a clock of 10 ms
			x.data(at, i*1460, 1460, 0)
			x.ack(at+rtt, (i+1)*1460, 1<<20)
		}
		g, _ := x.judge(t)
		return g
	}
	for segments, want := range map[int]verdict.Confidence{18: verdict.Low, 200: verdict.Medium} {
		if g := steady(segments); g.Limiter != verdict.Sender || g.Confidence != want {
			t.Errorf("%d segments: %s, %s %v", segments, g.Limiter, g.Confidence, g.Shares)
		}
	}
}

// TestJudge_LossesBeforeATapBehindTheLine checks captures without timestamps, at the receiver. A full line delivers at
// one pace, and leaves no gap where its queue dropped segments. Losses at random leave gaps.
func TestJudge_LossesBeforeATapBehindTheLine(t *testing.T) {
	full := 0
	for _, l := range []line{
		{bps: 3e6, rtt: 30 * ms, queue: 12 * simPacket},
		{bps: 8e6, rtt: 12 * ms, queue: 15 * simPacket},
		{bps: 15e6, rtt: 5 * ms, queue: 12 * simPacket},
		{bps: 40e6, rtt: 20 * ms, queue: 60 * simPacket},
		{bps: 90e6, rtt: 4 * ms, queue: 20 * simPacket},
		{bps: 30e6, rtt: 40 * ms, queue: 200 * simPacket, loss: 0.005},
		{bps: 200e6, rtt: 15 * ms, queue: 300 * simPacket, loss: 0.002},
	} {
		for seed := range uint64(3) {
			l.far = true
			x := tape{all: l.play(4000*ms, seed)}
			for i := range x.all {
				x.all[i].Options &^= flow.HasTimestamps
				x.all[i].MSS = simMSS
			}
			g, d := x.judge(t)
			used := g.GoodputBps * simPacket / simMSS / l.bps
			want := verdict.Congestion
			if used > 0.93 {
				full++
				want = verdict.Bottleneck
			}
			if g.Limiter != want || want == verdict.Bottleneck && g.Confidence == verdict.High || used > 0.8 && used < 0.93 {
				t.Errorf("%+v: %.2f of the line, %s %s %v, %d of %d holes filled", l, used, g.Confidence, g.Limiter, g.Shares,
					d.Spacing.Filled, d.Spacing.Holes)
			}
		}
	}
	if full != 15 {
		t.Errorf("%d full lines", full)
	}
}
