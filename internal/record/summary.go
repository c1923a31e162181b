package record

import "strings"

// Summary is what lists show of a measured document.
type Summary struct {
	Kind    string // the command
	Far     string // as it was named
	Figures []Figure
}

// Summarize answers a document's summary: of a sweep its best cells, of tune what it ended
// with, of captures the directions that carried most.
func Summarize(doc Document) Summary {
	kind, _, _ := strings.Cut(strings.TrimPrefix(doc.Head().Schema, "fullpipe/"), "/")
	s := Summary{Kind: kind}
	if d, ok := doc.(interface{ summarize(*Summary) }); ok {
		d.summarize(&s)
	}
	return s
}

func (d *Measure) summarize(s *Summary) {
	s.Far = d.Peer
	for i := range d.Directions {
		s.add(d.Directions[i].figure())
	}
}

func (d *MeasureUDP) summarize(s *Summary) {
	s.Far = d.Peer
	for i := range d.Directions {
		one := &d.Directions[i]
		s.add(Figure{Direction: string(one.Direction), GoodputBps: &one.GoodputBps, Limiter: string(one.Limiter)})
	}
}

func (d *Capacity) summarize(s *Summary) {
	s.Far = d.Peer
	for i := range d.Directions {
		one := &d.Directions[i]
		s.add(Figure{Direction: string(one.Direction), GoodputBps: &one.CapacityBps})
	}
}

func (d *Compare) summarize(s *Summary) {
	s.Far = d.Peers[0] + " and " + d.Peers[1]
	for i := range d.Directions {
		one := &d.Directions[i]
		s.add(Figure{Direction: string(one.Direction), GoodputBps: one.First.GoodputBps, RTTMinS: one.First.RTTMinS,
			Limiter: string(one.Cause)})
	}
}

func (d *Tune) summarize(s *Summary) {
	s.Far = d.Peer
	for i := range d.Directions {
		m := &d.Directions[i].Before
		if after := d.Directions[i].After; after != nil {
			m = after
		}
		f := m.figure()
		f.Direction = string(d.Directions[i].Direction)
		f.GoodputBps = &m.MedianBps
		s.add(f)
	}
}

func (d *Sweep) summarize(s *Summary) {
	s.Far = d.Peer
	for i := range d.Cells {
		if c := &d.Cells[i]; c.Best && c.Measured() {
			s.add(Figure{Direction: string(c.Direction), GoodputBps: &c.GoodputBps, Limiter: string(c.Limiter)})
		}
	}
}

func (d *RFC6349) summarize(s *Summary) {
	s.Far = d.Peer
	for i := range d.Directions {
		one := &d.Directions[i]
		f := Figure{Direction: string(one.Direction)}
		if one.RTT > 0 {
			rtt := one.RTT.Seconds()
			f.RTTMinS = &rtt
		}
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
	if len(d.Connections) > 0 {
		for i := range d.Connections[0].Directions {
			one := &d.Connections[0].Directions[i]
			s.add(Figure{Direction: one.From, GoodputBps: one.GoodputBps, RTTMinS: one.RTTMinS,
				Limiter: string(one.Limiter)})
		}
	}
}

// add keeps one figure for each direction.
func (s *Summary) add(f Figure) {
	for _, before := range s.Figures {
		if before.Direction == f.Direction {
			return
		}
	}
	s.Figures = append(s.Figures, f)
}

func (d *Direction) figure() Figure {
	return Figure{Direction: string(d.Direction), GoodputBps: d.GoodputBps, RTTMinS: d.RTTMinS, Limiter: string(d.Limiter),
		RetransmittedRatio: d.retransmitted()}
}

// retransmitted are the segments that were sent again over those that the payload fills; nil
// where that is not known.
func (d *Direction) retransmitted() *float64 {
	if d.RetransmittedSegment == nil || d.Bytes == nil || d.MSSBytes == nil || *d.MSSBytes <= 0 ||
		*d.Bytes < int64(*d.MSSBytes) {
		return nil
	}
	ratio := float64(*d.RetransmittedSegment) * float64(*d.MSSBytes) / float64(*d.Bytes)
	return &ratio
}

// OutcomeOf is how a measured document says that it ended.
func OutcomeOf(doc Document) Outcome {
	var failure *Failure
	interrupted := false
	switch d := doc.(type) {
	case *Measure:
		failure = d.Error
		for i := range d.Directions {
			interrupted = interrupted || d.Directions[i].Interrupted
		}
	case *MeasureUDP:
		failure = d.Error
		for i := range d.Directions {
			interrupted = interrupted || d.Directions[i].Interrupted
		}
	case *Capacity:
		failure = d.Error
	case *Compare:
		failure = d.Error
		interrupted = d.Interrupted
	case *Tune:
		failure = d.Error
		for i := range d.Directions {
			interrupted = interrupted || d.Directions[i].Interrupted
		}
	case *Sweep:
		failure = d.Error
		interrupted = d.Interrupted
	case *RFC6349:
		failure = d.Error
		interrupted = d.Interrupted
	case *Diagnose:
		interrupted = d.Interrupted
	}
	switch {
	case interrupted || failure != nil && failure.Message == "interrupted":
		return Interrupted
	case failure != nil:
		return Failed
	}
	return Done
}
