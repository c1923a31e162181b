package probe

import "time"

// drift compares the far end's clock with ours by questions and answers. Each says within
// what bounds theirs was ahead: it was read between our question and its answer. Bounds that
// no constant offset fits prove that one clock runs faster; a path's delays cannot.
type drift struct {
	all   []offset
	shown float64 // by what share of the time theirs surely runs faster; negative: slower
}

// offset is how far their clock was ahead of ours about a time: at least least, at most most.
type offset struct{ at, least, most time.Duration }

// mostOffsets bounds what is kept: every other one is dropped beyond it.
const mostOffsets = 512

// add takes one question and its answer, by our clock, and their clock's reading.
func (d *drift) add(asked, answered, theirs time.Duration) {
	now := offset{at: (asked + answered) / 2, least: theirs - answered, most: theirs - asked}
	for _, then := range d.all {
		span := (now.at - then.at).Seconds()
		if span < driftSpan.Seconds() {
			continue
		}
		faster := (now.least - then.most).Seconds() / span
		slower := (now.most - then.least).Seconds() / span
		switch {
		case faster > max(d.shown, 0):
			d.shown = faster
		case slower < min(d.shown, 0):
			d.shown = slower
		}
	}
	d.all = append(d.all, now)
	if len(d.all) > mostOffsets {
		kept := d.all[:0]
		for i := 0; i < len(d.all); i += 2 {
			kept = append(kept, d.all[i])
		}
		d.all = kept
	}
}

// driftSpan is how far apart two answers must lie: in less, what a timer or a scheduler
// does to one of them is a large share.
const driftSpan = time.Second
