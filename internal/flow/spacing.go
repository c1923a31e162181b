package flow

import "github.com/fullpipe-net/fullpipe/internal/verdict/threshold"

// Pace finds the most frequent time of a full segment in a stream of data.
type Pace struct {
	Bytes, Time int64 // of the data at the usual pace, payload bytes and nanoseconds
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

// add takes bytes that came some nanoseconds after the bytes before them.
func (p *Pace) add(bytes, mss, gap int64) {
	each := gap * mss / bytes
	expected := p.usual * bytes / mss
	switch {
	case p.votes == 0:
		*p = Pace{usual: each, votes: 1}
	case distance(gap, expected) <= max(expected/spacingParts, spacingTolerance):
		p.votes++
	default:
		p.votes--
		return
	}
	p.Bytes += bytes
	p.Time += gap
}

// Rate returns the usual pace, payload bytes/s; 0 if unknown.
func (p *Pace) Rate() float64 {
	if p.Time <= 0 {
		return 0
	}
	return float64(p.Bytes) / float64(p.Time) * 1e9
}

// Spacing compares the times between new segments with their lengths. Behind a line slower than the sender a segment
// follows by its own serialization, so a short one comes sooner than a full one. A pacing sender waits by the length of
// the segment before (sch_fq), a program by neither.
type Spacing struct {
	Data  Pace  // of full segments that followed a full one
	Acks  Pace  // of acknowledgements, by the bytes that they acknowledge
	Short int64 // short segments after a full one
	Agree int64 // short segments that followed in proportion to their length
	// Dry counts new data after less than a full segment, with other data in flight, later than serialization explains
	// and not released by an acknowledgement: the sender had had no more data. DryAt is the last such moment.
	Dry, DryAt int64
	// Silent is by how much new data came later than serialization explains, where the sender had had no more data, or
	// where that was an eighth of the round trip and more, nanoseconds. Pauses are not part of it.
	Silent int64

	// Holes are full segments that came after one or more that were lost before the tap. Filled are those of them that
	// came as soon as any other: a queue before the tap had no gap where they were lost.
	Holes, Filled int64

	released int64 // when the last acknowledgement could let new data come
	paused   int64 // the pause before the next new data
	edge     int64 // the right edge of the window when data came last
}

// add takes a new segment of a length that came some nanoseconds after one of another length.
func (p *Spacing) add(length, before, mss, gap int64) {
	switch {
	case gap <= 0 || before != mss:
		return
	case length == mss:
		p.Data.add(length, mss, gap)
	case 20*length <= shortTwentieths*mss && p.Data.votes > 0:
		p.Short++
		expected, _ := p.serialization(length, mss)
		if shortPart*distance(gap, expected) <= p.Data.usual-expected {
			p.Agree++
		}
	}
}

// serialization returns how long the line needs for a segment, nanoseconds, and false if that is unknown.
func (p *Spacing) serialization(length, mss int64) (took int64, known bool) {
	if p.Data.votes == 0 || length > mss {
		return 0, false
	}
	return p.Data.usual * (length + packetHeaders) / (mss + packetHeaders), true
}

// spaced takes a new segment into account that came a gap after the one before.
func (d *Direction) spaced(length, gap, at int64) {
	if d.Segments <= 8 { // most of many connections are shorter
		return
	}
	if d.Spacing == nil {
		d.Spacing = &Spacing{}
	}
	p := d.Spacing
	took, known := p.serialization(length, int64(d.MSS))
	late := gap - took
	mssSeen := d.ScaleKnown && d.Segments-d.SmallSegments >= int64(threshold.MinSegments.Value)
	hadRoom := p.edge-d.high >= int64(d.MSS)
	dry := mssSeen && hadRoom && d.partial(d.lastLen) && late > max(spacingTolerance, took) &&
		distance(at, p.released) > spacingTolerance
	if dry && p.paused == 0 { // windows may have limited all data before a pause but the last segment
		p.Dry++
		p.DryAt = at
	}
	p.edge = d.edge
	late -= p.paused
	p.paused = 0
	if dry || known && d.RTTMin > 0 && late >= max(d.RTTMin/int64(threshold.StartPart.Value), spacingTolerance) {
		p.Silent += max(late, 0)
	}
	p.add(length, d.lastLen, int64(d.MSS), gap)
}

// skip takes a segment of a length into account that came some nanoseconds after one of another length, with others
// missing between them.
func (p *Spacing) skip(length, before, mss, gap int64) {
	if p.Data.votes == 0 || length != mss || before != mss {
		return
	}
	p.Holes++
	if 2*gap < 3*p.Data.usual {
		p.Filled++
	}
}

func distance(a, b int64) int64 { return max(a-b, b-a) }
