package flow

import "math"

// Order puts the segments of one capture into the order of their times. Captures of several queues or interfaces
// contain records a little out of order, and the clock of the capturing host may be set while it captures. The two
// look alike at first: a record is stamped earlier than the one ahead of it. Where the stamps are wrong, segments of
// one sender then have ever newer numbers at ever earlier times; where the records are in the wrong place, they do
// not.
type Order struct {
	latest  int64 // of the stamps so far, corrected
	floor   int64 // the last settled segment's time
	shift   int64 // is added to the file's stamps: the sum of the clock's steps back
	checked int   // of the segments that were left over, those that need no second look
	begun   bool

	Late       int64 // records behind later ones, which were put into their place
	LateMost   int64 // how much earlier than those they were at the most, nanoseconds
	Unplaced   int64 // of them those that came too late for that
	Misstamped int64 // single records with an earlier time than those they followed
	Steps      int64 // times that the clock was set
	StepMost   int64 // the largest of these steps, nanoseconds; below 0: back
}

const (
	// disorderMost is how late a record may be in a file without a sign that its stamp is right. Capturing programs
	// collect from all queues at least once a second.
	disorderMost = second
	// forwardLeast is the least forward step that is looked for. Shorter ones make one
	// round trip or one pause a little longer, and no more.
	forwardLeast = second / 5
	// lookAhead and lookBack are how many records around an odd stamp are compared.
	lookAhead, lookBack = 64, 256
)

// Settle sorts segments as they came from the file and returns how many of the first have their final place. The
// caller passes the others first at the next call. With last there are none.
func (o *Order) Settle(s []Segment, last bool) (settled int) {
	if !o.begun && len(s) > 0 {
		o.begun = true
		o.latest = s[0].At
		o.floor = s[0].At
	}
	i := o.checked
	for {
		i = o.inOrder(s, i)
		if i == len(s) || !last && len(s)-i < lookAhead && i > len(s)/2 {
			break // the next segments show it
		}
		o.latest = max(o.latest, o.place(s, i))
		i++
	}
	settled = len(s)
	if !last {
		settled = min(len(s)-o.hold(len(s)), i-len(s)/4)
	}
	o.checked = i - settled
	if settled > 0 {
		o.floor = s[settled-1].At
	}
	return settled
}

// inOrder passes over segments from the i-th on whose stamps are as expected, as nearly all are. It returns where it
// stopped.
func (o *Order) inOrder(s []Segment, i int) int {
	latest := o.latest
	shift := o.shift
	for ; i < len(s); i++ {
		at := s[i].At + shift
		if at < latest || at-latest >= forwardLeast {
			break
		}
		s[i].At = at
		latest = at
	}
	o.latest = latest
	return i
}

// hold is how many of n segments wait for late ones: a few until one was seen.
func (o *Order) hold(n int) int {
	if o.Late > 0 {
		return n / 2
	}
	return n / 16
}

// place gives a segment with an odd stamp its time and its place, and returns the time.
func (o *Order) place(s []Segment, i int) int64 {
	at := s[i].At + o.shift
	if at > o.latest {
		if o.setForward(s, i) {
			at = o.step(s, i)
		}
		s[i].At = at
		return at
	}
	back := o.latest - at
	if back < 0 { // stamps of a damaged file may be further apart than 292 years
		back = math.MaxInt64
	}
	switch {
	case back <= o.LateMost && back <= disorderMost && o.newer(s, i) <= 0:
	case o.returns(s, i) && o.newer(s, i) > 0:
		o.Misstamped++
		s[i].At = o.latest
		return o.latest
	case o.setBack(s, i, back):
		s[i].At = o.step(s, i)
		return s[i].At
	}
	o.Late++
	o.LateMost = max(o.LateMost, back)
	if at < o.floor {
		o.Unplaced++
	}
	one := s[i]
	one.At = at
	for ; i > 0 && s[i-1].At > at; i-- {
		s[i] = s[i-1]
	}
	s[i] = one
	return at
}

// step undoes a step of the clock before s[i], and returns the time of s[i] without it.
func (o *Order) step(s []Segment, i int) int64 {
	at := o.latest + o.gap(s, i)
	by := at - s[i].At - o.shift
	o.Steps++
	o.shift += by
	if abs(by) > abs(o.StepMost) {
		o.StepMost = -by
	}
	return at
}

// gap returns how much time went by before s[i] when its stamp does not show it: by the timestamps of a sender before
// and after, else the longest time between the last records. It is rather too long: a round trip that seems too short
// would mislead more.
func (o *Order) gap(s []Segment, i int) int64 {
	for k := i; k < len(s) && k < i+lookAhead; k++ {
		p := sameSender(s[:i], &s[k])
		if p == nil || p.Options&s[k].Options&HasTimestamps == 0 {
			continue
		}
		if unit := unitOf(s[:i], p); unit > 0 {
			ran := int64(int32(s[k].TSVal-p.TSVal)+1) * unit
			return min(max(ran-(o.latest-p.At)-max(s[k].At-s[i].At, 0), 0), 10*second)
		}
	}
	longest := int64(0)
	for k := max(1, i-lookAhead); k < i; k++ {
		longest = max(longest, s[k].At-s[k-1].At)
	}
	return longest
}

// unitOf returns the unit of the timestamps of the sender of p by the segments before p, nanoseconds; 0 where they do
// not show it.
func unitOf(s []Segment, p *Segment) (unit int64) {
	const few = 4
	for k := len(s) - 1; k >= 0; k-- {
		q := &s[k]
		if units := int64(int32(p.TSVal - q.TSVal)); units >= few && q.Options&HasTimestamps != 0 && q.sameWay(p) {
			unit = (p.At - q.At) / units
		}
	}
	return unit
}

func abs(v int64) int64 { return max(v, -v) }

// returns reports whether the records behind go on where the one before s[i] was: only this
// one's stamp is odd.
func (o *Order) returns(s []Segment, i int) bool {
	const soon = 3
	for k := i + 1; k < len(s) && k <= i+soon; k++ {
		if s[k].At+o.shift >= o.latest {
			return true
		}
	}
	return false
}

// setBack reports whether from s[i] on the clock was behind: this segment, or another one stamped
// too early, is newer than one of its sender that was stamped later.
func (o *Order) setBack(s []Segment, i int, back int64) bool {
	for k := i; k < len(s) && k < i+lookAhead; k++ {
		if s[k].At+o.shift >= o.latest {
			break
		}
		if p := sameSender(s[:i], &s[k]); p != nil && p.At > s[k].At+o.shift {
			if order := sentAfter(p, &s[k]); order != 0 {
				return order > 0
			}
		}
	}
	return back > disorderMost
}

// newer returns 1 if s[i] was sent after the segment of its sender that comes before it with a later stamp, -1 if
// before, and 0 where neither is known.
func (o *Order) newer(s []Segment, i int) int {
	if p := sameSender(s[:i], &s[i]); p != nil && p.At > s[i].At+o.shift {
		return sentAfter(p, &s[i])
	}
	return 0
}

// setForward reports whether the clock was set forward before s[i]: both ends of a connection
// count next to no time in their timestamps where the capture counts seconds.
func (o *Order) setForward(s []Segment, i int) bool {
	first := 0
	for k := i; k < len(s) && k < i+lookAhead; k++ {
		p := sameSender(s[:i], &s[k])
		if p == nil || p.Options&s[k].Options&HasTimestamps == 0 {
			continue
		}
		// The time that ran for certain. By the unit that the sender counted in until now, next to nothing of the gap did;
		// not even if its units are as long as they may be, a second (RFC 7323, 5.4), where that is not known.
		ran := o.latest - p.At + max(s[k].At-s[i].At, 0)
		gap := s[i].At + o.shift - o.latest
		units := int64(int32(s[k].TSVal - p.TSVal))
		most := min(ran/1e6+1, gap/(2*second))
		if unit := unitOf(s[:i], p); unit > 0 && unit <= gap/8 {
			most = (ran+gap/4)/unit + 1
		} else if most == 0 {
			return false // the unit may be as long as the gap
		}
		if units < 0 {
			continue // this record is out of order
		}
		if units > most || !counts(s[:i], p) {
			return false
		}
		if first > 0 && s[first-1].Src == s[k].Dst {
			return true
		} else if first == 0 {
			first = k + 1
		}
	}
	return false
}

// counts reports whether the timestamps of p's sender had advanced before it.
func counts(s []Segment, p *Segment) bool {
	for k := len(s) - 1; k >= 0 && k >= len(s)-lookBack; k-- {
		if q := &s[k]; q.sameWay(p) && q.Options&HasTimestamps != 0 && q.TSVal != p.TSVal {
			return true
		}
	}
	return false
}

// sameSender is the last of s that the sender of one sent to the same end, and that came the
// same way: a copy from another hop passes later than newer segments did here.
func sameSender(s []Segment, one *Segment) *Segment {
	for k := len(s) - 1; k >= 0 && k >= len(s)-lookBack; k-- {
		if p := &s[k]; p.sameWay(one) {
			return p
		}
	}
	return nil
}

// sameWay reports whether two segments have the same ends and were captured at the same hop and
// interface.
func (s *Segment) sameWay(o *Segment) bool {
	return s.Src.is(&o.Src) && s.Dst.is(&o.Dst) && s.TTL == o.TTL && s.Interface == o.Interface
}

// sentAfter compares what a sender counts up: b was sent after a (1), before (-1), or there is
// no telling (0).
func sentAfter(a, b *Segment) int {
	if a.Options&b.Options&HasTimestamps != 0 && a.TSVal != b.TSVal {
		return sign(b.TSVal - a.TSVal)
	}
	if a.Ack != b.Ack {
		return sign(b.Ack - a.Ack)
	}
	if a.Payload > 0 && b.Payload > 0 && a.Seq != b.Seq {
		return sign(b.Seq - a.Seq)
	}
	return 0
}

// sign of a difference of numbers that wrap.
func sign(d uint32) int {
	switch {
	case d == 0:
		return 0
	case int32(d) > 0:
		return 1
	}
	return -1
}
