package record

import (
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Summary is the part of a measured document that lists show.
type Summary struct {
	Kind    string // the command
	Far     string // as it was named
	Figures []Figure
	Outcome Outcome
}

// Summarize returns a document's summary: the best cells of a sweep, the final settings' results of tune, the
// connection with the most lost time of a capture.
func Summarize(doc Document) Summary {
	kind, _, _ := strings.Cut(strings.TrimPrefix(doc.Head().Schema, "fullpipe/"), "/")
	s := Summary{Kind: kind, Outcome: Done}
	if d, ok := doc.(interface{ summarize(*Summary) }); ok {
		d.summarize(&s)
	}
	return s
}

// end sets the far end and the outcome. A later interruption of a direction changes the outcome.
func (s *Summary) end(far string, failure *Failure) {
	s.Far = far
	switch {
	case failure != nil && failure.Message == "interrupted":
		s.Outcome = Interrupted
	case failure != nil:
		s.Outcome = Failed
	}
}

func (s *Summary) interrupt(interrupted bool) {
	if interrupted {
		s.Outcome = Interrupted
	}
}

func (d *Measure) summarize(s *Summary) {
	s.end(d.Peer, d.Error)
	for i := range d.Directions {
		s.add(d.Directions[i].figure())
		s.interrupt(d.Directions[i].Interrupted)
	}
}

func (d *MeasureUDP) summarize(s *Summary) {
	s.end(d.Peer, d.Error)
	for i := range d.Directions {
		one := &d.Directions[i]
		s.add(Figure{Direction: string(one.Direction), GoodputBps: &one.GoodputBps, Limiter: string(one.Limiter),
			LostAt: placesOf(one.LostAt)})
		s.interrupt(one.Interrupted)
	}
}

func (d *Capacity) summarize(s *Summary) {
	s.end(d.Peer, d.Error)
	for i := range d.Directions {
		one := &d.Directions[i]
		s.add(Figure{Direction: string(one.Direction), GoodputBps: &one.CapacityBps})
	}
}

func (d *Compare) summarize(s *Summary) {
	s.end(d.Peers[0]+" and "+d.Peers[1], d.Error)
	s.interrupt(d.Interrupted)
	for i := range d.Directions {
		one := &d.Directions[i]
		s.add(Figure{Direction: string(one.Direction), GoodputBps: one.First.GoodputBps, RTTMinS: secondsOf(one.First.RTTMin),
			Limiter: string(one.Cause)})
	}
}

func (d *Tune) summarize(s *Summary) {
	s.end(d.Peer, d.Error)
	for i := range d.Directions {
		one := &d.Directions[i]
		m := &one.Before
		// that is not yet proven
		if one.After != nil && !one.IsLikely() {
			m = one.After
		}
		f := m.figure()
		f.Direction = string(one.Direction)
		f.GoodputBps = &m.MedianBps
		if one.Decision != nil {
			f.Verdict = one.Verdict
			f.Strength = one.Decision.Strength
		}
		s.add(f)
		s.interrupt(one.Interrupted)
	}
}

func (d *Sweep) summarize(s *Summary) {
	s.end(d.Peer, d.Error)
	s.interrupt(d.Interrupted)
	for i := range d.Cells {
		if c := &d.Cells[i]; c.Best && c.Measured() {
			s.add(Figure{Direction: string(c.Direction), GoodputBps: &c.GoodputBps, Limiter: string(c.Limiter)})
		}
	}
}

func (d *RFC6349) summarize(s *Summary) {
	s.end(d.Peer, d.Error)
	s.interrupt(d.Interrupted)
	for i := range d.Directions {
		one := &d.Directions[i]
		f := Figure{Direction: string(one.Direction), RTTMinS: secondsOf(one.RTT)}
		for j := range one.Tests {
			if t := &one.Tests[j]; t.GoodputBps != nil && (f.GoodputBps == nil || *t.GoodputBps > *f.GoodputBps) {
				f.GoodputBps = t.GoodputBps
				f.Limiter = string(t.Limiter)
			}
		}
		s.add(f)
	}
}

func (d *Diagnose) summarize(s *Summary) {
	s.Far = strings.Join(d.Files, ", ")
	s.interrupt(d.Interrupted)
	if len(d.Connections) > 0 {
		for i := range d.Connections[0].Directions {
			one := &d.Connections[0].Directions[i]
			s.add(Figure{Direction: one.From, GoodputBps: one.GoodputBps, RTTMinS: one.RTTMinS,
				Limiter: string(one.Limiter)})
		}
	}
}

// add keeps the first figure of each direction.
func (s *Summary) add(f Figure) {
	for _, before := range s.Figures {
		if before.Direction == f.Direction {
			return
		}
	}
	s.Figures = append(s.Figures, f)
}

func (d *Direction) figure() Figure {
	return Figure{Direction: string(d.Direction), GoodputBps: d.GoodputBps, RTTMinS: secondsOf(d.RTTMin),
		Limiter: string(d.Limiter), RetransmittedRatio: d.retransmitted(), LostAt: placesOf(d.LostAt)}
}

// retransmitted returns retransmitted segments over the segments that the payload fills; nil if that is not known.
func (d *Direction) retransmitted() *float64 {
	if d.RetransmittedSegment == nil || d.Bytes == nil || d.MSSBytes <= 0 || *d.Bytes < int64(d.MSSBytes) {
		return nil
	}
	return new(float64(*d.RetransmittedSegment) * float64(d.MSSBytes) / float64(*d.Bytes))
}

// secondsOf returns a time in seconds; nil for 0, which is not known.
func secondsOf(d units.Duration) *float64 {
	if d == 0 {
		return nil
	}
	return new(d.Seconds())
}
