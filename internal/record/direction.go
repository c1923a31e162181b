package record

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Direction is one direction of a measured transfer, as in the JSON contract.
type Direction struct {
	Direction            transfer.Direction `json:"direction"`
	GoodputBps           *float64           `json:"goodput_bps,omitempty"`
	SteadyGoodputBps     *float64           `json:"steady_goodput_bps,omitempty"`
	Startup              *Startup           `json:"startup,omitempty"`
	DurationS            *float64           `json:"duration_s,omitempty"`
	Bytes                *int64             `json:"bytes,omitempty"`
	RetransmittedSegment *int64             `json:"retransmitted_segments,omitempty"`
	RTTMinS              *float64           `json:"rtt_min_s,omitempty"`
	RTTMeanS             *float64           `json:"rtt_mean_s,omitempty"`
	// the connection's own, median once it had started up
	RTTLoadedS  *float64 `json:"rtt_loaded_s,omitempty"`
	Latency     *Latency `json:"latency_under_load,omitempty"`
	MSSBytes    *int     `json:"mss_bytes,omitempty"`
	WindowScale *int     `json:"window_scale,omitempty"`
	verdict.Verdict
	Fix         []Fix      `json:"fix,omitempty"` // what to do about it, in order, or what would tell
	Windows     Windows    `json:"windows"`
	Streams     []Stream   `json:"streams"`
	Intervals   []Interval `json:"intervals,omitempty"`
	CPU         *CPU       `json:"cpu,omitempty"`
	Interrupted bool       `json:"interrupted,omitempty"`
	Warnings    []string   `json:"warnings,omitempty"`

	Curves DirectionCurves `json:"-"`
}

// Startup is the transfer's beginning, before its rate settled.
type Startup struct {
	DurationS float64 `json:"duration_s"`
	Bytes     int64   `json:"bytes"`
}

// Windows are the sender's send buffer and the receiver's receive buffer of the first
// stream; an end that cannot be seen is absent.
type Windows struct {
	SendBuffer    *Buffer `json:"send_buffer,omitempty"`
	ReceiveBuffer *Buffer `json:"receive_buffer,omitempty"`
}

// Buffer keeps three values apart.
type Buffer struct {
	RequestedBytes *int `json:"requested_bytes,omitempty"`
	GrantedBytes   *int `json:"granted_bytes,omitempty"`
	EffectiveBytes *int `json:"effective_bytes,omitempty"`
	Automatic      bool `json:"automatic"`
	Clipped        bool `json:"clipped,omitempty"`
}

// Stream is one connection's part.
type Stream struct {
	Local         string  `json:"local"`
	Remote        string  `json:"remote"`
	Bytes         int64   `json:"bytes"`
	GoodputBps    float64 `json:"goodput_bps"`
	Congestion    string  `json:"congestion,omitempty"`
	Retransmitted *int64  `json:"retransmitted_segments,omitempty"`
}

// Interval is what arrived in one span.
type Interval struct {
	StartS     float64 `json:"start_s"`
	EndS       float64 `json:"end_s"`
	Bytes      int64   `json:"bytes"`
	GoodputBps float64 `json:"goodput_bps"`
	// As the sender's kernel told at the interval's end, or last before it.
	RTTS          *float64 `json:"rtt_s,omitempty"`
	Retransmitted *int64   `json:"retransmitted_segments,omitempty"`
}

// CPU is what each end's program took, as shares of wall time: all of its threads
// together (1 is one core), its busiest data thread, how long a data thread was ready
// without a core, and how busy the whole machine was.
type CPU struct {
	NearProcess *float64 `json:"near_process_ratio,omitempty"`
	NearRatio   *float64 `json:"near_busiest_thread_ratio,omitempty"`
	NearStarved *float64 `json:"near_starved_ratio,omitempty"`
	NearHost    *float64 `json:"near_host_ratio,omitempty"`
	FarProcess  *float64 `json:"far_process_ratio,omitempty"`
	FarRatio    *float64 `json:"far_busiest_thread_ratio,omitempty"`
	FarStarved  *float64 `json:"far_starved_ratio,omitempty"`
	FarHost     *float64 `json:"far_host_ratio,omitempty"`
}

// NewDirection describes one transfer and its verdict.
func NewDirection(r *transfer.Result, v verdict.Verdict, intervals []transfer.Interval) Direction {
	d := Direction{Direction: r.Spec.Direction, Verdict: v, Interrupted: !r.Complete, Warnings: r.Warnings,
		Streams: []Stream{}}
	if received, ok := r.Received(); ok {
		d.Bytes = &received.Bytes
		d.DurationS = seconds(received.Duration())
		d.GoodputBps = rate(received.Bps())
	}
	if startup, ok := r.Startup(); ok {
		d.Startup = &Startup{DurationS: startup.End.Seconds(), Bytes: startup.Bytes}
		d.SteadyGoodputBps = rate(startup.SteadyBps)
	}
	if e := r.Sender(); e != nil {
		d.senderSide(e)
		d.RTTLoadedS = LoadedRTT(e, d.Startup)
		d.Curves = newDirectionCurves(e)
	}
	if e := r.Receiver(); e != nil && len(e.Streams) > 0 {
		d.Windows.ReceiveBuffer = newBuffer(e.Streams[0].ReceiveBuffer)
		if h := e.Streams[0].Handshake; h != nil && h.ReceiveScale >= 0 {
			d.WindowScale = &h.ReceiveScale
		}
	}
	d.streams(r)
	d.Fix = NewFixes(v, d.fixFacts())
	d.Intervals = NewIntervals(intervals)
	d.CPU = newCPU(r)
	d.Latency = NewLatency(r.Latency, &d)
	return d
}

// NewIntervals are the intervals of a transfer as a document has them.
func NewIntervals(intervals []transfer.Interval) (all []Interval) {
	var resent int64
	for _, i := range intervals {
		one := Interval{StartS: i.Start.Seconds(), EndS: i.End.Seconds(), Bytes: i.Bytes, GoodputBps: Bps(i.Bytes,
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

func (d *Direction) senderSide(e *transfer.End) {
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

func (d *Direction) streams(r *transfer.Result) {
	end := r.Receiver()
	if end == nil {
		end = r.Sender()
	}
	if end == nil {
		return
	}
	for i, s := range end.Streams {
		out := Stream{Local: s.Local.String(), Remote: s.Remote.String(), Bytes: s.Bytes, GoodputBps: Bps(s.Bytes,
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

func newBuffer(b transfer.Buffer) *Buffer {
	return &Buffer{known(b.Requested), known(b.Granted), known(b.Effective), b.Automatic(), b.Clipped}
}

func newCPU(r *transfer.Result) *CPU {
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
	var cpu CPU
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
func (d *Direction) starved() bool {
	return d.Limiter == verdict.CPU || d.Limiter == verdict.Mixed && slices.Contains(d.Candidates, verdict.CPU)
}

// LoadedRTT is the sender's smoothed round trip after the startup that was exceeded half
// of the time; nil where none was told. Samples are not evenly spaced, so time counts.
func LoadedRTT(e *transfer.End, startup *Startup) *float64 {
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
