package tune

import (
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// noiseOf is what one transfer by a setup is expected to scatter by: as its runs did, where there are
// some and loss made them differ by more than the best transfer's own spans do.
func (o *observations) noiseOf(s Setup) float64 {
	noise := o.expectedNoise()
	if runs := goodputs(o.runsOf(s)); len(runs) >= enoughToday {
		noise = max(noise, stats.Pool(stats.Noise{Dev: noise, DOF: enoughToday}, stats.Logs(runs)).Dev)
	}
	return noise
}

// expectedNoise returns the expected scatter of one transfer's goodput, as a share, from the spans of the best ones.
func (o *observations) expectedNoise() float64 {
	noise := 0.03
	for _, t := range o.of(func(t *Trial) bool { return t.Goodput > o.best/2 }) {
		noise = min(noise, scatter(t.result, o.path.round))
	}
	return noise
}

// scatter returns the standard deviation that a transfer's goodput is expected to have, from how its own spans differ.
func scatter(r *transfer.Result, rtt time.Duration) float64 {
	const least = 0.004
	end := r.CountingEnd()
	startup, ok := r.Startup()
	if end == nil || len(end.Streams) == 0 || !ok {
		return 0.02
	}
	// Eight batches, long enough that data delayed by a hole arrives in its own.
	s := &end.Streams[0]
	rates := spans(s, startup.End, max(2*rtt, (s.Last-s.First-startup.End)/8))
	if len(rates) < 4 {
		return 0.02
	}
	for i := range rates {
		rates[i] = math.Max(rates[i], 1)
	}
	logs := stats.Logs(rates)
	mean, dev := stats.MeanDev(logs)
	// Data that came early in a burst is missing in the next batch, so neighbours that move against each other count less.
	var neighbours float64
	for i := 1; i < len(logs); i++ {
		neighbours += (logs[i] - mean) * (logs[i-1] - mean) / float64(len(logs)-1)
	}
	variance := math.Max(dev*dev+2*neighbours, dev*dev/8)
	return math.Min(math.Max(math.Sqrt(variance/float64(len(logs))), least), 0.3)
}

// spans returns the rates of consecutive spans of a stream, from a time since the first byte on.
func spans(s *transfer.Stream, from, span time.Duration) (rates []float64) {
	var at time.Duration
	var bytes int64
	for _, sample := range s.Samples {
		if sample.At < s.First+from || sample.At > s.Last {
			continue
		}
		delivered := sample.Received
		if sample.Have&transfer.HaveReceived == 0 || delivered == 0 {
			delivered = sample.Acked
		}
		if at > 0 && sample.At-at < span {
			continue
		}
		if at > 0 {
			rates = append(rates, float64(delivered-bytes)*8/(sample.At-at).Seconds())
		}
		at = sample.At
		bytes = delivered
	}
	return rates
}
