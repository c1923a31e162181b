package iperf3

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// openLoads asks for a TCP test and opens its streams: one half, or with --bidir two.
// near is what the sockets are given before connect(), port the first one's, or 0.
func (p *Peer) openLoads(ctx context.Context, c *control, cookie Cookie, wire Params, near transfer.Socket,
	specs []transfer.Spec, port uint16) (halves []half, streams []Endpoints, err error) {
	conns, err := open(ctx, c, cookie, wire, socket.Options{Socket: near, Route: p.Route, LocalPort: port})
	if err != nil {
		return nil, nil, err
	}
	for _, conn := range conns {
		streams = append(streams, Endpoints{socket.AddrPort(conn.LocalAddr()), socket.AddrPort(conn.RemoteAddr())})
	}
	n := wire.Streams
	for i, spec := range specs {
		l, err := newLoad(conns[i*n:(i+1)*n], spec)
		if err != nil {
			closeHalves(halves)
			closeAll(conns[(i+1)*n:])
			c.hangUp()
			return nil, nil, err
		}
		l.cut.Omit = time.Duration(wire.Omit) * time.Second
		l.burst = wire.Burst
		halves = append(halves, l)
	}
	return halves, streams, nil
}

// openFlows asks for a UDP test and opens its flows; port is the first one's, or 0.
func (p *Peer) openFlows(ctx context.Context, c *control, wire Params, specs []transfer.DatagramSpec,
	port uint16) (halves []half, streams []Endpoints, err error) {
	if err := c.ask(ctx, wire); err != nil {
		return nil, nil, err
	}
	n := wire.Streams
	all, err := p.greetAll(ctx, c, wire, specs[0], n*len(specs), port)
	if err != nil {
		return nil, nil, err
	}
	for i, spec := range specs {
		f := newFlows(spec, all[i*n:(i+1)*n])
		f.Bytes = wire.total()
		f.Omit = time.Duration(wire.Omit) * time.Second
		f.Burst = wire.Burst
		halves = append(halves, f)
	}
	for _, one := range all {
		streams = append(streams, Endpoints{one.Socket.Local(), one.Socket.Remote()})
	}
	if err := c.awaitStart(ctx, wire); err != nil {
		closeHalves(halves)
		return nil, nil, err
	}
	return halves, streams, nil
}

// every has halves told what moved at multiples of a time, besides.
func every(halves []half, each time.Duration) {
	for _, h := range halves {
		switch h := h.(type) {
		case *load:
			h.cut.Every = each
		case *flows:
			h.Every = each
		}
	}
}

// carried is what is known of a test's data once it was moved.
type carried struct {
	outcomes []transfer.Outcome // none where a stream ended before it began
	// mine and far are the two ends' results; far has no streams where the test was cut
	// short.
	mine, far    Results
	user, system time.Duration // of this process
}

// carry moves a test's data, n streams in each half, and puts both ends' counts together.
// What was moved comes with an error too.
func (c *control) carry(ctx context.Context, halves []half, n int,
	each func(transfer.Interval)) (done carried, err error) {
	usage := startUsage()
	started := time.Now()
	user, system := socket.ProcessTimes()
	err = c.during(ctx, func(ctx context.Context) error { return runHalves(ctx, halves, each) })
	userNow, systemNow := socket.ProcessTimes()
	done.user = userNow - user
	done.system = systemNow - system
	if !begun(halves) {
		c.hangUp()
		return done, cmp.Or(err, errors.New("the streams ended before they began"))
	}
	done.mine = resultsOf(usage, halves...)
	for _, h := range halves {
		o := h.outcome(started)
		if o.Datagrams != nil {
			o.Datagrams.CPU = usage.spent(done.mine)
		}
		done.outcomes = append(done.outcomes, o)
	}
	if err != nil {
		c.hangUp()
		return done, err
	}
	if done.far, err = c.finish(ctx, done.mine, time.Since(started)); err != nil {
		return done, err
	}
	return done, done.tell(n, time.Since(started))
}

// tell adds what the far end counted to the outcomes, each of which has its n of the
// streams. The test lasted at most wall.
func (done *carried) tell(n int, wall time.Duration) error {
	for i, o := range done.outcomes {
		theirs := done.far
		most := len(theirs.Streams)
		theirs.Streams = theirs.Streams[min(i*n, most):min((i+1)*n, most)]
		if o.TCP != nil {
			o.TCP.Complete = true
			tell(o.TCP, theirs)
			continue
		}
		r := o.Datagrams
		err := error(nil)
		if r.Spec.Direction == transfer.Up {
			err = theirs.believeCounts(r.Sent, datagramSize(r.Spec.Size))
		} else {
			err = believeArrivals(r, wall)
		}
		if err != nil {
			return err
		}
		r.Complete = true
		r.FarCPU = toldCPU(theirs, r.CPU.Wall)
		if r.Spec.Direction == transfer.Up {
			receivedThere(r, theirs)
		}
	}
	return nil
}

// begun says that all TCP streams were run and have something to tell.
func begun(halves []half) bool {
	for _, h := range halves {
		if l, ok := h.(*load); ok && l.saw == nil {
			return false
		}
	}
	return true
}

// direction is a half's as this end sees it.
func direction(h half) transfer.Direction {
	if h.sends() {
		return transfer.Up
	}
	return transfer.Down
}

// runHalves moves a test's directions, both at once where there are two.
func runHalves(ctx context.Context, halves []half, each func(transfer.Interval)) error {
	errs := make([]error, len(halves))
	var running sync.WaitGroup
	for i, h := range halves {
		tell := transfer.Toward(direction(h), each)
		running.Go(func() {
			if f, ok := h.(*flows); ok {
				errs[i] = f.carry(ctx, tell)
			} else {
				errs[i] = h.run(ctx, tell)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
