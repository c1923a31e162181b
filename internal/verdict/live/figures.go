package live

import (
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// figures returns the measurements that the verdict must agree with.
func (a *analysis) figures() verdict.Figures {
	n := len(a.connections)
	f := verdict.Figures{LengthS: a.total.Seconds() / float64(n), FullLinkBps: a.path.meanRate,
		MinRTTS: a.path.minRTT.Seconds(), RTTLoadedS: a.path.meanRTT.Seconds(),
		WindowBytes: float64(a.median((*connection).window)), WindowRateBps: a.windowRate(),
		SlowStarts: 1, Queue: isFull.IsTrue(a.whole()) && a.path.queueRatio() > threshold.QueueOfWindow.Value}
	idle := time.Duration(0)
	known := true
	for _, c := range a.connections {
		last := &c.samples[len(c.samples)-1]
		f.CarriedBytes += max(float64(last.Sent), c.delivered[len(c.delivered)-1])
		known = known && c.has(transfer.HaveLimits)
		for i := range c.rounds {
			idle += c.idle(&c.rounds[i])
			if c.rounds[i].end.Timeouts > c.rounds[i].start.Timeouts || c.idle(&c.rounds[i]) > 0 {
				f.SlowStarts++
			}
		}
	}
	if known {
		f.IdleRatio = ratio(idle, a.total)
	}
	return f
}

// windowRate returns the rate of one connection in bit/s over the rounds that were rwnd-limited for most of their
// time, or 0 without such rounds.
func (a *analysis) windowRate() float64 {
	var bytes float64
	var took time.Duration
	for _, c := range a.connections {
		for i := range c.rounds {
			r := &c.rounds[i]
			if float64(c.windowLimited(r)) >= threshold.HeadlineShare.Value*float64(r.length) {
				bytes += r.bps * r.length.Seconds() / 8
				took += r.length
			}
		}
	}
	if took <= 0 {
		return 0
	}
	return bytes * 8 / took.Seconds()
}

// supportedRTT is a least round trip that a twentieth of all smoothed ones does not exceed:
// no single packet's. 0 where none are known.
func supportedRTT(e *transfer.End) time.Duration {
	var all []time.Duration
	for i := range e.Streams {
		_, samples := during(&e.Streams[i])
		for j := range samples {
			if s := &samples[j]; s.Have&transfer.HaveRTT != 0 && s.RTT > 0 {
				all = append(all, s.RTT)
			}
		}
	}
	if len(all) == 0 {
		return 0
	}
	slices.Sort(all)
	return all[int(float64(len(all)-1)*threshold.BestLeftOut.Value)]
}
