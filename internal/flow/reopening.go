package flow

// reopening is the time since the receiving program made room in a closed window.
type reopening struct {
	isOpen bool
	widest int64 // the largest window since then
	busy   int64 // time with data outstanding since then, nanoseconds
}

// reopened follows the state after it was before. A window that closes twice and never opens fully in between shows
// a receive buffer that never ran empty. The receiving program then set the pace for all of that time.
func (d *Direction) reopened(before Clock) {
	r := &d.reopening
	switch {
	case d.state == Closed && before != Closed:
		if r.isOpen && 4*r.widest < 3*d.WindowMax {
			d.ReaderPaced += r.busy
		}
		r.isOpen = false
	case d.state != Closed && before == Closed:
		*r = reopening{isOpen: true, widest: d.window}
	case d.state == Recovery || d.state == BlackHole:
		r.isOpen = false
	default:
		r.widest = max(r.widest, d.window)
	}
}
