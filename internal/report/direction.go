// Package report makes the documents of record/ from the results of instruments, judges and loops, one file a document.
// It does no I/O: callers pass all inputs.
package report

import (
	"math"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/record/guard"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Host describes an end; nil if it is not known.
func Host(e *transfer.End) *record.Host {
	if e == nil {
		return nil
	}
	h := &record.Host{Kernel: e.Kernel}
	if len(e.Streams) > 0 {
		h.Address = e.Streams[0].Local.Addr().String()
		h.Congestion = e.Streams[0].Congestion
	}
	return h
}

// Direction describes one transfer and its verdict. It copies, because the JSON of transfer's types is the one of the
// native protocol, and because an absent key in the document means "not known" where transfer has 0.
func Direction(r *transfer.Result, v verdict.Verdict, intervals []transfer.Interval) record.Direction {
	d := record.Direction{Direction: r.Spec.Direction, Verdict: v, Interrupted: !r.Complete, Warnings: r.Warnings,
		ProbedMTUBytes: r.ProbedMTU, Streams: []record.Stream{}}
	if received, ok := r.Received(); ok {
		d.Bytes = &received.Bytes
		if received.Bytes > 0 { // of what never arrived there is no time from the first byte to the last
			d.DurationS = seconds(received.Duration())
		}
		if received.HasRate() {
			d.GoodputBps = rate(received.Bps())
		}
	}
	startup, settled := r.Startup()
	if settled {
		d.Startup = &record.Startup{DurationS: startup.End.Seconds(), Bytes: startup.Bytes}
		d.SteadyGoodputBps = rate(startup.SteadyBps)
	}
	if e := r.Sender(); e != nil {
		senderSide(&d, e)
		d.RTTLoaded = units.Duration(e.LoadedRTT(startup.End))
		d.Curves = newDirectionCurves(e)
	}
	if e := r.Receiver(); e != nil && len(e.Streams) > 0 {
		d.Windows.ReceiveBuffer = record.NewBuffer(&e.Streams[0].ReceiveBuffer)
		if h := e.Streams[0].Handshake; h != nil {
			d.SACK = &h.SACK
			d.Timestamps = &h.Timestamps
			if h.ReceiveScale >= 0 {
				d.WindowScale = &h.ReceiveScale
			}
		}
	}
	streams(&d, r)
	d.Fix = advice.AskAgain(v, advice.Fixes(v, factsOf(&d, r)))
	d.Intervals = Intervals(intervals)
	d.CPU = newCPU(r)
	d.Latency = Latency(r.Latency, &d)
	d.LostAt = lossesOf(r, &d).LostAt()
	d.Warnings = append(slices.Clip(d.Warnings), lossNotes(r, &d)...)
	guard.Direction(&d)
	d.Fix = text.FixSentences(d.Fix)
	d.Evidence = text.EvidenceSentences(d.Evidence)
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
				one.RTT = units.Duration(s.RTT)
			}
			if s.Have&transfer.HaveRetrans != 0 {
				since := s.Retransmitted - resent
				one.Retransmitted = &since
				resent = s.Retransmitted
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
	if b := &e.Streams[0].SendBuffer; *b != (transfer.Buffer{}) { // an ndt7 server reports nothing of its own
		d.Windows.SendBuffer = record.NewBuffer(b)
	}
	if h := e.Streams[0].Handshake; h != nil {
		d.PathMTUBytes = h.PathMTU
		d.MSSBytes = h.MSS
		d.SACK = &h.SACK
		d.Timestamps = &h.Timestamps
		if h.SendScale >= 0 {
			d.WindowScale = &h.SendScale
		}
	}
	for i := range e.Streams {
		if n, ok := e.Streams[i].Retransmitted(); ok {
			sum := n + record.OrZero(d.RetransmittedSegment)
			d.RetransmittedSegment = &sum
		}
	}
	d.RTTMin = units.Duration(e.MinRTT())
	d.RTTMean = units.Duration(e.MeanRTT())
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
			if n, ok := sender.Streams[i].Retransmitted(); ok {
				out.Retransmitted = &n
			}
		}
		d.Streams = append(d.Streams, out)
	}
}

func newCPU(r *transfer.Result) *record.CPU {
	shares := func(c *transfer.CPU) (process, thread, starved, host *float64) {
		if c == nil || c.Wall <= 0 {
			return
		}
		if c.BusiestThread > 0 {
			thread = rate(c.BusiestThread)
		}
		if c.RunqueueWait > 0 {
			starved = rate(c.RunqueueWait)
		}
		return rate(c.Process.Seconds() / c.Wall.Seconds()), thread, starved, c.Host
	}
	var cpu record.CPU
	if r.Near != nil && r.Near.CPU != nil {
		cpu.NearCopies = r.Near.CPU.Copies
		cpu.NearProcess, cpu.NearRatio, cpu.NearStarved, cpu.NearHost = shares(r.Near.CPU)
	}
	far := r.FarCPU
	if r.Far != nil && r.Far.CPU != nil {
		far = r.Far.CPU
		cpu.FarCopies = far.Copies
	}
	cpu.FarProcess, cpu.FarRatio, cpu.FarStarved, cpu.FarHost = shares(far)
	if cpu.NearProcess == nil && cpu.FarProcess == nil {
		return nil
	}
	return &cpu
}

// starved reports whether the transfer lacked a core: then the concurrent probes and their
// replies lacked one too.
func starved(d *record.Direction) bool {
	return d.Limiter == verdict.CPU || d.Limiter == verdict.Mixed && slices.Contains(d.Candidates, verdict.CPU)
}

func seconds(d time.Duration) *float64 { s := d.Seconds(); return &s }

func rate(v float64) *float64 {
	if math.IsNaN(v) || math.IsInf(v, 0) {
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

// factsOf returns the facts about the path and the ends that remedies need.
func factsOf(d *record.Direction, r *transfer.Result) advice.Facts {
	f := advice.Facts{GoodputBps: record.OrZero(d.GoodputBps), DurationS: record.OrZero(d.DurationS),
		RTTS: d.RTTMin.Seconds(), MSSBytes: d.MSSBytes}
	if d.Bytes != nil {
		f.Bytes = *d.Bytes
	}
	if r != nil {
		f.Sender = systemOf(r.Sender())
		f.Receiver = systemOf(r.Receiver())
		f.Unscaled = isUnscaled(r)
	}
	f.SendBufferMax = fullMax(d.Windows.SendBuffer)
	f.ReceiveBufferMax = fullMax(d.Windows.ReceiveBuffer)
	if len(d.Streams) > 0 {
		f.Congestion = d.Streams[0].Congestion
		if remote, err := netip.ParseAddrPort(d.Streams[0].Remote); err == nil && d.ProbedMTUBytes > 0 {
			f.PassingMTU = d.ProbedMTUBytes
			f.PassingMSS = f.PassingMTU - model.HeadersTo(remote.Addr())
		}
	}
	return f
}

// isUnscaled reports that no window scale was agreed on for the receiver's window.
func isUnscaled(r *transfer.Result) bool {
	if e := r.Sender(); e != nil && len(e.Streams) > 0 && e.Streams[0].Handshake != nil {
		return e.Streams[0].Handshake.SendScale < 0
	}
	e := r.Receiver()
	return e != nil && len(e.Streams) > 0 && e.Streams[0].Handshake != nil && e.Streams[0].Handshake.ReceiveScale < 0
}

// fullMax returns the maximum of autotuning for a buffer that has grown to 90 % of it or more, 0 for any other.
func fullMax(b *record.Buffer) int {
	if b == nil || 10*b.GrantedBytes < 9*b.AutomaticMaxBytes {
		return 0
	}
	return b.AutomaticMaxBytes
}

// systemOf returns the system of an end that can be seen.
func systemOf(e *transfer.End) advice.System {
	if e == nil {
		return advice.Linux
	}
	return advice.SystemOf(e.Kernel)
}
