package probe

import "time"

// drift detects a difference between the speeds of both clocks from echoes. Each echo limits the offset, because
// the far end read its clock between our request and its reply. If no constant offset fits all limits, one clock
// runs faster. Path delays cannot cause that.
type drift struct {
	offsets []offset
	ratio   float64 // minimum relative speed difference; negative: the far clock is slower
}

// offset is the range of the far clock's offset at a time.
type offset struct{ at, min, max time.Duration }

// maxOffsets limits the kept offsets. Beyond it every other one is dropped.
const maxOffsets = 512

// add adds an echo: request and reply by our clock, and the far clock's time.
func (d *drift) add(asked, answered, theirs time.Duration) {
	now := offset{at: (asked + answered) / 2, min: theirs - answered, max: theirs - asked}
	for _, then := range d.offsets {
		span := (now.at - then.at).Seconds()
		if span < minDriftSpan.Seconds() {
			continue
		}
		faster := (now.min - then.max).Seconds() / span
		slower := (now.max - then.min).Seconds() / span
		switch {
		case faster > max(d.ratio, 0):
			d.ratio = faster
		case slower < min(d.ratio, 0):
			d.ratio = slower
		}
	}
	d.offsets = append(d.offsets, now)
	if len(d.offsets) > maxOffsets {
		kept := d.offsets[:0]
		for i := 0; i < len(d.offsets); i += 2 {
			kept = append(kept, d.offsets[i])
		}
		d.offsets = kept
	}
}

// minDriftSpan is the minimum time between two echoes. In a shorter one, timer and scheduling delays dominate.
const minDriftSpan = time.Second
