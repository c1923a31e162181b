package iperf3

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// RunBoth implements transfer.BothWaysPeer with iperf3's --bidir, which servers know
// since 3.7.
func (p *Peer) RunBoth(ctx context.Context, up, down transfer.Spec, each func(transfer.Direction, transfer.Interval)) (*transfer.Result, *transfer.Result, error) {
	for _, spec := range []transfer.Spec{up, down} {
		if err := p.Check(spec); err != nil {
			return nil, nil, err
		}
	}
	if why := together(up, down); why != "" {
		return nil, nil, &transfer.Unsupported{Field: "Far", Why: why}
	}
	ctx, cancel := p.bound(ctx)
	defer cancel()
	c, cookie, err := p.begin(ctx)
	if err != nil {
		return nil, nil, explain(up, err)
	}
	defer c.conn.Close()
	var a, b *transfer.Result
	latency, notes, err := p.beside(ctx, c, up, func() (err error) {
		a, b, err = p.both(ctx, c, cookie, up, down, each)
		return err
	})
	for _, r := range []*transfer.Result{a, b} {
		if r != nil {
			r.Latency, r.Warnings = latency, append(r.Warnings, notes...)
		}
	}
	return a, b, explain(up, err)
}

// together says why two Specs cannot be one test.
func together(up, down transfer.Spec) string {
	switch {
	case up.Streams != down.Streams || up.Time != down.Time || up.Bytes != down.Bytes:
		return "iperf3 carries the same streams for the same time both ways"
	case up.Far.ReceiveBuffer != down.Far.SendBuffer:
		return "iperf3 sets one size for all of its buffers"
	case up.Far.Congestion != "" && up.Far.Congestion != down.Far.Congestion || up.Far.MSS != down.Far.MSS:
		return "iperf3 treats all of its sockets alike"
	}
	return ""
}

func (p *Peer) both(ctx context.Context, c *control, cookie Cookie, up, down transfer.Spec, each func(transfer.Direction, transfer.Interval)) (*transfer.Result, *transfer.Result, error) {
	wire := params(down)
	wire.Reverse, wire.Both = false, true
	near := up.Near
	near.ReceiveBuffer, near.Clamp = down.Near.ReceiveBuffer, down.Near.Clamp
	conns, err := open(ctx, c, cookie, wire, socket.Options{Socket: near, Route: p.Route})
	if err != nil {
		return nil, nil, err
	}
	results := [2]*transfer.Result{{Spec: up, Started: time.Now()}, {Spec: down, Started: time.Now()}}
	var loads [2]*load
	for i, spec := range []transfer.Spec{up, down} {
		loads[i], err = newLoad(conns[i*wire.Streams:(i+1)*wire.Streams], spec)
		if err != nil {
			closeAll(conns[(i+1)*wire.Streams:])
			c.hangUp()
			return nil, nil, err
		}
		defer loads[i].close()
	}
	usage := startUsage()
	err = c.during(ctx, func(ctx context.Context) error {
		var errs [2]error
		var running sync.WaitGroup
		for i, l := range loads {
			running.Go(func() { errs[i] = l.run(ctx, transfer.Only(l.spec.Direction, each)) })
		}
		running.Wait()
		return errors.Join(errs[:]...)
	})
	for i, l := range loads {
		if results[i].Near = l.end; l.end == nil {
			return nil, nil, err
		}
	}
	asAcknowledged(results[0].Near)
	if err != nil {
		c.hangUp()
		return results[0], results[1], err
	}
	far, err := c.finish(ctx, resultsOf(usage, loads[0], loads[1]))
	if err != nil {
		return results[0], results[1], err
	}
	results[0].Complete, results[1].Complete = true, true
	half := min(wire.Streams, len(far.Streams))
	theirs := far
	theirs.Streams = far.Streams[:half]
	tell(results[0], theirs)
	theirs.Streams = far.Streams[half:]
	tell(results[1], theirs)
	return results[0], results[1], kept(down, far)
}
