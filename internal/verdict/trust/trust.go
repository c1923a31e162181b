// Package trust decides whether losses and times of a capture can be relied on, from what the tap did to the traffic:
// merged segments, packets that it missed or cut, duplicates, and its clock.
package trust

import (
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Trust says whether conclusions from losses and from times can be relied on.
type Trust struct {
	Loss    bool     `json:"loss"`
	Timing  bool     `json:"timing"`
	Reasons []Reason `json:"reasons,omitempty"`
}

// Reason is one observation about the tap. It may deny neither loss nor timing.
type Reason struct {
	Code   Code           `json:"code"`
	Denies []Subject      `json:"denies,omitempty"`
	Text   string         `json:"text"` // its words, which report adds
	Values verdict.Values `json:"values,omitempty"`
}

// Subject is what a Reason denies.
type Subject string

const (
	Loss   Subject = "loss"
	Timing Subject = "timing"
)

// Code names a Reason.
type Code string

const (
	// OneDirection: only the data or only the acknowledgements were captured.
	OneDirection Code = "one-direction"
	// NotCaptured: data that was acknowledged or passed over, or packets that the tap counted as dropped. missing_ratio.
	NotCaptured Code = "not-captured"
	// HeadersCut: TCP packets captured too short for their headers. cut_ratio.
	HeadersCut Code = "headers-cut"
	// OptionsCut: segments whose options were cut off, so that SACK does not show which retransmissions were spurious.
	// cut_ratio.
	OptionsCut Code = "options-cut"
	// MergedTransmit, MergedReceive and Merged: segments longer than the MSS, which the host of the tap merges before it
	// sends (GSO) or after it receives (GRO), or another box merged. merged_ratio of the bytes, merged_bytes (the mean),
	// merged_s (the time that the path takes for one) and rtt_s, where they are known.
	MergedTransmit Code = "merged-transmit"
	MergedReceive  Code = "merged-receive"
	Merged         Code = "merged"
	// ClockSteps: the clock was set. steps.
	ClockSteps Code = "clock-steps"
	// CoarseClock: the clock counts in steps too long for the round trip. grain_s, rtt_s.
	CoarseClock Code = "coarse-clock"
	// Batched: several packets were stamped at once. grain_s, rtt_s.
	Batched Code = "batched"
	// Duplicates: segments that were captured twice. Copies are left out of all other figures. duplicate_ratio.
	Duplicates Code = "duplicates"
)

// Place is where the tap is.
type Place uint8

const (
	Elsewhere Place = iota
	AtSender
	AtReceiver
)

// Direction is what a tap showed of the data of one direction.
type Direction struct {
	OneWay  bool
	Bytes   int64
	Missing int64 // bytes acknowledged or passed over, and not captured

	Segments, Duplicates int64 // of the connection
	CutOptions           int64 // segments of the connection whose SACK blocks may be cut off

	Place       Place
	MergedCount int64 // segments longer than the MSS
	MergedBytes int64
	PaceBps     float64 // of data that was in flight at once, bytes/s; 0 unknown
	RTT         float64 // of the empty path, seconds; 0 unknown

	ClockSteps int64
	Grain      float64 // seconds
	Coarse     bool    // Grain is too long for RTT
	InBatches  bool
}

// Of returns the trust in one direction of a capture.
func Of(d *Direction) Trust {
	t := Trust{Loss: true, Timing: true}
	if d.OneWay {
		t.Add(Reason{Code: OneDirection, Denies: []Subject{Loss, Timing}})
	}
	t.merged(d)
	if d.Missing > 0 && d.Bytes > 0 && !d.OneWay {
		t.AddShare(NotCaptured, "missing_ratio", min(float64(d.Missing)/float64(d.Bytes), 1))
	}
	if cut := ratio(d.CutOptions, d.Segments); cut > threshold.UnreliableCapture.Value {
		t.Add(Reason{Code: OptionsCut, Denies: []Subject{Loss}, Values: verdict.Values{"cut_ratio": cut}})
	}
	t.clock(d)
	if copies := ratio(d.Duplicates, d.Segments+d.Duplicates); copies > threshold.UnreliableCapture.Value {
		t.Add(Reason{Code: Duplicates, Values: verdict.Values{"duplicate_ratio": copies}})
	}
	return t
}

// merged adds merged segments. They hide the times within each of them, which matters where that is much of a round
// trip.
func (t *Trust) merged(d *Direction) {
	share := float64(d.MergedBytes) / float64(max(d.Bytes, 1))
	if d.MergedCount == 0 || share < threshold.MergedShare.Value {
		return
	}
	mean := float64(d.MergedBytes) / float64(d.MergedCount)
	r := Reason{Code: map[Place]Code{AtSender: MergedTransmit, AtReceiver: MergedReceive, Elsewhere: Merged}[d.Place],
		Values: verdict.Values{"merged_ratio": min(share, 1), "merged_bytes": mean}}
	if d.PaceBps > 0 && d.RTT > 0 {
		r.Values["merged_s"] = mean / d.PaceBps
		r.Values["rtt_s"] = d.RTT
		if mean/d.PaceBps > threshold.MergedTime.Value*d.RTT {
			r.Denies = []Subject{Timing}
		}
	}
	t.Add(r)
}

func (t *Trust) clock(d *Direction) {
	if d.ClockSteps > 0 {
		t.AddClockSteps(d.ClockSteps)
	}
	if d.Coarse {
		r := Reason{Code: CoarseClock, Denies: []Subject{Timing},
			Values: verdict.Values{"grain_s": d.Grain, "rtt_s": d.RTT}}
		if d.InBatches {
			r.Code = Batched
		}
		t.Add(r)
	}
}

// Capture is what the reader of a capture found out about the whole of it.
type Capture struct {
	Packets    int64
	Dropped    int64 // packets that the tap counted as dropped
	HeadersCut int64 // TCP packets captured too short for their headers
	ClockSteps int64 // times that the clock was set, which the reader corrected
}

// AddCapture adds the reasons that concern a whole capture.
func (t *Trust) AddCapture(c Capture) {
	if c.Dropped > 0 {
		t.AddShare(NotCaptured, "missing_ratio", ratio(c.Dropped, c.Packets+c.Dropped))
	}
	if c.HeadersCut > 0 {
		t.AddShare(HeadersCut, "cut_ratio", ratio(c.HeadersCut, c.Packets))
	}
	if c.ClockSteps > 0 {
		t.AddClockSteps(c.ClockSteps)
	}
}

// AddClockSteps adds a clock that was set n times.
func (t *Trust) AddClockSteps(n int64) {
	t.Add(Reason{Code: ClockSteps, Denies: []Subject{Timing}, Values: verdict.Values{"steps": float64(n)}})
}

// AddShare adds a share of the packets that is not known. It leaves holes in all times, and where it is large, losses
// on the path look like those at the tap.
func (t *Trust) AddShare(code Code, name string, share float64) {
	r := Reason{Code: code, Values: verdict.Values{name: share}}
	if share > threshold.UnreliableSlice.Value {
		r.Denies = append(r.Denies, Loss)
	}
	if share > threshold.UnreliableCapture.Value {
		r.Denies = append(r.Denies, Timing)
	}
	t.Add(r)
}

// Add adds a reason. Of two with one code the stronger stays: the one that denies more, else the first.
func (t *Trust) Add(r Reason) {
	for _, s := range r.Denies {
		switch s {
		case Loss:
			t.Loss = false
		case Timing:
			t.Timing = false
		}
	}
	i := slices.IndexFunc(t.Reasons, func(o Reason) bool { return o.Code == r.Code })
	if i < 0 {
		t.Reasons = append(t.Reasons, r)
	} else if len(r.Denies) > len(t.Reasons[i].Denies) {
		t.Reasons[i] = r
	}
}

// Supports reports whether the evidence of a limiter can be relied on. Losses show an MTU black hole, with or without
// SACK. Losses and round trips show congestion, and times show all others.
func (t *Trust) Supports(limiter verdict.Name) bool {
	switch limiter {
	case verdict.MTUBlackHole:
		return !slices.ContainsFunc(t.Reasons, func(r Reason) bool {
			return r.Code != OptionsCut && slices.Contains(r.Denies, Loss)
		})
	case verdict.Congestion:
		return t.Loss && t.Timing
	}
	return t.Timing
}

// Merge returns the trust in several directions together, given with their bytes: a reason counts where it concerns a
// tenth of the bytes.
func Merge(all []Trust, bytes []int64) Trust {
	total := int64(0)
	by := map[Code]int64{}
	for i := range all {
		total += bytes[i]
		for _, r := range all[i].Reasons {
			by[r.Code] += bytes[i]
		}
	}
	t := Trust{Loss: true, Timing: true}
	for i := range all {
		for _, r := range all[i].Reasons {
			if float64(by[r.Code]) >= threshold.MergedShare.Value*float64(total) {
				t.Add(r)
			}
		}
	}
	return t
}

func ratio(part, whole int64) float64 { return float64(part) / float64(max(whole, 1)) }
