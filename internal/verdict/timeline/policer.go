package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// policed reports whether a policer dropped the segments: several at a time, without a queue before them, at about the
// same bytes in flight and at a rate that stays the same.
func (t *timeline) policed() bool {
	d := t.d
	if d.LossEvents < int64(threshold.PolicedEvents.Value) || t.queueing || len(d.Slices) < threshold.PolicedSlices ||
		float64(d.Retransmitted-d.Spurious) < threshold.LossInBursts.Value*float64(d.LossEvents) || t.queuedBeforeLoss() {
		return false
	}
	first := 0.0 // timeouts leave no steady rate, but one below the beginning's
	for i := range d.Slices[:len(d.Slices)/8+1] {
		first = max(first, d.Slices[i].PeakAcked)
	}
	least, most := t.evenness()
	if 2*d.Timeouts > d.LossEvents && first <= threshold.FirstBurst.Value*most {
		return false
	}
	return most < threshold.PolicedEven*least
}

// queuedBeforeLoss reports whether most loss events came after a queue of some packets, or at different bytes in
// flight: a full queue precedes each of its losses, a policer has none, and random losses have no rate of their own.
func (t *timeline) queuedBeforeLoss() bool {
	points := t.d.LossPoints
	queues := make([]weighted, 0, len(points))
	windows := make([]weighted, 0, len(points))
	for _, p := range points {
		queues = append(queues, weighted{float64(p.Queue) / 1e9, 1})
		windows = append(windows, weighted{float64(p.Out), 1})
	}
	packet := float64(t.d.MSS) / max(t.capacity, 1)
	scattered := len(points) >= threshold.PolicedPoints &&
		quantile(windows, 0.75) > threshold.PolicedWindows*quantile(windows, 0.25)+float64(t.d.MSS)
	return scattered || quantile(queues, 0.25) > threshold.PolicedQueue*packet
}

// evenness is the lowest and the highest rate of six equal parts of the time after the
// beginning, bytes/s.
func (t *timeline) evenness() (least, most float64) {
	const parts = 6
	all := t.d.Slices[len(t.d.Slices)/8+1:]
	if len(all) < 2*parts {
		return 0, 0
	}
	var acked, took [parts]float64
	begin := all[0].Start
	end := all[len(all)-1].End
	for i := range all {
		part := int((all[i].Start - begin) * parts / max(end-begin, 1))
		acked[part] += float64(all[i].Acked)
		took[part] += sliceTime(&all[i])
	}
	for i := range acked {
		if took[i] == 0 {
			return 0, 0
		}
		rate := acked[i] / took[i]
		most = max(most, rate)
		if i == 0 || rate < least {
			least = rate
		}
	}
	return least, most
}
