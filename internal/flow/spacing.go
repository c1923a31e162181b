package flow

// Spacing compares the times between new segments with their lengths. Behind a line slower than the sender a segment
// follows by its own serialization, so a short one comes sooner than a full one. A pacing sender waits by the length of
// the segment before (sch_fq), a program by neither.
type Spacing struct {
	Full, Short int64 // full segments at the usual time after the one before, and short segments after a full one
	Agree       int64 // short segments that followed in proportion to their length

	bytes, time int64 // of the full segments, payload bytes and nanoseconds
	usual       int64 // the usual time of a full segment, nanoseconds
	votes       int64 // for usual (Boyer-Moore majority vote)
}

const (
	// spacingParts and spacingTolerance: times agree within 1/spacingParts, or within spacingTolerance, which is the
	// jitter of a timestamp.
	spacingParts, spacingTolerance = 5, 200_000
	// shortTwentieths: a short segment has at most this many twentieths of a full one.
	shortTwentieths = 19
	// shortPart: a short segment agrees if its time is off by at most 1/shortPart of what a full segment takes longer.
	shortPart = 3
	// packetHeaders are bytes of a packet besides its payload, at the least.
	packetHeaders = 40
)

// add takes a new segment of a length that came some nanoseconds after one of another length.
func (p *Spacing) add(length, before, mss, gap int64) {
	switch {
	case gap <= 0 || before != mss:
		return
	case length == mss:
		p.full(mss, gap)
	case 20*length <= shortTwentieths*mss && p.votes > 0:
		p.Short++
		expected := p.usual * (length + packetHeaders) / (mss + packetHeaders)
		if shortPart*distance(gap, expected) <= p.usual-expected {
			p.Agree++
		}
	}
}

func (p *Spacing) full(mss, gap int64) {
	switch {
	case p.votes == 0:
		*p = Spacing{Short: p.Short, Agree: p.Agree, usual: gap, votes: 1}
	case distance(gap, p.usual) <= max(p.usual/spacingParts, spacingTolerance):
		p.votes++
	default:
		p.votes--
		return
	}
	p.Full++
	p.bytes += mss
	p.time += gap
}

func distance(a, b int64) int64 { return max(a-b, b-a) }

// Rate returns the rate of the full segments at the usual time, payload bytes/s; 0 if unknown.
func (p *Spacing) Rate() float64 {
	if p.time <= 0 {
		return 0
	}
	return float64(p.bytes) / float64(p.time) * 1e9
}
