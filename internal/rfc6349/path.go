package rfc6349

import (
	"cmp"
	"context"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// remote is the far host as the first transfer met it.
type remote struct {
	address netip.AddrPort
	rtt     time.Duration // least that a kernel saw
}

// ipv6Headers are the IPv6 and TCP headers of a segment without options.
const ipv6Headers = model.IPHeaders + 20

// meet makes a first short transfer that shows the two ends, the segment size and a rough
// rate.
func (t *tester) meet(ctx context.Context, d *Direction) error {
	t.report(d, Statement{Code: FirstTransfer})
	length := time.Second
	if t.cfg.Budget > 0 {
		length = min(length, t.cfg.Budget/20)
	}
	r, _, err := t.transfer(ctx, transfer.Spec{Direction: d.Direction, Time: length})
	if err != nil {
		return err
	}
	p := &t.out.Path
	for _, end := range []*transfer.End{r.Near, r.Far} {
		if end == nil || len(end.Streams) == 0 {
			continue
		}
		s := end.Streams[0]
		if end == r.Near {
			t.remote.address = s.Remote
			p.IPv6 = s.Remote.Addr().Unmap().Is6()
		}
		if h := s.Handshake; h != nil {
			p.MSS = cmp.Or(p.MSS, h.MSS)
			p.Timestamps = p.Timestamps || h.Timestamps
			if h.PathMTU > 0 {
				p.MTU = h.PathMTU
				p.MTUMethod.Code = MTUOfKernel
			}
		}
		if rtt := end.MinRTT(); rtt > 0 && (t.remote.rtt == 0 || rtt < t.remote.rtt) {
			t.remote.rtt = rtt
		}
	}
	p.MSS = cmp.Or(p.MSS, 1448)
	p.Headers = model.IPHeaders
	if p.IPv6 {
		p.Headers = ipv6Headers
	}
	if p.Timestamps {
		p.Headers += model.TimestampBytes
	}
	received, _ := r.Received()
	t.rough[d.Direction] = t.ipOf(received.Bps())
	if startup, ok := r.Startup(); ok {
		t.rough[d.Direction] = t.ipOf(startup.SteadyBps)
	}
	return nil
}

// idle asks the quiet path for its round trip and its MTU (sections 3.1 and 3.2.1).
func (t *tester) idle(ctx context.Context) error {
	t.report(nil, Statement{Code: ProbingPath})
	p := &t.out.Path
	p.RTT = units.Duration(t.remote.rtt)
	p.RTTMethod.Code = ByKernel
	if t.cfg.Echo != nil && t.remote.address.IsValid() {
		spend := 2 * time.Second
		if t.cfg.Budget > 0 {
			spend = min(spend, t.cfg.Budget/20)
		}
		trips, mtu := t.cfg.Echo(ctx, t.remote.address, t.remote.rtt, spend)
		t.learn(trips, mtu)
	}
	if p.RTT == 0 {
		p.RTT = units.Duration(time.Millisecond)
		p.RTTMethod.Code = Assumed
		t.warn(Statement{Code: NoRTT})
	}
	if disagree := path.Disagreements(firstHandshake(t.out.Near), firstHandshake(t.out.Far)); len(disagree) > 0 {
		t.warn(Statement{Code: HandshakeRewritten, Names: disagree})
	}
	return context.Cause(ctx)
}

func (t *tester) learn(trips path.RoundTrips, mtu path.MTU) {
	p := &t.out.Path
	if least := units.Duration(trips.Least()); least > 0 {
		p.RTTMethod = Statement{Code: ByEcho, Cause: trips.Method}
		p.RTTCount = len(trips.Times)
		if p.RTTCount > 1 {
			jitter := units.Duration(trips.Jitter())
			p.Jitter = &jitter
		}
		if p.RTT == 0 || least < p.RTT {
			p.RTT = least
		} else {
			p.RTTMethod.Code = EchoAbove
		}
	}
	if mtu.Bytes > 0 {
		if packet := p.MSS + p.Headers; packet > mtu.Bytes {
			t.warn(Statement{Code: SegmentsVanish, Values: verdict.Values{"packet_bytes": float64(packet),
				"mtu_bytes": float64(mtu.Bytes)}})
		}
		p.MTU = mtu.Bytes
		p.FirstMTU = mtu.Largest
		p.MTUMethod.Code = MTUProbed
		if mtu.Bytes < mtu.Largest {
			t.warn(Statement{Code: NarrowerMTU, Values: verdict.Values{"mtu_bytes": float64(mtu.Bytes),
				"first_bytes": float64(mtu.Largest)}})
		}
	}
}

// firstHandshake returns the handshake of an end's first stream, or nil.
func firstHandshake(e *transfer.End) *transfer.Handshake {
	if e == nil || len(e.Streams) == 0 {
		return nil
	}
	return e.Streams[0].Handshake
}
