package rfc6349

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	// udpShare is the share of the budget that each direction's search over UDP may take.
	udpShare = 0.12
	// full trials in a row, close to each other, say what a full link carries.
	fullTrials = 3
	fullClose  = 0.01
	// beside is how many connections stand in for UDP, so that no window limits them all.
	beside = 8
)

// bottleneck measures the bandwidth of one direction with stateless traffic (section
// 3.2.2), or with several connections where there is none.
func (t *tester) bottleneck(ctx context.Context, d *Direction) error {
	defer t.reference(d)
	carrier, ok := t.cfg.Peer.(transfer.DatagramPeer)
	if !ok {
		return t.bottleneckByTCP(ctx, d, "this far end carries no UDP")
	}
	err := t.searchBottleneck(ctx, d, carrier)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case d.Bottleneck.Bps > 0:
		t.warn("%s: the search over UDP ended early: %v", d.Direction, err)
		return nil
	}
	return t.bottleneckByTCP(ctx, d, "UDP cannot be had: "+err.Error())
}

func (t *tester) searchBottleneck(ctx context.Context, d *Direction, carrier transfer.DatagramPeer) error {
	b := &d.Bottleneck
	b.Method = "UDP"
	spec := transfer.DatagramSpec{Direction: d.Direction, Size: t.datagram(), Time: time.Second, DontFragment: true}
	until := time.Duration(math.MaxInt64)
	if t.cfg.Budget > 0 {
		until = t.elapsed() + time.Duration(udpShare*float64(t.cfg.Budget))
		spec.Time = min(spec.Time, max(t.cfg.Budget/60, 250*time.Millisecond))
	}
	start := max(t.rough[d.Direction], t.committedIP(d))
	capacity := search.Capacity{Start: math.Max(1.25*start, 64e3)}
	for {
		bps, done := capacity.Next()
		if done || saturated(b.Trials) || len(b.Trials) > 1 && t.elapsed() > until {
			break
		}
		t.say(d.Direction, "bottleneck: UDP at %.4g Mbit/s", bps/1e6)
		trial, err := t.datagrams(ctx, carrier, spec, bps)
		if err != nil {
			return err
		}
		b.Trials = append(b.Trials, trial)
		if trial.stock {
			b.Method = "UDP; an iperf3's count, with what the queue held at its end"
		}
		capacity.Observe(search.CapacityTrial{Offered: trial.Offered, Sent: trial.Sent, Received: trial.Received, LossRatio: trial.Loss,
			Variation: trial.Variation})
		b.Bps, b.AtLeast = capacity.Best()
		b.Range = [2]float64{b.Bps, b.Bps}
	}
	if full := lastFull(b.Trials); saturated(b.Trials) {
		b.Bps, b.AtLeast = middle(full), false
		b.Range = [2]float64{slices.Min(full), slices.Max(full)}
	}
	return nil
}

// datagram is the payload that fills the path's packets.
func (t *tester) datagram() int {
	mtu := t.out.Path.MTU
	if mtu == 0 || mtu > 1500 {
		mtu = 1500
	}
	return mtu - t.udpHeaders()
}

func (t *tester) udpHeaders() int {
	if t.out.Path.IPv6 {
		return 48
	}
	return 28
}

// datagrams carries out one UDP trial at a rate counted at the IP layer.
func (t *tester) datagrams(ctx context.Context, carrier transfer.DatagramPeer, spec transfer.DatagramSpec, bps float64) (Datagrams, error) {
	packet := float64(spec.Size + t.udpHeaders())
	spec.Bps = bps * float64(spec.Size) / packet
	start := time.Now()
	r, err := carrier.RunDatagrams(ctx, spec, nil)
	var unsupported *transfer.Unsupported
	if errors.As(err, &unsupported) && spec.DontFragment {
		spec.DontFragment = false
		r, err = carrier.RunDatagrams(ctx, spec, nil)
	}
	if err != nil {
		return Datagrams{}, err
	}
	t.simulated += max(spec.Time-time.Since(start), 0)
	t.out.Bytes += r.Bytes
	framed := packet / float64(spec.Size)
	trial := Datagrams{Offered: bps, Sent: float64(r.Sent) * packet * 8 / spec.Time.Seconds(), Received: r.Bps() * framed, Loss: r.LossRatio()}
	trial.stock = r.Reordered == nil
	if r.Variation != nil {
		trial.Variation = r.Variation.P95
	}
	t.best = max(t.best, trial.Received)
	return trial, nil
}

// lastFull are the rates received in the last trials, as far back as they lost datagrams.
func lastFull(trials []Datagrams) (received []float64) {
	for _, trial := range slices.Backward(trials) {
		if trial.Loss < 0.005 || len(received) == fullTrials {
			break
		}
		received = append(received, trial.Received)
	}
	return received
}

// saturated says that several trials in a row filled the link and found it equally wide.
func saturated(trials []Datagrams) bool {
	full := lastFull(trials)
	return len(full) == fullTrials && slices.Max(full) <= slices.Min(full)*(1+fullClose)
}

func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// bottleneckByTCP takes what several connections carry together with automatic windows.
func (t *tester) bottleneckByTCP(ctx context.Context, d *Direction, why string) error {
	b := &d.Bottleneck
	b.Method = "TCP, several connections: " + why
	for _, connections := range []int{beside, 1} {
		spec := transfer.Spec{Direction: d.Direction, Streams: connections, Time: max(2*time.Second, 20*t.out.Path.RTT)}
		if t.cfg.Budget > 0 {
			spec.Time = min(spec.Time, t.cfg.Budget/20)
		}
		if t.cfg.Peer.Check(spec) != nil {
			continue
		}
		t.say(d.Direction, "bottleneck: %d connections", connections)
		r, _, err := t.transfer(ctx, spec)
		if err != nil {
			return err
		}
		received, _ := r.Received()
		b.Bps = t.ipOf(received.Bps())
		if startup, ok := r.Startup(); ok {
			b.Bps = t.ipOf(startup.SteadyBps)
		}
		b.Range, b.AtLeast = [2]float64{b.Bps, b.Bps}, true
		return nil
	}
	return nil
}

// reference settles what follows from the bottleneck and the committed rate.
func (t *tester) reference(d *Direction) {
	p := &t.out.Path
	d.ReferenceBps, d.ReferenceOverhead = d.Bottleneck.Bps, 0
	if d.Committed > 0 {
		d.ReferenceBps, d.ReferenceOverhead = d.Committed, t.cfg.Overhead
	}
	d.MaxTCPBps = model.Goodput(d.ReferenceBps, p.MSS, p.Headers+d.ReferenceOverhead)
	width := d.Bottleneck.Bps
	if d.Bottleneck.AtLeast {
		width = max(width, t.committedIP(d))
	}
	d.BDPBytes = model.BDP(width, p.RTT)
}

// besideAcks settles what each direction carries while the other one runs too.
func (t *tester) besideAcks() {
	if len(t.out.Directions) < 2 {
		return
	}
	p := &t.out.Path
	for i := range t.out.Directions {
		d, other := &t.out.Directions[i], &t.out.Directions[1-i]
		d.MaxBesideAcksBps = model.GoodputBesideAcks(d.ReferenceBps, other.MaxTCPBps, p.MSS, p.Headers+d.ReferenceOverhead)
	}
}
