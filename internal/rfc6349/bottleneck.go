package rfc6349

import (
	"context"
	"errors"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

const (
	// udpShare is the share of the budget that each direction's search over UDP may take.
	udpShare = 0.15
	// fullTrials in a row, within fullClose of each other, give the rate of a full link.
	fullTrials = 3
	fullClose  = 0.01
	minTrials  = fullTrials + 2 // independent of the budget
	// fullLoss is the share that a link has to lose to count as full, strayLoss and
	// littleVariation are the limits of an idle one (RFC 9097 section 8).
	fullLoss        = 0.12
	strayLoss       = 1e-3
	littleVariation = 30 * time.Millisecond
	// burstShare is the smallest difference between a trial and one of twice the length that shows an
	// initial burst above the link's rate.
	burstShare = 0.005
	// insteadOfUDP is the number of connections that replace UDP, so that no window limits them all.
	insteadOfUDP = 8
)

// bottleneck measures the bandwidth of one direction with stateless traffic (section
// 3.2.2), or with several connections where there is none.
func (t *tester) bottleneck(ctx context.Context, d *Direction) error {
	defer t.reference(d)
	if !t.carriesUDP() {
		return t.bottleneckByTCP(ctx, d, Statement{Code: NoUDP})
	}
	err := t.searchBottleneck(ctx, d)
	switch {
	case err == nil || ctx.Err() != nil:
		return err
	case d.Bottleneck.Bps > 0:
		t.warn(Statement{Code: UDPEndedEarly, Direction: d.Direction, Cause: err.Error()})
		return nil
	}
	return t.bottleneckByTCP(ctx, d, Statement{Code: UDPFailed, Cause: err.Error()})
}

// carriesUDP reports whether the far end supports UDP tests.
func (t *tester) carriesUDP() bool {
	some := transfer.UDP(transfer.DatagramSpec{Direction: transfer.Up, Time: time.Second})
	return t.cfg.Peer.Check(some) == nil
}

func (t *tester) searchBottleneck(ctx context.Context, d *Direction) error {
	b := &d.Bottleneck
	b.Method.Code = ByUDP
	spec := transfer.DatagramSpec{Direction: d.Direction, Size: t.datagram(), Time: time.Second, DontFragment: true}
	until := time.Duration(math.MaxInt64)
	if t.cfg.Budget > 0 {
		until = t.elapsed() + time.Duration(udpShare*float64(t.cfg.Budget))
		spec.Time = min(spec.Time, max(t.cfg.Budget/60, 250*time.Millisecond))
	}
	climb := climb{next: math.Max(1.5*max(t.rough[d.Direction], t.committedIP(d)), 64e3)}
	for !climb.done() && (len(b.Trials) < minTrials || t.elapsed() <= until) {
		t.report(d, Statement{Code: OfferingUDP, Values: verdict.Values{"bps": climb.next}})
		trial, err := t.datagrams(ctx, spec, climb.next)
		if err != nil {
			return err
		}
		b.Trials = append(b.Trials, trial)
		climb.observe(trial)
		b.Bps = max(b.Bps, trial.ReceivedBps)
		b.AtLeast = true
		b.Range = [2]float64{b.Bps, b.Bps}
	}
	full := climb.full
	if !climb.settled() {
		if climb.behind < 2 {
			b.Method.Code = ByUDPUnsettled
		}
		return nil
	}
	b.Bps = middle(full)
	b.AtLeast = false
	b.Range = [2]float64{slices.Min(full), slices.Max(full)}
	return t.withoutBurst(ctx, d, spec)
}

// withoutBurst subtracts the bytes that a full link carried above its rate: a policer's bucket, or a queue that drained
// after the last datagram. A trial of twice the time has the same extra bytes.
// Its second half thus shows the link's rate alone.
func (t *tester) withoutBurst(ctx context.Context, d *Direction, spec transfer.DatagramSpec) error {
	b := &d.Bottleneck
	offered := b.Trials[len(b.Trials)-1].OfferedBps
	short := spec.Time
	spec.Time *= 2
	t.report(d, Statement{Code: OfferingUDPLonger, Values: verdict.Values{"bps": offered}})
	long, err := t.datagrams(ctx, spec, offered)
	if err != nil {
		return err
	}
	b.Trials = append(b.Trials, long)
	if long.LossRatio < 0.005 || long.ReceivedBps > b.Bps*(1-burstShare) {
		return nil
	}
	rate := 2*long.ReceivedBps - b.Bps
	b.BurstBytes = int64((b.Bps - rate) / 8 * short.Seconds())
	b.Range = [2]float64{b.Range[0] + rate - b.Bps, b.Range[1] + rate - b.Bps}
	b.Bps = rate
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
func (t *tester) datagrams(ctx context.Context, spec transfer.DatagramSpec, bps float64) (Datagrams, error) {
	packet := float64(spec.Size + t.udpHeaders())
	spec.Bps = bps * float64(spec.Size) / packet
	start := time.Now()
	r, err := transfer.RunDatagrams(ctx, t.cfg.Peer, spec, nil)
	var unsupported *transfer.Unsupported
	if errors.As(err, &unsupported) && spec.DontFragment {
		spec.DontFragment = false
		r, err = transfer.RunDatagrams(ctx, t.cfg.Peer, spec, nil)
	}
	if err != nil {
		return Datagrams{}, err
	}
	t.simulated += max(spec.Time-time.Since(start), 0)
	t.out.Bytes += r.Bytes
	framed := packet / float64(spec.Size)
	trial := Datagrams{OfferedBps: bps, SentBps: float64(r.Sent) * packet * 8 / spec.Time.Seconds(),
		ReceivedBps: r.Bps() * framed, LossRatio: r.LossRatio()}
	if r.Reordered != nil && r.Bytes > int64(spec.Size) {
		// From the first datagram to the last is the time of one less than came.
		trial.ReceivedBps *= 1 - float64(spec.Size)/float64(r.Bytes)
	}
	if r.Variation != nil {
		trial.Variation = units.Duration(r.Variation.P95)
	}
	t.best = max(t.best, trial.ReceivedBps)
	return trial, nil
}

// climb raises the rate until the link is full beyond doubt: it then carries clearly less
// than is offered, which stray loss does not bring about, and the same each time.
type climb struct {
	next   float64   // bit/s to offer
	full   []float64 // received at next while the link was full, in a row
	behind int       // trials in a row in which the sender sent too little
	trials int
}

const climbTrials = 16

func (c *climb) observe(t Datagrams) {
	c.trials++
	isFull := t.ReceivedBps <= t.SentBps*(1-fullLoss)
	if !isFull && t.SentBps < 0.9*t.OfferedBps {
		c.behind++
		return
	}
	c.behind = 0
	switch {
	case !isFull && t.LossRatio < strayLoss && time.Duration(t.Variation) < littleVariation:
		c.next = 4 * t.OfferedBps
		c.full = nil
	case !isFull:
		c.next = 2 * t.OfferedBps
		c.full = nil
	case t.SentBps > 2*t.ReceivedBps && len(c.full) == 0: // far too much: nearer to what got through
		c.next = 1.5 * t.ReceivedBps
	default:
		c.full = append(c.full, t.ReceivedBps)
		if len(c.full) > fullTrials {
			c.full = c.full[1:]
		}
	}
}

// settled reports whether the better two of the last full trials agree: a short pause of a
// host only lowers the rate.
func (c *climb) settled() bool {
	return len(c.full) == fullTrials && slices.Max(c.full) <= middle(c.full)*(1+fullClose)
}

func (c *climb) done() bool { return c.settled() || c.behind == 2 || c.trials >= climbTrials }

func middle(values []float64) float64 { return slices.Sorted(slices.Values(values))[len(values)/2] }

// bottleneckByTCP measures the sum of several connections with automatic windows.
func (t *tester) bottleneckByTCP(ctx context.Context, d *Direction, why Statement) error {
	b := &d.Bottleneck
	b.Method = Statement{Code: ByTCP, Because: &why}
	for _, connections := range []int{insteadOfUDP, 1} {
		spec := transfer.Spec{Direction: d.Direction, Streams: connections, Time: max(2*time.Second, 20*t.rtt())}
		if t.cfg.Budget > 0 {
			spec.Time = min(spec.Time, t.cfg.Budget/20)
		}
		if t.cfg.Peer.Check(transfer.TCP(spec)) != nil {
			continue
		}
		t.report(d, Statement{Code: FillingByTCP, Values: verdict.Values{"connections": float64(connections)}})
		r, _, err := t.transfer(ctx, spec)
		if err != nil {
			return err
		}
		received, _ := r.Received()
		b.Bps = t.ipOf(received.Bps())
		if startup, ok := r.Startup(); ok {
			b.Bps = t.ipOf(startup.SteadyBps)
		}
		b.Range = [2]float64{b.Bps, b.Bps}
		b.AtLeast = true
		return nil
	}
	return nil
}

// reference computes the values that follow from the bottleneck and the committed rate.
func (t *tester) reference(d *Direction) {
	p := &t.out.Path
	d.ReferenceBps = d.Bottleneck.Bps
	d.ReferenceOverhead = 0
	if d.CommittedBps > 0 {
		d.ReferenceBps = d.CommittedBps
		d.ReferenceOverhead = t.cfg.Overhead
	}
	d.MaxTCPBps = model.Goodput(d.ReferenceBps, p.MSS, p.Headers+d.ReferenceOverhead)
	width := d.Bottleneck.Bps
	if d.Bottleneck.AtLeast {
		width = max(width, t.committedIP(d))
	}
	d.BDPBytes = model.BDP(width, t.rtt())
}

// maxWithReverseAcks computes each direction's maximum rate while the other one runs too.
func (t *tester) maxWithReverseAcks() {
	if len(t.out.Directions) < 2 {
		return
	}
	p := &t.out.Path
	for i := range t.out.Directions {
		d := &t.out.Directions[i]
		other := &t.out.Directions[1-i]
		d.MaxBidirectionalBps = model.GoodputBesideAcks(d.ReferenceBps, other.MaxTCPBps, p.MSS, p.Headers+d.ReferenceOverhead)
	}
}
