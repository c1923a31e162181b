// Package report makes the documents of record/ from what instruments, judges and loops
// answer, one file a document. It does no I/O: what a document needs besides is passed in.
package report

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Host names an end; nil where it cannot be seen.
func Host(e *transfer.End) *record.Host {
	if e == nil {
		return nil
	}
	h := &record.Host{Kernel: e.Kernel}
	if len(e.Streams) > 0 {
		h.Address, h.Congestion = e.Streams[0].Local.Addr().String(), e.Streams[0].Congestion
	}
	return h
}

// Direction describes one transfer and its verdict.
func Direction(r *transfer.Result, v verdict.Verdict, intervals []transfer.Interval) record.Direction {
	d := record.Direction{Direction: r.Spec.Direction, Verdict: v, Interrupted: !r.Complete, Warnings: r.Warnings,
		Streams: []record.Stream{}}
	if received, ok := r.Received(); ok {
		d.Bytes = &received.Bytes
		d.DurationS = seconds(received.Duration())
		d.GoodputBps = rate(received.Bps())
	}
	if startup, ok := r.Startup(); ok {
		d.Startup = &record.Startup{DurationS: startup.End.Seconds(), Bytes: startup.Bytes}
		d.SteadyGoodputBps = rate(startup.SteadyBps)
	}
	if e := r.Sender(); e != nil {
		senderSide(&d, e)
		d.RTTLoadedS = LoadedRTT(e, d.Startup)
		d.Curves = newDirectionCurves(e)
	}
	if e := r.Receiver(); e != nil && len(e.Streams) > 0 {
		d.Windows.ReceiveBuffer = newBuffer(e.Streams[0].ReceiveBuffer)
		if h := e.Streams[0].Handshake; h != nil && h.ReceiveScale >= 0 {
			d.WindowScale = &h.ReceiveScale
		}
	}
	streams(&d, r)
	d.Fix = Fixes(v, factsOf(&d))
	d.Intervals = Intervals(intervals)
	d.CPU = newCPU(r)
	d.Latency = Latency(r.Latency, &d)
	return d
}

// Intervals are the intervals of a transfer as a document has them.
func Intervals(intervals []transfer.Interval) (all []record.Interval) {
	var resent int64
	for _, i := range intervals {
		one := record.Interval{StartS: i.Start.Seconds(), EndS: i.End.Seconds(), Bytes: i.Bytes, GoodputBps: Bps(i.Bytes,
			i.End-i.Start)}
		if s := i.Sender; s != nil {
			if s.Have&transfer.HaveRTT != 0 {
				one.RTTS = seconds(s.RTT)
			}
			if s.Have&transfer.HaveRetrans != 0 {
				since := s.Retransmitted - resent
				one.Retransmitted, resent = &since, s.Retransmitted
			}
		}
		all = append(all, one)
	}
	return all
}

func senderSide(d *record.Direction, e *transfer.End) {
	if len(e.Streams) == 0 {
		return
	}
	d.Windows.SendBuffer = newBuffer(e.Streams[0].SendBuffer)
	if h := e.Streams[0].Handshake; h != nil {
		d.MSSBytes = &h.MSS
		if h.SendScale >= 0 {
			d.WindowScale = &h.SendScale
		}
	}
	var rtt rttSum
	var retransmitted int64
	var counted bool
	for _, s := range e.Streams {
		for _, sample := range s.Samples {
			rtt.add(sample)
		}
		if n := len(s.Samples); n > 0 && s.Samples[n-1].Have&transfer.HaveRetrans != 0 {
			retransmitted += s.Samples[n-1].Retransmitted
			counted = true
		}
	}
	if counted {
		d.RetransmittedSegment = &retransmitted
	}
	d.RTTMinS, d.RTTMeanS = rtt.min(), rtt.mean()
}

func streams(d *record.Direction, r *transfer.Result) {
	end := r.Receiver()
	if end == nil {
		end = r.Sender()
	}
	if end == nil {
		return
	}
	for i, s := range end.Streams {
		out := record.Stream{Local: s.Local.String(), Remote: s.Remote.String(), Bytes: s.Bytes, GoodputBps: Bps(s.Bytes,
			s.Last-s.First),
			Congestion: s.Congestion}
		if sender := r.Sender(); sender != nil && i < len(sender.Streams) {
			out.Congestion = sender.Streams[i].Congestion
			if samples := sender.Streams[i].Samples; len(samples) > 0 && samples[len(samples)-1].Have&transfer.HaveRetrans != 0 {
				out.Retransmitted = &samples[len(samples)-1].Retransmitted
			}
		}
		d.Streams = append(d.Streams, out)
	}
}

func newBuffer(b transfer.Buffer) *record.Buffer {
	return &record.Buffer{RequestedBytes: known(b.Requested), GrantedBytes: known(b.Granted),
		EffectiveBytes: known(b.Effective), Automatic: b.Automatic(), Clipped: b.Clipped}
}

func newCPU(r *transfer.Result) *record.CPU {
	shares := func(c *transfer.CPU) (process, thread, starved, host *float64) {
		if c == nil || c.Wall <= 0 {
			return
		}
		if c.BusiestThread > 0 {
			thread = rate(c.BusiestThread)
		}
		if c.StarvedThread > 0 {
			starved = rate(c.StarvedThread)
		}
		return rate(c.Process.Seconds() / c.Wall.Seconds()), thread, starved, c.Host
	}
	var cpu record.CPU
	if r.Near != nil {
		cpu.NearProcess, cpu.NearRatio, cpu.NearStarved, cpu.NearHost = shares(r.Near.CPU)
	}
	far := r.FarCPU
	if r.Far != nil && r.Far.CPU != nil {
		far = r.Far.CPU
	}
	cpu.FarProcess, cpu.FarRatio, cpu.FarStarved, cpu.FarHost = shares(far)
	if cpu.NearProcess == nil && cpu.FarProcess == nil {
		return nil
	}
	return &cpu
}

// starved says whether a core is what the transfer lacked: then the programs that ask and
// answer beside it lacked one too.
func starved(d *record.Direction) bool {
	return d.Limiter == verdict.CPU || d.Limiter == verdict.Mixed && slices.Contains(d.Candidates, verdict.CPU)
}

// LoadedRTT is the sender's smoothed round trip after the startup that was exceeded half
// of the time; nil where none was told. Samples are not evenly spaced, so time counts.
func LoadedRTT(e *transfer.End, startup *record.Startup) *float64 {
	type stay struct{ rtt, lasted time.Duration }
	var stays []stay
	var sum time.Duration
	for _, s := range e.Streams {
		at := s.First
		if startup != nil {
			at += time.Duration(startup.DurationS * float64(time.Second))
		}
		for _, sample := range s.Samples {
			if sample.Have&transfer.HaveRTT == 0 || sample.RTT <= 0 || sample.At <= at || sample.At > s.Last {
				continue
			}
			stays = append(stays, stay{sample.RTT, sample.At - at})
			sum += sample.At - at
			at = sample.At
		}
	}
	slices.SortFunc(stays, func(a, b stay) int { return cmp.Compare(a.rtt, b.rtt) })
	var passed time.Duration
	for _, s := range stays {
		if passed += s.lasted; 2*passed >= sum {
			return seconds(s.rtt)
		}
	}
	return nil
}

// rttSum gathers the least and the mean of the smoothed RTT over samples.
type rttSum struct {
	least, sum time.Duration
	n          int
}

func (r *rttSum) add(s transfer.Sample) {
	if s.Have&transfer.HaveRTT != 0 && s.RTT > 0 {
		r.sum += s.RTT
		r.n++
		r.lower(s.RTT)
	}
	if s.Have&transfer.HaveMinRTT != 0 && s.MinRTT > 0 {
		r.lower(s.MinRTT)
	}
}

func (r *rttSum) lower(d time.Duration) {
	if r.least == 0 || d < r.least {
		r.least = d
	}
}

func (r *rttSum) min() *float64 {
	if r.least == 0 {
		return nil
	}
	return seconds(r.least)
}

func (r *rttSum) mean() *float64 {
	if r.n == 0 {
		return nil
	}
	return seconds(r.sum / time.Duration(r.n))
}

func seconds(d time.Duration) *float64 { s := d.Seconds(); return &s }

func rate(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return nil
	}
	return &v
}

func known(v int) *int {
	if v == 0 {
		return nil
	}
	return &v
}

func Bps(bytes int64, span time.Duration) float64 {
	if span <= 0 {
		return 0
	}
	return float64(bytes) * 8 / span.Seconds()
}

func orZero(v *float64) float64 {
	if v == nil {
		return 0
	}
	return *v
}
