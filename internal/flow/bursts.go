package flow

import "math"

// Bursts are the paces at which two segments or more that were outstanding at once got
// through: the path's pace, if the sender's was not slower. They are kept by logarithmic
// steps.
type Bursts struct {
	bytes [burstSteps]float64
	time  [burstSteps]float64 // nanoseconds
	total float64
}

const (
	burstSteps = 160
	perOctave  = 6
	slowest    = 10 // log2 of the lowest step's bytes per second
)

func (b *Bursts) add(bytes, took int64) {
	rate := float64(bytes) / float64(took) * 1e9
	i := min(max(int((math.Log2(rate)-slowest)*perOctave), 0), burstSteps-1)
	b.bytes[i] += float64(bytes)
	b.time[i] += float64(took)
	b.total += float64(bytes)
}

// Quantile is the pace in bytes per second that q of the bytes did not exceed, 0 when
// there were no bursts.
func (b *Bursts) Quantile(q float64) float64 {
	if b == nil {
		return 0
	}
	sum := 0.0
	for i := range b.bytes {
		if sum += b.bytes[i]; b.bytes[i] > 0 && sum >= q*b.total {
			return b.bytes[i] / b.time[i] * 1e9
		}
	}
	return 0
}
