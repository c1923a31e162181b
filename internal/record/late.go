package record

import "github.com/fullpipe-net/fullpipe/internal/verdict"

// Late is the timing error of the lab of a measurement: how much later than an exact link it forwarded packets, and its
// stalls. The figures outside Up and Down are the larger of both.
type Late struct {
	LinkLate
	Up   LinkLate `json:"up"`
	Down LinkLate `json:"down"`
	RTTS float64  `json:"rtt_s"` // asked for
	// FloorS is the least round trip that the lab could have had; absent: not known.
	FloorS float64 `json:"floor_s,omitempty"`
	// Believable is false when either direction stalled for more than 0.5 % of the time, or forwarded one packet in 100
	// more than 0.25 ms and 5 % of the RTT late.
	Believable bool `json:"believable"`
}

// LinkLate is one direction's.
type LinkLate struct {
	P50S     float64 `json:"p50_s"`
	P99S     float64 `json:"p99_s"`
	MaxS     float64 `json:"max_s"`
	Stalls   int64   `json:"stalls"` // of 2 ms or more
	StalledS float64 `json:"stalled_s"`
	WatchedS float64 `json:"watched_s"` // for how long there was traffic
}

// Doubtful reports whether a late lab makes a document's figures unreliable. A gain that tune has shown is not in
// doubt: both sides were measured in turn, under the same delays.
func Doubtful(doc Document) bool {
	l := doc.Head().Late
	if l == nil || l.Believable {
		return false
	}
	tune, ok := doc.(*Tune)
	if !ok {
		return true
	}
	for i := range tune.Directions {
		if !tune.Directions[i].gainShown() {
			return true
		}
	}
	return len(tune.Directions) == 0
}

// gainShown reports whether the interval of the chosen setup's gain lies above 1.
func (d *TuneDirection) gainShown() bool {
	return d.Chosen != nil && !d.Chosen.Automatic && !d.IsLikely() &&
		d.Gain != nil && d.Gain.CI95 != nil && d.Gain.CI95[0] > 1
}

// LowerDoubtful lowers the confidence of each verdict of a doubtful document by one step.
func LowerDoubtful(doc Document) {
	if !Doubtful(doc) {
		return
	}
	var all []*verdict.Confidence
	switch d := doc.(type) {
	case *Measure:
		for i := range d.Directions {
			all = append(all, &d.Directions[i].Confidence)
		}
	case *MeasureUDP:
		for i := range d.Directions {
			all = append(all, &d.Directions[i].Confidence)
		}
	case *Tune:
		for i := range d.Directions {
			all = append(all, &d.Directions[i].Before.Confidence)
		}
	case *RFC6349:
		for i := range d.Directions {
			for j := range d.Directions[i].Tests {
				all = append(all, &d.Directions[i].Tests[j].Confidence)
			}
		}
	case *Sweep:
		for i := range d.Cells {
			all = append(all, &d.Cells[i].Confidence)
		}
	}
	for _, c := range all {
		if *c != "" {
			*c = verdict.Lower(*c)
		}
	}
}
