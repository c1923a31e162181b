package flow

// shut is a receiver's window of 0 until it opens again.
type shut struct {
	shutAt, probedAt int64 // when the window closed, and when the sender last probed it since then; 0: not
	// Openings counts the windows of 0 that opened again, ProbedOpenings those that opened only in the answer to a probe.
	// ProbedTime is for how long the latter were closed, nanoseconds.
	Openings, ProbedOpenings, ProbedTime int64
}

// probed notes a segment below all data that was sent, or of one byte that the window has no room for.
func (d *Direction) probed(at int64) {
	if d.shutAt > 0 {
		d.probedAt = at
	}
}

// announced takes a window with the position that it begins at. A receiver responds to a probe at once, unless it takes
// the probe's byte.
func (d *Direction) announced(window uint16, ack, at int64) {
	switch {
	case window == 0:
		if d.shutAt == 0 {
			d.shutAt = at
			d.probedAt = 0
		}
	case d.shutAt > 0:
		d.Openings++
		atOnce := at-d.probedAt <= d.RTTMin+max(2e6, d.RTTMin/4)
		if d.probedAt > 0 && (atOnce || ack > d.high) {
			d.ProbedOpenings++
			d.ProbedTime += at - d.shutAt
		}
		d.shutAt = 0
	}
}
