package tune

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Path is what the loop learned of the path in one direction. 0 is not known.
type Path struct {
	RTT       time.Duration // least, idle
	LoadedRTT time.Duration // mean of the fastest transfer
	Jitter    time.Duration // how far the 95th percentile lies above the least
	Method    string        // how the idle round trip was asked for: "ICMP"
	MSS       int
	MTU       int
	Scale     int // of the receiver's windows; -1: not negotiated
	// CapacityBps is the most payload that was carried in steady state, the initial
	// burst left out; BottleneckBps the same at the IP layer.
	CapacityBps, BottleneckBps float64
	// AtLeast says that windows were still what limited at that rate: the path may
	// carry more.
	AtLeast  bool
	BDPBytes float64
	Window   int // the model's: rate × (RTT + jitter), an even number of segments
	// Middlebox names what the two ends understood differently of the handshake.
	Middlebox []string
}

// questions is how many exchanges ask for the idle round trip.
const questions = 12

// ask measures the idle path: a few small requests, each answered before the next.
func (l *loop) ask(ctx context.Context) error {
	const request = 64
	spec := transfer.Spec{Bytes: questions * request, Time: 10 * time.Second,
		Program: transfer.Program{WriteBytes: request, RequestResponse: true}}
	spec.Near.NoDelay = true
	spec.Far.NoDelay = true
	spec.Direction = l.out.Direction
	l.say("asking for the round trip")
	if l.cfg.Peer.Check(transfer.TCP(spec)) != nil {
		return nil // the transfers' own round trips have to do
	}
	start := time.Now()
	result, err := transfer.Run(ctx, l.cfg.Peer, spec, nil)
	l.elapsed += time.Since(start)
	if err != nil || result == nil {
		return err
	}
	l.near = result.Near
	l.far = result.Far
	l.out.Path.RTT = result.LeastRTT()
	l.out.Path.Jitter = result.Jitter(l.out.Path.RTT, questions)
	l.handshake(result)
	l.echo(ctx)
	return context.Cause(ctx)
}

// echo asks the far host itself, whose answers need no program: their jitter is that of
// single round trips.
func (l *loop) echo(ctx context.Context) {
	p := &l.out.Path
	if l.cfg.Echo == nil || l.near == nil || len(l.near.Streams) == 0 {
		return
	}
	start := time.Now()
	spend := 1500 * time.Millisecond
	if l.budget.Time > 0 {
		spend = min(spend, l.budget.Time/20)
	}
	trips, mtu := l.cfg.Echo(ctx, l.near.Streams[0].Remote, p.RTT, spend)
	l.elapsed += time.Since(start)
	if least := trips.Least(); least > 0 {
		p.Jitter = trips.Jitter()
		p.RTT = min(p.RTT, least)
		p.Method = trips.Method
	}
	if mtu.Bytes > 0 {
		p.MTU = mtu.Bytes
		if mtu.Bytes < mtu.Largest {
			l.warn("the path carries packets of %d bytes, less than its first link's %d", mtu.Bytes, mtu.Largest)
		}
	}
}

// handshake compares what the two ends understood of the connection.
func (l *loop) handshake(r *transfer.Result) {
	p := &l.out.Path
	p.Scale = -1
	s := shake(r.Sender())
	d := shake(r.Receiver())
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
		l.warn("the two ends disagree on %s: something on the way rewrites the handshake", strings.Join(p.Middlebox, " and "))
	}
}

func shake(e *transfer.End) *transfer.Handshake {
	if e == nil || len(e.Streams) == 0 {
		return nil
	}
	return e.Streams[0].Handshake
}

// learn takes what a bulk transfer tells about the path.
func (l *loop) learn(t *Trial) {
	p := &l.out.Path
	if least := t.result.LeastRTT(); least > 0 && (p.RTT == 0 || least < p.RTT) {
		p.RTT = least
	}
	if p.RTT == 0 {
		p.RTT = time.Millisecond
		l.warn("no end could tell the round trip")
	}
	l.handshake(t.result)
	if p.MSS == 0 {
		p.MSS = 1448
	}
	l.heed(t)
	capacity := t.Goodput
	if !t.Lossless {
		capacity = math.Max(capacity, burst(t.result))
	}
	if capacity > p.CapacityBps {
		p.CapacityBps = capacity
		p.LoadedRTT = t.result.MeanRTT()
	}
	l.size(t.result)
}

// size computes what follows from the capacity.
func (l *loop) size(r *transfer.Result) {
	p := &l.out.Path
	headers := model.IPHeaders
	if h := shake(r.Sender()); h != nil && h.Timestamps {
		headers += model.TimestampBytes
	}
	p.BottleneckBps = model.LinkRate(p.CapacityBps, p.MSS, headers)
	segment := time.Duration(float64(p.MSS+headers) * 8 / p.BottleneckBps * float64(time.Second))
	line := model.Service{RTT: p.RTT - segment, Segment: segment} // the least round trip was a segment's
	l.round, _ = line.Round(4*p.MSS, p.MSS)
	p.BDPBytes = p.CapacityBps / 8 * p.RTT.Seconds()
	l.knee = p.CapacityBps / 8 * (l.round + p.Jitter).Seconds()
	p.Window = model.Window(l.knee, p.MSS)
}

// burst is what a lossy transfer carried while nothing was lost: the upper tenth of the
// kernel's own delivery rates, which span a round trip each and count what a hole holds
// back; the initial burst is left out. Of the n segments that a rate counts the first
// arrived when its time began (net/ipv4/tcp_rate.c), which matters where few fit into a
// round trip.
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

// spans are the rates of consecutive spans of a stream, from a time since the first
// byte on.
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

// scatter is the standard deviation that a transfer's goodput is expected to have, from
// how much its own spans differ.
func scatter(r *transfer.Result, rtt time.Duration) float64 {
	const least = 0.004
	end := r.Counting()
	startup, ok := r.Startup()
	if end == nil || len(end.Streams) == 0 || !ok {
		return 0.02
	}
	// Eight batches, long enough that what a hole held back arrives in its own.
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
	// What came early in a burst is missing in the next batch: that evens out in the sum,
	// so neighbours that move against each other count less.
	var neighbours float64
	for i := 1; i < len(logs); i++ {
		neighbours += (logs[i] - mean) * (logs[i-1] - mean) / float64(len(logs)-1)
	}
	variance := math.Max(dev*dev+2*neighbours, dev*dev/8)
	return math.Min(math.Max(math.Sqrt(variance/float64(len(logs))), least), 0.3)
}

func (l *loop) warn(format string, args ...any) {
	l.out.Warnings = append(l.out.Warnings, fmt.Sprintf(format, args...))
}
