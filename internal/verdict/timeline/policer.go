package timeline

import (
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// firstRate returns the best rate of the beginning, bytes/s.
func (t *timeline) firstRate() (first float64) {
	for i := range t.d.Slices[:len(t.d.Slices)/8+1] {
		first = max(first, t.d.Slices[i].PeakAcked)
	}
	return first
}

// steadyRate reports whether the rate stays the same, as behind a policer. Timeouts leave no steady
// rate, but one below the beginning's.
func (t *timeline) steadyRate() bool {
	first := t.firstRate()
	least, most := t.evenness()
	if 2*t.d.Timeouts > t.d.LossEvents && first <= threshold.FirstBurst.Value*most {
		return false
	}
	return most < threshold.PolicedEven.Value*least
}

// losesAtOneWindow reports whether most of the later losses begin at the same bytes in flight, far more is lost at once
// than was in a queue before, and a burst came first: a policer's bucket. A capture of a few saw-teeth shows no steady
// rate.
func (t *timeline) losesAtOneWindow() bool {
	points := t.d.LossPoints[len(t.d.LossPoints)/2:]
	if len(points) < int(threshold.PolicedLosses.Value) || 2*t.d.Timeouts > t.d.LossEvents {
		return false
	}
	largest := int64(0)
	alike := 0
	queues := make([]weighted, 0, len(points))
	for _, p := range points {
		largest = max(largest, p.Out)
		queues = append(queues, weighted{float64(p.Queue) / 1e9, 1})
	}
	for _, p := range points {
		if float64(p.Out)*threshold.PolicedSpread.Value >= float64(largest) {
			alike++
		}
	}
	lost := float64(t.d.Retransmitted-t.d.Spurious) / float64(t.d.LossEvents) * float64(t.d.MSS) / max(t.capacity, 1)
	_, most := t.evenness()
	return 2*alike > len(points) && quantile(queues, 0.5) <= threshold.QueueOfLost.Value*lost &&
		t.firstRate() > threshold.DeliveryBurst.Value*most
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
	scattered := len(points) >= int(threshold.PolicedPoints.Value) &&
		quantile(windows, 0.75) > threshold.PolicedWindows.Value*quantile(windows, 0.25)+float64(t.d.MSS)
	return scattered || quantile(queues, 0.25) > threshold.PolicedQueue.Value*packet
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
