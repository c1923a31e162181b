package tune

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Path is what the loop learned of the path in one direction. 0 is not known.
type Path struct {
	RTT       time.Duration // least, idle
	LoadedRTT time.Duration // mean of the fastest transfer
	Jitter    time.Duration // how far the 95th percentile lies above the least
	Method    string        // of the idle round trip: "ICMP"
	MSS       int
	MTU       int
	// PassingMSS is the largest whose packets probes got through where larger ones vanish.
	PassingMSS int
	Scale      int // of the receiver's windows; -1: not negotiated
	// CapacityBps is the largest steady payload rate without the initial burst, BottleneckBps the same at the IP layer.
	CapacityBps, BottleneckBps float64
	// AtLeast says that windows still limited at that rate: the path may carry more.
	AtLeast bool
	// LowerBound says that no transfer filled the path at that rate, which losses or windows kept
	// it from: it may carry more.
	LowerBound bool
	BDPBytes   float64
	Window     int // the model's: rate × (RTT + jitter), an even number of segments
	// Middlebox names what the two ends understood differently of the handshake.
	Middlebox []string
}

// pathModel is the path as the transfers showed it, with the length that further ones need.
type pathModel struct {
	Path
	round      time.Duration // the least round trip of a full segment
	knee       float64       // the window that just fills the path, in bytes
	lossRounds int           // the round trips that a transfer has to last because the path loses; 0: it does not
	burst      time.Duration // for how long the path lets more through at first
	notes      *notes
}

// questions is how many exchanges ask for the idle round trip.
const questions = 12

// probePath measures the idle path by a few small requests, each answered before the next.
func (r *runner) probePath(ctx context.Context) error {
	const request = 64
	spec := transfer.Spec{Bytes: questions * request, Time: 10 * time.Second,
		Program: transfer.Program{WriteBytes: request, RequestResponse: true}}
	spec.Near.NoDelay = true
	spec.Far.NoDelay = true
	spec.Direction = r.direction
	r.report(Setup{}, IdlePath)
	if r.cfg.Peer.Check(transfer.TCP(spec)) != nil {
		// The transfers' own round trips have to do. A server without exchanges does not report its kernel's counters either.
		r.probes = r.direction == transfer.Down
		return nil
	}
	start := time.Now()
	result, err := transfer.Run(ctx, r.cfg.Peer, spec, nil)
	r.budget.spent.Time += time.Since(start)
	if err != nil || result == nil {
		return err
	}
	r.meet(result)
	r.path.RTT = result.MinRTT()
	r.path.Jitter = result.Jitter(r.path.RTT, questions)
	r.path.handshake(result)
	r.echo(ctx)
	return context.Cause(ctx)
}

// echo measures round trips to the far host's kernel, by ICMP.
func (r *runner) echo(ctx context.Context) {
	p := r.path
	if r.cfg.Echo == nil || !r.remote.IsValid() {
		return
	}
	start := time.Now()
	spend := 1500 * time.Millisecond
	if r.budget.Time > 0 {
		spend = min(spend, r.budget.Time/20)
	}
	trips, mtu := r.cfg.Echo(ctx, r.remote, p.RTT, spend)
	r.budget.spent.Time += time.Since(start)
	if least := trips.Least(); least > 0 {
		p.Jitter = trips.Jitter()
		p.RTT = min(p.RTT, least)
		p.Method = trips.Method
	}
	if mtu.Bytes > 0 {
		p.MTU = mtu.Bytes
		if mtu.Bytes < mtu.Largest {
			p.PassingMSS = mtu.Bytes - model.HeadersTo(r.remote.Addr())
			r.notes.add(Statement{Code: NarrowerMTU,
				Values: verdict.Values{"mtu": float64(mtu.Bytes), "first": float64(mtu.Largest)}})
		}
	}
}

// handshake compares what the two ends understood of the connection.
func (p *pathModel) handshake(r *transfer.Result) {
	p.Scale = -1
	s := firstHandshake(r.Sender())
	d := firstHandshake(r.Receiver())
	if s != nil {
		p.MSS = s.MSS
		p.Scale = s.SendScale
		p.MTU = cmp.Or(p.MTU, s.PathMTU)
	}
	if d != nil && s == nil {
		p.MSS = d.MSS
		p.Scale = d.ReceiveScale
		p.MTU = cmp.Or(p.MTU, d.PathMTU)
	}
	if s == nil || d == nil || len(p.Middlebox) > 0 {
		return
	}
	p.Middlebox = path.Disagreements(s, d)
	if len(p.Middlebox) > 0 {
		p.notes.add(Statement{Code: HandshakeRewritten, Names: p.Middlebox})
	}
}

// firstHandshake returns the handshake of an end's first stream, or nil.
func firstHandshake(e *transfer.End) *transfer.Handshake {
	if e == nil || len(e.Streams) == 0 {
		return nil
	}
	return e.Streams[0].Handshake
}

// learn updates the path from a bulk transfer.
func (p *pathModel) learn(t *Trial) {
	if least := t.result.MinRTT(); least > 0 && (p.RTT == 0 || least < p.RTT) {
		p.RTT = least
	}
	if p.RTT == 0 {
		p.RTT = time.Millisecond
		p.notes.add(Statement{Code: NoRTT})
	}
	p.handshake(t.result)
	if p.MSS == 0 {
		p.MSS = 1448
	}
	p.heed(t)
	capacity := t.Goodput
	if !t.Lossless {
		capacity = math.Max(capacity, burst(t.result))
	}
	if capacity > p.CapacityBps {
		p.CapacityBps = capacity
		p.LoadedRTT = t.result.MeanRTT()
	}
	p.size(t.result)
}

// size computes what follows from the capacity.
func (p *pathModel) size(r *transfer.Result) {
	headers := model.IPHeaders
	if h := firstHandshake(r.Sender()); h != nil && h.Timestamps {
		headers += model.TimestampBytes
	}
	p.BottleneckBps = model.LinkRate(p.CapacityBps, p.MSS, headers)
	segment := time.Duration(float64(p.MSS+headers) * 8 / p.BottleneckBps * float64(time.Second))
	line := model.Service{RTT: p.RTT - segment, Segment: segment} // the least round trip was a segment's
	p.round, _ = line.Round(4*p.MSS, p.MSS)
	p.BDPBytes = p.CapacityBps / 8 * p.RTT.Seconds()
	p.knee = p.CapacityBps / 8 * (p.round + p.Jitter).Seconds()
	p.Window = model.Window(p.knee, p.MSS)
}

// burst returns what a lossy transfer carried while nothing was lost: the upper tenth of the kernel's delivery rates
// after the initial burst. Of the segments that a rate counts the first arrived when its time began (tcp_rate.c).
func burst(r *transfer.Result) float64 {
	end := r.Sender()
	startup := time.Duration(0)
	if s, ok := r.Startup(); ok {
		startup = s.End
	}
	if end == nil || len(end.Streams) == 0 {
		return 0
	}
	mss := 1448.0
	if h := end.Streams[0].Handshake; h != nil && h.MSS > 0 {
		mss = float64(h.MSS)
	}
	var rates []float64
	for _, s := range end.Streams[0].Samples {
		if s.Have&transfer.HaveRate == 0 || s.AppLimited || s.At <= end.Streams[0].First+startup {
			continue
		}
		counted := s.DeliveryBps / 8 * s.RTT.Seconds() / mss
		if counted > 2 {
			rates = append(rates, s.DeliveryBps*(1-1/counted))
		}
	}
	if len(rates) < 5 {
		return 0
	}
	slices.Sort(rates)
	return rates[len(rates)*9/10]
}

// limitedByWindow reports that a transfer's window or buffer limited it, or that it filled its window and built no
// queue: a larger one might carry more. Of a lossy transfer counts what it carried while nothing was lost.
func (p *pathModel) limitedByWindow(t *Trial) bool {
	if t.Effective == 0 {
		return false
	}
	if t.Limiter == verdict.ReceiverWindow || t.Limiter == verdict.SendBuffer {
		return true
	}
	rate := t.Goodput
	if !t.Lossless {
		rate = max(rate, burst(t.result))
	}
	turn := time.Duration(float64(t.Effective) * 8 / rate * float64(time.Second))
	return turn < p.round*6/5+p.Jitter
}

// paceable returns the payload rate that pacing has to stay below: the path's, or the best one so far behind a policer
// if that is less. One connection keeps less of it in the long run, because its losses slow it down.
func (o *observations) paceable(limits *verdict.Verdict) float64 {
	if steady := policedBps(limits); steady > 0 {
		return min(o.path.CapacityBps, max(o.best, steady))
	}
	return o.path.CapacityBps
}

// policedBps is the payload that a policer was seen to let through in the long run; 0 where none was.
func policedBps(v *verdict.Verdict) float64 {
	for _, e := range v.Evidence {
		if steady := e.Values["steady_bps"]; e.Code == verdict.PolicedRate && v.Subtype == verdict.Policer && steady > 0 {
			return steady
		}
	}
	return 0
}

// probeShare is the share of a long transfer that BBR leaves the path all but empty for, to see its least round trip:
// each 10 s, for the longer of 200 ms and a round trip (tcp_bbr.c, bbr_min_rtt_win_sec, bbr_probe_rtt_mode_ms).
func (p *pathModel) probeShare() float64 {
	const every, least = 10 * time.Second, 200 * time.Millisecond
	return max(least, p.round).Seconds() / every.Seconds()
}
