package flow

import "math"

// Bursts are the paces at which two segments or more that were outstanding at once got
// through: the path's pace, if the sender's was not slower. They are kept by logarithmic
// steps.
type Bursts struct {
	steps [burstSteps]struct{ bytes, time float64 } // nanoseconds
}

const (
	burstSteps = 160
	perOctave  = 6
	slowest    = 10 // log2 of the lowest step's bytes per second
)

func (b *Bursts) add(bytes, took int64) {
	s := &b.steps[stepOf(float64(bytes)/float64(took)*1e9)]
	s.bytes += float64(bytes)
	s.time += float64(took)
}

// IEEE 754: the exponent of a double is its octave, the fraction gives the step within it.
const (
	fractionBits = 52
	exponentBias = 1023
)

// withinOctave are the fractions at which an octave's later steps begin.
var withinOctave = func() (begin [perOctave - 1]uint64) {
	for i := range begin {
		begin[i] = math.Float64bits(math.Exp2(float64(i+1)/perOctave)) & (1<<fractionBits - 1)
	}
	return begin
}()

// stepOf is (log2(rate) - slowest) * perOctave, rounded down and kept within the steps.
func stepOf(rate float64) int {
	b := math.Float64bits(rate)
	step := (int(b>>fractionBits) - exponentBias - slowest) * perOctave
	fraction := b & (1<<fractionBits - 1)
	for _, begin := range withinOctave {
		if fraction >= begin {
			step++
		}
	}
	return min(max(step, 0), burstSteps-1)
}

// Quantile is the pace in bytes per second that q of the bytes did not exceed, 0 when
// there were no bursts.
func (b *Bursts) Quantile(q float64) float64 {
	if b == nil {
		return 0
	}
	var sum, total float64
	for i := range b.steps {
		total += b.steps[i].bytes
	}
	for i := range b.steps {
		s := &b.steps[i]
		sum += s.bytes
		if s.bytes > 0 && sum >= q*total {
			return s.bytes / s.time * 1e9
		}
	}
	return 0
}
