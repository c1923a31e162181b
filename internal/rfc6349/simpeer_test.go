package rfc6349

import (
	"context"
	"errors"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/search/simpath"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/tune/simpeer"
)

// far is a simulated far end that carries UDP and both directions too.
type far struct {
	*simpeer.Peer
	hostBps float64 // the sending host's maximum over UDP; 0: no bound
	hostFPS float64 // the receiving host's maximum; 0: no bound
	udpBps  float64 // the line's maximum for UDP; 0: no bound
	burst   float64 // bytes that get through beyond the line's rate
	queue   float64 // size of the line's queue for UDP, bytes
	shared  bool    // the directions share one medium
}

func (f *far) Check(t transfer.Test) error {
	tcp, udp, err := t.Specs()
	if len(udp) == 1 {
		return nil
	}
	for _, spec := range tcp {
		err = errors.Join(err, f.Peer.Check(transfer.TCP(spec)))
	}
	return err
}

func (f *far) Run(ctx context.Context, t transfer.Test, _ func(transfer.Interval)) ([]transfer.Outcome, error) {
	tcp, udp, err := t.Specs()
	switch {
	case err != nil:
		return nil, err
	case len(udp) == 1:
		r, err := f.datagrams(ctx, udp[0])
		return []transfer.Outcome{{Datagrams: r}}, err
	case len(tcp) == 2:
		a, b, err := f.both(ctx, tcp[0], tcp[1])
		return []transfer.Outcome{{TCP: a}, {TCP: b}}, err
	}
	return f.Peer.Run(ctx, t, nil)
}

func (f *far) datagrams(ctx context.Context, s transfer.DatagramSpec) (*transfer.DatagramResult, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	bps := s.Bps
	if f.hostBps > 0 {
		bps = min(bps, f.hostBps)
	}
	line := f.Path.RateBps * float64(s.Size) / float64(s.Size+28)
	if f.hostFPS > 0 {
		line = min(line, f.hostFPS*float64(s.Size)*8)
	}
	if f.udpBps > 0 {
		line = min(line, f.udpBps)
	}
	sent := bps / 8 / float64(s.Size) * s.Time.Seconds()
	carried := line/8/float64(s.Size)*s.Time.Seconds() + f.burst/float64(s.Size)
	late := min(max(sent-carried, 0), f.queue/float64(s.Size)) // leave the queue after the trial
	received := min(sent, carried+late) * (1 - f.Path.Loss)
	r := &transfer.DatagramResult{Spec: s, Sent: int64(sent), Received: int64(received),
		Duration: s.Time + time.Duration((late-1)*float64(s.Size)*8/min(bps, line)*float64(time.Second)), Complete: true,
		Reordered: new(int64)}
	r.Lost, r.Bytes = max(r.Sent-r.Received, 0), r.Received*int64(s.Size)
	return r, nil
}

func (f *far) both(ctx context.Context, up, down transfer.Spec) (*transfer.Result, *transfer.Result, error) {
	if whole := *f.Path; f.shared {
		f.Path.RateBps /= 2
		defer func() { *f.Path = whole }()
	}
	a, err := transfer.Run(ctx, f.Peer, up, nil)
	if err != nil {
		return a, nil, err
	}
	b, err := transfer.Run(ctx, f.Peer, down, nil)
	return a, b, err
}

// line is 100 Mbit/s and 40 ms with a queue of a BDP.
func line() *simpath.Path {
	return &simpath.Path{RateBps: 100e6, RTT: 40 * time.Millisecond, MSS: 1448, Queue: 500e3, Harm: 1, AutoWindow: 1e6,
		Noise: simpath.Noise{Dev: 0.002}}
}

func echo(p *simpath.Path) func(context.Context, netip.AddrPort, time.Duration, time.Duration) (path.RoundTrips,
	path.MTU) {
	return func(context.Context, netip.AddrPort, time.Duration, time.Duration) (path.RoundTrips, path.MTU) {
		return path.RoundTrips{Method: path.DatagramICMP, Times: []time.Duration{p.RTT, p.RTT + p.Jitter}},
			path.MTU{Bytes: p.MSS + 52, Largest: p.MSS + 52}
	}
}
