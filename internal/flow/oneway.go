package flow

// oneWay follows the delay from one end to the tap by the end's own timestamps, up to an
// unknown constant.
type oneWay struct {
	steady  bool // tick is known, and min and smooth are something
	have    bool
	checked bool // tick was compared with the capture's clock
	settled bool // for the last time
	first   uint32
	began   int64
	tick    int64 // nanoseconds of one unit of the timestamps, 0 unknown
	samples int64
	min     int64
	low     int64 // the least since the loop's last spell
	smooth  int64
	last    uint32 // timestamp
	grain   int32  // the least step between timestamps, units: clocks tick once in several
	falls   int32  // moments in which the delay became shorter by stampedLate and more
	fell    int64  // by how much at the most, nanoseconds
	moment  int64  // when the present one began, and the delay then
	before  int64
}

// stampedLate is what a sender's clock counts at most while its segments come in one moment,
// nanoseconds: where they come out of a queue, the link in front takes its time for each.
const stampedLate, moment = 20e6, 2e6

// ticks are the units in use: RFC 7323 allows 1 ms to 1 s, Linux also 1 µs.
var ticks = [...]int64{1e3, 1e6, 2e6, 4e6, 10e6, 100e6, 500e6}

// follow takes the timestamp of a segment, once begin has found the tick.
func (o *oneWay) follow(tsval uint32, at int64) {
	delay := o.delay(tsval, at)
	if at-o.moment > moment {
		o.moment = at
		o.before = delay
	} else if fell := o.before - delay; fell > stampedLate {
		o.falls++
		o.fell = max(o.fell, fell)
		o.moment = at
		o.before = delay
	}
	if step := int32(tsval - o.last); step > 0 {
		o.last = tsval
		if step < o.grain || o.grain == 0 {
			o.grain = step
		}
	}
	o.samples++
	o.min = min(o.min, delay)
	o.low = min(o.low, delay)
	o.smooth += (delay - o.smooth) / 8
}

// inBatches returns by how much segments of both ends were stamped late, again and again, because the tap stamped at
// one moment all that it had collected; 0 where it did not.
func inBatches(a, b *oneWay) int64 {
	const again = 3
	if a.falls < again || b.falls < again {
		return 0
	}
	return min(a.fell, b.fell)
}

func (o *oneWay) delay(tsval uint32, at int64) int64 {
	return at - o.began - int64(int32(tsval-o.first))*o.tick
}

// begin samples the first second, and finds the tick in it. It reports whether there is a sample before this one.
func (o *oneWay) begin(tsval uint32, at int64) bool {
	if !o.have {
		*o = oneWay{have: true, first: tsval, last: tsval, began: at, tick: 1e6} // most count milliseconds
		return false
	}
	if ran := at - o.began; !o.checked && ran > second/4 || !o.settled && ran > second {
		o.settled = ran > second
		o.check(int64(int32(tsval-o.first)), at)
	}
	if o.tick == 0 {
		return false
	}
	if o.samples == 0 {
		o.min = o.delay(tsval, at)
		o.samples = 1
		o.low = never
		o.smooth = o.min
		return false
	}
	o.steady = o.settled
	return true
}

// check determines the tick of the sender's timestamp clock from the units that passed since o.began. Before o.settled
// it can only confirm the tick.
func (o *oneWay) check(units, at int64) {
	tick := int64(0)
	for _, t := range ticks {
		if ran := units * t; ran > (at-o.began)*6/10 && ran < (at-o.began)*11/10 {
			tick = t
		}
	}
	if tick != o.tick && !o.settled {
		return // this early, a queue that fills looks like a slow clock
	}
	o.checked = true
	if o.tick != tick {
		o.tick = tick
		o.samples = 0
		o.falls = 0
		o.fell = 0
	}
}

// level raises the minimum delay if the delay rose more than the round trip that contains it. The difference is a step
// of the capture's clock, or drift between the two clocks. risen is the difference between the round
// trip's minimum in the last spell and its overall minimum.
func (o *oneWay) level(risen int64) {
	if o.steady && o.low < never {
		if stayed := o.low - o.min; stayed > risen+2*o.step()+1e6 {
			o.min += stayed - risen
		}
	}
	o.low = never
}

// step is the least time that the end's timestamps show, nanoseconds.
func (o *oneWay) step() int64 { return o.tick * int64(max(o.grain, 1)) }

// excess is how much longer than the least the delay is at present.
func (o *oneWay) excess() (int64, bool) {
	const coarsest = 20e6
	grain := o.step()
	if !o.checked || o.tick == 0 || grain > coarsest || o.samples < 4 {
		return 0, false
	}
	// Rather too little, by up to a step of the clock: an acknowledgement taken for later
	// than the data that it let out would look as if it had let out nothing.
	return max(o.smooth-o.min-grain, 0), true
}
