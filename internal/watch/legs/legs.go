// Package legs finds connections through which one program passes the same data, such as the two of
// a proxy. It needs the payload that the program read and wrote, sampled over some seconds.
package legs

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Role is what one of two legs does.
type Role string

// Roles.
const (
	Limits Role = "limits" // the other leg waits for this one
	Waits  Role = "waits"  // this leg waits for the other
)

// Series is the payload that a program has read from a connection, or written to it.
type Series struct {
	At    []time.Duration // when it was sampled, in order
	Bytes []int64         // since the connection began, or any constant more
}

// Sum returns the payload of several series at the times of the first.
func Sum(all []Series) (sum Series) {
	if len(all) == 0 {
		return sum
	}
	for i, at := range all[0].At {
		total := all[0].Bytes[i]
		known := true
		for j := range all[1:] {
			bytes, ok := all[j+1].at(at)
			known = known && ok
			total += int64(bytes)
		}
		if known {
			sum.At = append(sum.At, at)
			sum.Bytes = append(sum.Bytes, total)
		}
	}
	return sum
}

// at returns the payload at a time: of the nearest sample, which was read together with the other
// connection's, or between two samples.
func (s *Series) at(t time.Duration) (bytes float64, ok bool) {
	i, _ := slices.BinarySearch(s.At, t)
	for _, near := range []int{i - 1, i} {
		if near >= 0 && near < len(s.At) && (t-s.At[near]).Abs() <= threshold.LegApart {
			return float64(s.Bytes[near]), true
		}
	}
	if i == 0 || i == len(s.At) || s.At[i]-s.At[i-1] > threshold.LegGap {
		return 0, false
	}
	part := (t - s.At[i-1]).Seconds() / (s.At[i] - s.At[i-1]).Seconds()
	return float64(s.Bytes[i-1]) + part*float64(s.Bytes[i]-s.Bytes[i-1]), true
}

// SameData reports whether a program wrote what it read: as many bytes, less what fits into its own
// buffer, and more in the moments in which more came. Two transfers at the same steady rate have only
// the first in common. differs is the largest difference as a share of the data.
func SameData(read, written Series) (differs float64, ok bool) {
	var at, in, out []float64
	for i, t := range read.At {
		if bytes, known := written.at(t); known {
			at = append(at, t.Seconds())
			in = append(in, float64(read.Bytes[i]))
			out = append(out, bytes)
		}
	}
	last := len(at) - 1
	if last < 1 || at[last]-at[0] < threshold.LegSpan.Seconds() {
		return 0, false
	}
	moved := in[last] - in[0]
	buffered := make([]float64, len(at))
	for i := range at {
		buffered[i] = in[i] - out[i]
	}
	spread := slices.Max(buffered) - slices.Min(buffered)
	if moved < threshold.LegBytes ||
		spread > max(min(threshold.LegBuffer, threshold.LegBuffered*moved), threshold.LegDiffers*moved) {
		return 0, false
	}
	// A program that waits for whole blocks, such as of a cipher, follows in longer steps only.
	for _, step := range []int{1, 2, 4} {
		enough := max(threshold.LegCorrelation, threshold.LegChance/math.Sqrt(float64(last/step)))
		if correlation(unsteady(at, in, step), unsteady(at, out, step)) >= enough {
			return spread / moved, true
		}
	}
	return 0, false
}

// unsteady returns by how much the payload in each step differs from the mean rate's. step is in
// samples.
func unsteady(at, bytes []float64, step int) (differs []float64) {
	last := len(at) - 1
	rate := (bytes[last] - bytes[0]) / (at[last] - at[0])
	for i := step; i <= last; i += step {
		differs = append(differs, bytes[i]-bytes[i-step]-rate*(at[i]-at[i-step]))
	}
	return differs
}

// correlation is Pearson's coefficient of steps whose mean is 0; 0 where one has no variation.
func correlation(a, b []float64) float64 {
	var ab, aa, bb float64
	for i := range a {
		ab += a[i] * b[i]
		aa += a[i] * a[i]
		bb += b[i] * b[i]
	}
	if aa == 0 || bb == 0 {
		return 0
	}
	return ab / math.Sqrt(aa*bb)
}

// stop is a time without payload between payload.
type stop struct{ from, to time.Duration }

// stops returns the times without payload that are seen whole.
func (s *Series) stops() (all []stop) {
	moved := -1 // the last sample with new payload
	for i := 1; i < len(s.At); i++ {
		if s.Bytes[i] == s.Bytes[i-1] {
			continue
		}
		if moved >= 0 && s.At[i]-s.At[moved] >= threshold.LegStop {
			all = append(all, stop{s.At[moved], s.At[i]})
		}
		moved = i
	}
	return all
}

// SameStops reports whether each stop of one series has one of the other, at irregular times: the
// bytes of a program that compresses or encrypts are not the same, its stops are.
func SameStops(read, written Series) bool {
	in := read.stops()
	out := written.stops()
	if len(in) < threshold.LegStops || len(in) != len(out) {
		return false
	}
	var lags, between []float64
	for i := range in {
		lag := out[i].from - in[i].from
		if lag.Abs() > threshold.LegLag || (out[i].to-in[i].to).Abs() > threshold.LegLag {
			return false
		}
		lags = append(lags, lag.Seconds())
		if i > 0 {
			between = append(between, (in[i].from - in[i-1].from).Seconds())
		}
	}
	_, jitter := stats.MeanDev(lags)
	_, irregular := stats.MeanDev(between)
	return irregular >= threshold.LegIrregular*max(jitter, threshold.LegApart.Seconds())
}
