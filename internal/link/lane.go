package link

import (
	"math"
	"math/rand/v2"
	"time"
)

// Never is the result of Next when no packet is pending.
const Never = int64(math.MaxInt64)

// segment is one packet in a lane.
type segment struct {
	due   int64
	id    int32
	index uint16
	size  uint16
	fate  fate
}

type fate uint8

const (
	lost fate = 1 << iota
	twice
	reordered
	outside // outside the tunnel
	marked
	capable // ECN-capable
	dropped // by a queue or the policer, after Offer accepted it
)

const gone = lost | dropped

// Lane is one direction of a path. It is not safe for concurrent use; nor are both lanes of a path if they Share
// something.
type Lane struct {
	Counters Counters

	config  Config
	medium  *medium
	gateway *gateway // or nil
	place   int      // index among the lanes of the medium and the gateway

	shaper       shaper
	sealing      ring // waiting for the gateway
	waiting      ring // in the queue
	waitingBytes int64
	flying       ring // on the line or beyond it, in order of due
	late         heap // reordered packets on their way

	lastDue int64
	lossDice, duplicateDice,
	reorderDice *rand.Rand
	losing bool  // Gilbert-Elliott's bad state
	tokens int64 // of the policer, in bit-nanoseconds: bits × 1e9
	refill int64 // when tokens were last counted
}

// Lanes returns the two lanes of a path, up and down. In half duplex they share one medium, which serves them in
// turn. They also share VPN gateways.
func (p *Path) Lanes() (up, down *Lane) {
	up = newLane(p.Up, 0)
	down = newLane(p.Down, 1)
	up.place = 0
	down.place = 1
	if p.HalfDuplex {
		shared := &medium{lanes: []*Lane{up, down}}
		up.medium = shared
		down.medium = shared
	}
	if p.VPN.Kind == Gateway {
		pair := &gateway{rate: p.VPN.Crypto, depth: p.VPN.Depth, lanes: [2]*Lane{up, down}}
		up.gateway = pair
		down.gateway = pair
	}
	return up, down
}

// Share reports whether the two lanes influence each other.
func (p *Path) Share() bool { return p.HalfDuplex || p.VPN.Kind == Gateway }

func newLane(c Config, direction uint64) *Lane {
	dice := func(stream uint64) *rand.Rand { return rand.New(rand.NewPCG(c.Seed, stream<<1|direction)) }
	l := &Lane{config: c, lossDice: dice(1), duplicateDice: dice(2), reorderDice: dice(3)}
	l.config.Seed ^= direction << 63
	l.medium = &medium{lanes: []*Lane{l}}
	l.tokens = l.config.PoliceBurst * 8 * int64(time.Second)
	return l
}

// Offer sends a batch at time now, which never decreases over both lanes of a path. It returns the number of
// segments that Runs will return, duplicates counted twice, and of those above the MTU.
func (l *Lane) Offer(now int64, t Batch) (kept, tooBig int) {
	l.serve(now)
	mtu := l.config.Largest(t.OutsideTunnel)
	for i := range t.Segments {
		size := t.Bytes
		if i == t.Segments-1 {
			size = t.Last
		}
		l.Counters.Offered++
		l.Counters.OfferedBytes += int64(size)
		s := segment{id: t.ID, index: uint16(i), size: uint16(size), fate: l.draw()}
		if t.OutsideTunnel {
			s.fate |= outside
		}
		if t.ECT {
			s.fate |= capable
		}
		switch {
		case mtu > 0 && size > mtu:
			l.Counters.DroppedMTU++
			tooBig++
			continue
		case l.config.FlowRate > 0 && t.Flow != 0:
			if !l.shaper.offer(&l.config, now, t.Flow, s) {
				l.Counters.DroppedQueue++
				continue
			}
		case l.gateway == nil || t.OutsideTunnel:
			if !l.admit(now, s) {
				continue
			}
		case !l.gateway.offer(now, l, s):
			l.Counters.DroppedGateway++
			continue
		}
		kept++
		if s.fate&(lost|twice) == twice {
			kept++
		}
	}
	return kept, tooBig
}

// serve advances gateways, flows and line to now.
func (l *Lane) serve(now int64) {
	if l.gateway != nil {
		l.gateway.serve(now)
	}
	l.shape(now)
	l.medium.serve(now)
}

// admit queues a packet for the line and reports whether there was room. The medium must have been served up to
// now.
func (l *Lane) admit(now int64, s segment) bool {
	switch {
	case !l.police(now, l.config.carried(s)):
		l.Counters.DroppedPolicer++
		return false
	case l.medium.idle(now):
		l.transmit(now, s)
	case !l.signal(&s):
		l.Counters.DroppedUnmarked++
		return false
	case !l.enqueue(s):
		l.Counters.DroppedQueue++
		return false
	}
	return true
}

// signal marks a packet that meets the queue at its threshold. It returns false if the packet is not ECN-capable.
func (l *Lane) signal(s *segment) bool {
	if l.config.MarkBytes == 0 || l.waitingBytes < l.config.MarkBytes {
		return true
	}
	s.fate |= marked
	return s.fate&capable != 0
}

// discard has an accepted packet return as lost.
func (l *Lane) discard(now int64, s segment) {
	copies := 1
	if s.fate&(lost|twice) == twice {
		copies = 2
	}
	s.fate = dropped
	s.due = max(now, l.lastDue)
	l.lastDue = s.due
	for range copies {
		l.flying.push(s)
	}
}

// draw decides the fate of the next packet on the line. Each offered packet takes one draw, so the n-th fate
// depends on the seed alone.
func (l *Lane) draw() (f fate) {
	c := &l.config
	if c.Loss > 0 && l.drawLoss() {
		f |= lost
	}
	if c.Duplicate > 0 && l.duplicateDice.Float64() < c.Duplicate {
		f |= twice
	}
	if c.Reorder > 0 && l.reorderDice.Float64() < c.Reorder {
		f |= reordered
	}
	return f
}

func (l *Lane) drawLoss() bool {
	c := &l.config
	x := l.lossDice.Float64()
	if c.LossBurst <= 1 || c.Loss >= 1 {
		return x < c.Loss
	}
	if l.losing {
		l.losing = x >= 1/c.LossBurst
	} else {
		l.losing = x < c.Loss/(1-c.Loss)/c.LossBurst
	}
	return l.losing
}

func (l *Lane) police(now int64, size int) bool {
	c := &l.config
	if c.PoliceRate <= 0 {
		return true
	}
	full := c.PoliceBurst * 8 * int64(time.Second)
	if elapsed := now - l.refill; elapsed >= full/c.PoliceRate {
		l.tokens = full
	} else {
		l.tokens = min(full, l.tokens+elapsed*c.PoliceRate)
	}
	l.refill = now
	cost := int64(size) * 8 * int64(time.Second)
	if cost > l.tokens {
		return false
	}
	l.tokens -= cost
	return true
}

func (l *Lane) enqueue(s segment) bool {
	c := &l.config
	size := int64(c.carried(s))
	if l.waitingBytes+size > c.QueueBytes && c.QueueBytes > 0 ||
		int64(l.waiting.len()) >= c.QueuePackets && c.QueuePackets > 0 || c.QueueBytes == 0 && c.QueuePackets == 0 {
		return false
	}
	l.waiting.push(s)
	l.waitingBytes += size
	if s.fate&marked != 0 {
		l.Counters.Marked++
	}
	l.Counters.QueuePeakBytes = max(l.Counters.QueuePeakBytes, l.waitingBytes)
	return true
}

// transmit puts a segment on the line at start.
func (l *Lane) transmit(start int64, s segment) {
	c := &l.config
	l.Counters.Carried++
	size := c.carried(s)
	l.Counters.CarriedBytes += int64(size)
	l.medium.turn = l.place + 1
	left := l.medium.occupy(start, size+c.Overhead, c.Rate)
	due := left + int64(c.Delay) + l.jitter(left)
	if c.Aggregate > 0 {
		step := int64(c.Aggregate)
		due = (due + step - 1) / step * step
	}
	due = max(due, l.lastDue)
	l.lastDue = due
	s.due = due
	if s.fate&(lost|reordered) == reordered {
		l.Counters.Reordered++
		s.due += int64(c.HoldBack)
		l.late.push(s)
	} else {
		l.flying.push(s)
	}
	if s.fate&(lost|twice) == twice {
		l.Counters.Duplicated++
		s.fate &= marked
		s.due = due
		l.flying.push(s)
	}
}

// Next returns the earliest time at which Pop may return a run, or Never.
func (l *Lane) Next() int64 {
	next := Never
	if l.flying.len() > 0 {
		next = l.flying.front().due
	} else if l.waiting.len() > 0 {
		next = l.medium.free
	} else if l.gateway != nil && l.gateway.busy {
		next = l.gateway.free
	}
	if len(l.late) > 0 {
		next = min(next, l.late[0].due)
	}
	return min(next, l.shaper.next())
}

// Pop returns the next run that is due by now.
func (l *Lane) Pop(now int64) (Run, bool) {
	l.serve(now)
	if len(l.late) > 0 && l.late[0].due <= now && (l.flying.len() == 0 || l.late[0].due < l.flying.front().due) {
		return l.deliver(l.late.pop()), true
	}
	if l.flying.len() == 0 || l.flying.front().due > now {
		return Run{}, false
	}
	run := l.deliver(l.flying.pop())
	for !run.Lost && !l.config.Single && l.flying.len() > 0 {
		next := l.flying.front()
		if next.due > now || next.id != run.ID || int(next.index) != run.First+run.Count || next.fate&gone != 0 ||
			next.fate&marked != 0 != run.CE {
			break
		}
		l.deliver(l.flying.pop())
		run.Count++
	}
	return run, true
}

func (l *Lane) deliver(s segment) Run {
	if s.fate&gone != 0 {
		if s.fate&lost != 0 {
			l.Counters.Lost++
		}
		return Run{ID: s.id, First: int(s.index), Count: 1, Lost: true, Due: s.due}
	}
	l.Counters.Delivered++
	l.Counters.DeliveredBytes += int64(s.size)
	return Run{ID: s.id, First: int(s.index), Count: 1, Due: s.due, CE: s.fate&marked != 0}
}
