package tune

import (
	"context"
	"maps"
	"slices"
	"sort"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// measureAfterLosses makes a longer baseline run where the others lost as much as behind a policer and were too short
// to show what it lets through without its bucket.
func (b *belowCapacity) measureAfterLosses(ctx context.Context) error {
	ratio := stats.Median(retransmitRatios(b.seen.baselineRuns()))
	if !(ratio >= threshold.PolicedLoss.Value) || b.seen.withoutBucket() > 0 ||
		b.budget.Time > 0 && !b.affords(policedRun, 1) {
		return nil
	}
	_, err := b.try(ctx, b.with(Setup{}, policedRun, TodayLonger))
	return err
}

// leaveOutBuckets reduces the goodputs of all runs, also of later ones, by what a policer's bucket adds to short ones.
// It does not reduce them below a paced goodput that the policer lets through.
func (o *observations) leaveOutBuckets(paced float64) {
	o.longRun = o.withoutBucket()
	if o.longRun == 0 {
		return
	}
	o.longRun = max(o.longRun, paced)
	o.bucket = slices.Max(each(o.baselineRuns(), func(t *Trial) float64 { return t.excess(o.longRun/8, true) }))
	o.best = 0
	for i := range o.trials {
		o.leaveOutBucket(&o.trials[i])
		o.best = max(o.best, o.trials[i].Goodput)
	}
}

// leaveOutBucket reduces the goodput of a transfer that a policer made lose segments: its bucket was empty in the end.
// A connection may use less than the policer's rate, so the bucket's bytes bound the reduction.
func (o *observations) leaveOutBucket(t *Trial) {
	if !t.loses() || o.longRun == 0 {
		return
	}
	received, _ := t.result.Received()
	startup, _ := t.result.Startup()
	steady := received.Duration() - startup.End
	if steady <= 0 {
		return
	}
	added := 8 * o.bucket / steady.Seconds()
	t.Goodput = max(min(t.Goodput, o.longRun), t.Goodput-added)
}

// withoutBucket returns the best rate in bit/s of an unpaced connection after losses; 0: not known. A bucket may not be
// empty yet when a shorter transfer loses segments.
func (o *observations) withoutBucket() (bps float64) {
	for _, t := range o.unpacedLosing() {
		if t.canShowPolicer() {
			bps = max(bps, t.afterLoss())
		}
	}
	return bps
}

// unpacedLosing returns the trials of one connection that nothing paced and that lost segments.
func (o *observations) unpacedLosing() []*Trial {
	return o.of(func(t *Trial) bool { return t.loses() && t.Setup.PacingBps == 0 && t.Spec.Streams < 2 })
}

// describePolicer puts before the evidence of a policer what all runs together show of it, at the IP layer: its rate,
// its bucket, and the bucket with which one connection of a congestion control keeps that rate.
func (o *observations) describePolicer(m *Measured, control string) {
	v := &m.Verdict
	if v.Subtype != verdict.Policer || o.longRun == 0 || o.path.CapacityBps <= 0 {
		return
	}
	bytes := stats.Median(each(o.unpacedLosing(), func(t *Trial) float64 { return t.excess(o.longRun/8, true) }))
	headers := o.path.BottleneckBps / o.path.CapacityBps
	rate := o.longRun * headers
	values := verdict.Values{"rate_bps": rate, "bucket_bytes": bytes * headers}
	v.Evidence = slices.Clone(v.Evidence)
	if m.Retransmits != nil {
		values["retransmitted_ratio"] = *m.Retransmits
		for i := range v.Evidence { // of one run
			if e := &v.Evidence[i]; e.Code == verdict.PolicedRate || e.Code == verdict.LossWithoutQueue {
				e.Values = maps.Clone(e.Values)
				e.Values["retransmitted_ratio"] = *m.Retransmits
			}
		}
	}
	if needed := model.PolicerBucket(o.longRun, o.path.RTT, o.path.MSS, control); needed > bytes {
		values["needed_bytes"] = needed * headers
		values["window_bytes"] = float64(o.path.Window)
	}
	v.Evidence = append([]verdict.Evidence{{Limiter: v.Limiter, Code: verdict.PolicerBucket, Values: values}},
		v.Evidence...)
}

// afterLoss returns the rate in bit/s at which segments arrived from a loss on: a policer's bucket is empty then. It
// returns 0 where that is less than a third of the transfer.
func (t *Trial) afterLoss() float64 {
	end := t.result.Sender()
	_, settled, ended := lossTimes(end)
	if settled == 0 || 3*settled > 2*ended {
		return 0
	}
	return float64(arrivedBy(end, ended)-arrivedBy(end, settled)) * 8 / (ended - settled).Seconds()
}

// lossTimes returns the times of the first loss and of the first one after a quarter of the time with losses, 0 where
// nothing was lost, and that of the last sample. A full queue may lose the first segments.
func lossTimes(end *transfer.End) (first, settled, ended time.Duration) {
	if end == nil {
		return 0, 0, 0
	}
	var lost []time.Duration
	for i := range end.Streams {
		all := end.Streams[i].Samples
		for j := 1; j < len(all); j++ {
			if all[j].Retransmitted > all[j-1].Retransmitted {
				lost = append(lost, all[j].At)
			}
			ended = max(ended, all[j].At)
		}
	}
	if len(lost) == 0 {
		return 0, 0, ended
	}
	slices.Sort(lost)
	quarter := lost[0] + (lost[len(lost)-1]-lost[0])/4
	return lost[0], lost[slices.IndexFunc(lost, func(at time.Duration) bool { return at >= quarter })], ended
}

// arrivedBy returns the bytes that had arrived at a time, of all connections of a sender.
func arrivedBy(end *transfer.End, at time.Duration) (bytes int64) {
	for i := range end.Streams {
		s := &end.Streams[i]
		n := sort.Search(len(s.Samples), func(j int) bool { return s.Samples[j].At > at })
		if n > 0 {
			bytes += s.Samples[n-1].Arrived(s.Handshake.SegmentSize())
		}
	}
	return bytes
}

// excess returns the most bytes that arrived until the first loss, or until losses settled, beyond a rate in bytes a
// second: those of a policer's bucket. A queue lets no more through than its link's rate.
func (t *Trial) excess(rate float64, toSettled bool) float64 {
	end := t.result.Sender()
	if end == nil || len(end.Streams) != 1 {
		return 0
	}
	until, settled, _ := lossTimes(end)
	if toSettled {
		until = settled
	}
	var most, lowest float64
	for _, s := range end.Streams[0].Samples {
		if s.Have&transfer.HaveAcked == 0 || until > 0 && s.At >= until {
			break
		}
		ahead := float64(s.Arrived(end.Streams[0].Handshake.SegmentSize())) - rate*s.At.Seconds()
		lowest = min(lowest, ahead)
		most = max(most, ahead-lowest)
	}
	return most
}
