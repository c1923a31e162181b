// Package simpeer is a far end without a network: a transfer.Peer that carries out
// every Spec on a simulated path at once and returns what both kernels would have reported.
package simpeer

import (
	"cmp"
	"context"
	"math"
	"math/rand/v2"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Peer is the far end. Its fields may be changed between transfers.
type Peer struct {
	Path *simpath.Path
	// NoClamp refuses window clamps, as a stock iperf3 does.
	NoClamp bool
	// NoFar refuses whatever is asked of the far end's sockets, as a sink does.
	NoFar bool
	// Policed makes every way to send get the same: no congestion control and no number
	// of streams carries more.
	Policed bool
	// Bucket makes the path's early rate a policer's bucket: it lasts longer for slower senders, and loses nothing.
	Bucket bool
	// BlindRetransmits is the share of its bytes that bbr retransmits without losing goodput; 0: as the path drops.
	BlindRetransmits float64
	// FlowBps limits the payload rate of each connection; 0: no limit. OthersBps is the rate of other traffic, which gets
	// the share of a fixed number of connections.
	FlowBps, OthersBps float64
	// Losses make the path's losses scatter goodput as recorded transfers do; nil: by the path's own noise.
	Losses *Losses
	// Share is the part of the path's goodput that a transfer gets, where others share
	// it; nil is all of it.
	Share func(transfer.Spec) float64
	// NearStarved and FarStarved are the shares of the time that an end has no core.
	NearStarved, FarStarved float64
	// Fail is asked before each transfer; an error ends it half-way. nil never fails.
	Fail func(transfer.Spec) error
	// Ran lists the transfers.
	Ran   []transfer.Spec
	clock time.Duration
	rng   *rand.Rand
}

// New makes a peer at the end of a path.
func New(path *simpath.Path, seed uint64) *Peer {
	return &Peer{Path: path, rng: rand.New(rand.NewPCG(seed, 1))}
}

// Check implements transfer.Peer: it carries TCP, one way at a time.
func (p *Peer) Check(t transfer.Test) error {
	s, err := t.OneWay("this far end carries TCP only", "this far end carries one direction at a time")
	if err != nil {
		return err
	}
	if p.NoClamp && (s.Near.Clamp > 0 || s.Far.Clamp > 0) {
		return &transfer.Unsupported{Field: "Clamp", Reason: "this far end sets buffers only"}
	}
	if p.NoFar && s.Far != (transfer.Socket{}) {
		field := "Far.ReceiveBuffer"
		if s.Far.SendBuffer > 0 {
			field = "Far.SendBuffer"
		}
		return &transfer.Unsupported{Field: field, Reason: "this far end sets its own sockets"}
	}
	return nil
}

// Close implements transfer.Peer.
func (p *Peer) Close() error { return nil }

// Run implements transfer.Peer. It returns at once; the times are the path's.
func (p *Peer) Run(ctx context.Context, t transfer.Test, _ func(transfer.Interval)) ([]transfer.Outcome, error) {
	if err := p.Check(t); err != nil {
		return nil, err
	}
	r, err := p.transfer(ctx, *t.Legs[0].TCP)
	return []transfer.Outcome{{TCP: r}}, err
}

func (p *Peer) transfer(ctx context.Context, s transfer.Spec) (*transfer.Result, error) {
	p.Ran = append(p.Ran, s)
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	sender := s.Near
	receiver := s.Far
	if s.Direction == transfer.Down {
		sender, receiver = receiver, sender
	}
	window := p.window(sender, receiver)
	length := s.Time
	path := *p.Path
	if sender.Congestion == "bbr" && !p.Policed {
		path.Loss = 0 // it does not take a loss for a full link
		if path.BlindDrops > 0 {
			path.Harm = 1 - path.BlindDrops
			path.Drops = path.BlindDrops
		}
	}
	paced := pace(&path, sender, length)
	relieved := paced > 0 && p.Path.Drops > 0
	goodput, effective := path.Measure(p.rng, window, p.clock, length)
	losing := p.course(s, sender, window, length)
	if sender.Congestion == "bbr" {
		effective = math.Min(effective, 2*path.BDP()) // BBR's cwnd_gain
	}
	n := float64(max(s.Streams, 1))
	if p.FlowBps > 0 {
		goodput = math.Min(goodput, p.FlowBps)
	}
	if p.OthersBps > 0 {
		goodput = math.Min(goodput, p.Path.CapacityBps()-p.OthersBps)
	}
	switch {
	case p.OthersBps > 0:
		goodput *= n * (1 + p.OthersBps/goodput) / (n + p.OthersBps/goodput)
	case s.Streams > 1 && !p.Policed:
		goodput = math.Min(p.Path.CapacityBps(), goodput*n)
	}
	switch {
	case paced > path.CapacityBps():
		goodput = paced
	case paced > 0:
		goodput = math.Min(goodput, paced)
		path.Queue = 0
	}
	if p.Share != nil {
		goodput *= p.Share(s)
	}
	if s.Program.RequestResponse {
		length = time.Duration(s.Bytes/int64(s.Program.WriteBytes)) * p.Path.RTT
		goodput = float64(s.Bytes) * 8 / length.Seconds()
	} else if s.Bytes > 0 {
		length = min(length, time.Duration(float64(s.Bytes)*8/goodput*float64(time.Second)))
	}
	var err error
	if p.Fail != nil {
		err = p.Fail(s)
	}
	if err != nil {
		length /= 2
	}
	if losing != nil {
		goodput = losing.goodput()
	}
	p.clock += length
	t := traffic{path: &path, course: losing, goodput: goodput, window: effective, length: length, streams: s.Streams,
		control: p.Losses.control(), exchange: s.Program.RequestResponse}
	switch {
	case (relieved || path.Overflows(effective)) && path.Drops > 0:
		t.retransmits = drops(&path, effective, relieved)
		if !p.Policed && !relieved {
			t.fullRTT = path.BaseRTT() + time.Duration(path.Queue*8/path.CapacityBps()*float64(time.Second))
		}
	case path.Loss > 0:
		t.retransmits = path.Loss
	default:
		t.losesNow = path.Drops == 0 && !relieved && !path.Lossless(effective)
	}
	if sender.Congestion == "bbr" && p.BlindRetransmits > 0 {
		t.retransmits = p.BlindRetransmits
	}
	p.addEarly(&t, sender.PacingBps)
	from := netip.MustParseAddrPort("192.0.2.1:40000")
	to := netip.MustParseAddrPort("192.0.2.2:5201")
	send := t.end(from, to, true, sender)
	receive := t.end(to, from, false, receiver)
	result := &transfer.Result{Spec: s, Near: send, Far: receive, Complete: err == nil}
	if s.Direction == transfer.Down {
		result.Near = receive
		result.Far = send
	}
	for end, starved := range map[*transfer.End]float64{result.Near: p.NearStarved, result.Far: p.FarStarved} {
		end.CPU = &transfer.CPU{Wall: length, Process: length / 20, BusiestThread: 0.05, RunqueueWait: starved}
	}
	return result, err
}

// addEarly adds the data that arrives early, by the path's rate of that time, the window and, with a bucket, pacing.
func (p *Peer) addEarly(t *traffic, paced float64) {
	early := math.Min(t.path.EarlyBps, t.window*8/t.path.RTT.Seconds())
	full := p.Path.CapacityBps()
	if p.Bucket && paced > full {
		early = math.Min(early, paced)
	}
	if early > t.goodput && !t.exchange && t.course == nil {
		t.early = (early - t.goodput) / 8
	}
	if p.Bucket && early > full {
		t.losesFrom = time.Duration((t.path.EarlyBps - full) / (early - full) * float64(t.path.EarlyFor))
	}
}

// pace changes a path for a sender paced below its capacity, or above a policer's for no longer than the bucket lasts:
// the queue stays empty. It returns the payload rate that is left to that sender; 0: it is not paced so.
func pace(path *simpath.Path, sender transfer.Socket, length time.Duration) float64 {
	paced := sender.PacingBps
	excess := paced - path.CapacityBps()
	early := math.Min(path.EarlyBps, path.AutoWindow*8/path.RTT.Seconds())
	bucket := (early - path.CapacityBps()) * path.EarlyFor.Seconds()
	if paced <= 0 || excess >= 0 && (!path.Policed || excess*length.Seconds() > bucket) {
		return 0
	}
	if path.Drops > 0 {
		path.Harm = 1
		path.Drops = path.PacedDrops
		if path.PacedHarm > 0 && sender.Congestion != "bbr" {
			paced *= path.PacedHarm
		}
	}
	return paced
}

// drops returns the share of the bytes sent that is dropped of a window, or of a sender paced below the capacity.
func drops(path *simpath.Path, window float64, paced bool) float64 {
	if paced {
		return path.Drops
	}
	return path.Drops * path.Overflow(window)
}

// window is what the two sockets' settings come to; 0 is automatic.
func (p *Peer) window(sender, receiver transfer.Socket) float64 {
	window := math.Inf(1)
	for _, bytes := range []int{receiver.ReceiveBuffer, receiver.Clamp, sender.SendBuffer} {
		if bytes > 0 {
			window = math.Min(window, float64(bytes))
		}
	}
	if sender.SendBuffer == 0 || receiver.ReceiveBuffer == 0 {
		window = math.Min(window, p.Path.AutoWindow)
	}
	if sender.SendBuffer == 0 && receiver.ReceiveBuffer == 0 && receiver.Clamp == 0 {
		return 0
	}
	return window
}

// traffic is one transfer as it went.
type traffic struct {
	path            *simpath.Path
	goodput, window float64
	length          time.Duration
	exchange        bool
	early           float64       // bytes a second above the goodput until losesFrom, or while the path's EarlyFor lasts
	losesFrom       time.Duration // when a policer's bucket is empty; 0: none
	retransmits     float64       // share of the bytes sent
	fullRTT         time.Duration // when a queue drops; 0: none does
	streams         int
	control         string  // the system's; "": cubic
	course          *course // nil: the goodput is constant
	losesNow        bool    // one segment is lost in each sample, which is no share
}

// arrived is how many bytes came within a time.
func (t *traffic) arrived(at time.Duration) int64 {
	if t.course != nil {
		return int64(t.course.bytes[t.course.at(at)])
	}
	steady := at.Seconds()
	if t.retransmits > 0 && t.path.Policed { // from 0.8 to 1.2 of the rate between two loss events
		tooth := t.length.Seconds() / samples * toothSamples
		phase := math.Mod(steady/tooth, 1)
		steady -= 0.2 * phase * (1 - phase) * tooth
	}
	return int64(t.goodput/8*steady + t.early*min(at, cmp.Or(t.losesFrom, t.path.EarlyFor)).Seconds())
}

// samples is the number of samples of a transfer, toothSamples that from one loss event behind a policer to the next.
const samples, toothSamples = 120, 10

// end returns what one end's kernel reports of it.
func (t *traffic) end(local, remote netip.AddrPort, sends bool, asked transfer.Socket) *transfer.End {
	scale := 7
	s := transfer.Stream{Local: local, Remote: remote, Congestion: cmp.Or(asked.Congestion, t.control, "cubic"),
		Last:  t.length,
		First: time.Microsecond,
		Handshake: &transfer.Handshake{MSS: t.path.MSS, SendScale: scale, ReceiveScale: scale, SACK: true,
			PathMTU: t.path.MSS + 52, Timestamps: true}}
	s.SendBuffer = transfer.Buffer{Requested: asked.SendBuffer, Granted: 2 * asked.SendBuffer}
	s.ReceiveBuffer = transfer.Buffer{Requested: asked.ReceiveBuffer, Granted: 2 * asked.ReceiveBuffer}
	flight := math.Min(t.window, t.path.BDP()+t.path.Queue)
	if t.retransmits > 0 { // the congestion window is smaller than the path's BDP
		flight = math.Min(flight, t.goodput/8*t.path.BaseRTT().Seconds())
	}
	if sends {
		s.SendBuffer.Effective = int(flight)
	} else {
		s.ReceiveBuffer.Effective = int(t.window)
	}
	rtt := t.path.BaseRTT() + t.path.Jitter/2
	if loaded := time.Duration(flight * 8 / t.goodput * float64(time.Second)); !t.exchange {
		rtt = max(rtt, loaded)
	}
	for i := range samples + 1 {
		at := time.Duration(float64(t.length) * float64(i) / samples)
		bytes := t.arrived(at)
		sample := transfer.Sample{At: at, Have: transfer.HaveRTT | transfer.HaveMinRTT, RTT: rtt, RTTVar: t.path.Jitter / 4,
			MinRTT: t.path.RTT}
		if sends {
			sample.Have |= transfer.HaveSendWnd | transfer.HaveInFlight | transfer.HaveRetrans | transfer.HaveAcked |
				transfer.HaveRate
			sample.Have |= transfer.HaveCwnd | transfer.HaveLimits | transfer.HaveNotSent
			sample.Cwnd = int64(flight)
			sample.Ssthresh = int64(flight)
			sample.NotSent = int64(t.path.MSS) * 64
			sample.Busy = at
			if flight >= t.window*0.97 { // the receiver's window is what is full
				sample.Cwnd = 2 * int64(flight)
				sample.RwndLimited = at
			}
			sample.SendWnd = int64(t.window)
			sample.InFlight = int64(flight)
			sample.Acked = bytes
			sample.DeliveryBps = t.goodput
			if t.losesNow || t.retransmits > 0 {
				sample.Retransmitted = int64(i)
				if lost := t.retransmits; lost > 0 {
					until := bytes
					if t.path.Policed {
						until = t.arrived(t.length * time.Duration(i/toothSamples*toothSamples) / samples)
					}
					until = max(until-t.arrived(t.losesFrom), 0)
					sample.Retransmitted = int64(math.Ceil(lost / (1 - lost) * float64(until) / float64(t.path.MSS)))
				}
				if i%4 == 0 { // between losses the window or the link is full
					sample.RTT = max(sample.RTT, t.fullRTT)
					between := math.Min(t.path.CapacityBps(), t.window*8/t.path.BaseRTT().Seconds())
					sample.DeliveryBps = math.Max(t.goodput, between)
				}
			}
		} else {
			sample.Have |= transfer.HaveReceived | transfer.HaveReceiveWnd
			sample.Received = bytes
			sample.ReceiveWnd = int64(t.window)
		}
		if t.course != nil {
			t.course.sample(&sample, at, sends, float64(t.path.MSS))
		}
		s.Samples = append(s.Samples, sample)
		s.Bytes = bytes
	}
	return &transfer.End{Kernel: "Linux 6.1.0", Streams: split(s, t.streams)}
}
