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

// openTCP requests a TCP test and opens its streams: one direction, or two with --bidir. near is set before
// connect(). port is the local port of the first stream, or 0.
func (p *Peer) openTCP(ctx context.Context, c *control, cookie Cookie, wire Params, near transfer.Socket,
	specs []transfer.Spec, port uint16) (directions []direction, streams []Endpoints, err error) {
	conns, err := open(ctx, c, cookie, wire, socket.Options{Socket: near, Route: p.Route, LocalPort: port})
	if err != nil {
		return nil, nil, err
	}
	for _, conn := range conns {
		streams = append(streams, Endpoints{socket.AddrPort(conn.LocalAddr()), socket.AddrPort(conn.RemoteAddr())})
	}
	n := wire.Streams
	for i, spec := range specs {
		l, err := newTCPStreams(conns[i*n:(i+1)*n], spec)
		if err != nil {
			closeDirections(directions)
			closeAll(conns[(i+1)*n:])
			c.hangUp()
			return nil, nil, err
		}
		l.cut.Omit = time.Duration(wire.Omit) * time.Second
		l.burst = wire.Burst
		directions = append(directions, l)
	}
	return directions, streams, nil
}

// openUDP requests a UDP test and opens its flows. port is the local port of the first one, or 0.
func (p *Peer) openUDP(ctx context.Context, c *control, wire Params, specs []transfer.DatagramSpec,
	port uint16) (directions []direction, streams []Endpoints, err error) {
	if err := c.requestStreams(ctx, wire); err != nil {
		return nil, nil, err
	}
	n := wire.Streams
	all, err := p.openFlows(ctx, c, wire, specs[0], n*len(specs), port)
	if err != nil {
		return nil, nil, err
	}
	for i, spec := range specs {
		f := newUDPFlows(spec, all[i*n:(i+1)*n])
		f.Bytes = wire.requestedBytes()
		f.Omit = time.Duration(wire.Omit) * time.Second
		f.Burst = wire.Burst
		directions = append(directions, f)
	}
	for _, one := range all {
		streams = append(streams, Endpoints{one.Socket.Local(), one.Socket.Remote()})
	}
	if err := c.awaitStart(ctx, wire); err != nil {
		closeDirections(directions)
		return nil, nil, err
	}
	return directions, streams, nil
}

// setInterval sets the time between two reported intervals.
func setInterval(directions []direction, onInterval time.Duration) {
	for _, dir := range directions {
		switch dir := dir.(type) {
		case *tcpStreams:
			dir.cut.Every = onInterval
		case *udpFlows:
			dir.Every = onInterval
		}
	}
}

// clientData is the client's record of the data transfer.
type clientData struct {
	outcomes []transfer.Outcome // empty if a stream ended before it began
	// near and far are the results of both ends. far has no streams if the test was aborted.
	near, far    Results
	user, system time.Duration // CPU time of this process
}

// runData moves the data of a test with n streams in each direction and adds the counts of both ends. On error it
// also returns the data moved so far.
func (c *control) runData(ctx context.Context, directions []direction, n int,
	onInterval func(transfer.Interval)) (done clientData, err error) {
	usage := startUsage()
	started := time.Now()
	user, system := socket.ProcessTimes()
	err = c.runMonitored(ctx, func(ctx context.Context) error { return runDirections(ctx, directions, onInterval) })
	userNow, systemNow := socket.ProcessTimes()
	done.user = userNow - user
	done.system = systemNow - system
	if !allStarted(directions) {
		c.hangUp()
		return done, cmp.Or(err, errors.New("the streams ended before data moved"))
	}
	done.near = resultsOf(usage, directions...)
	for _, dir := range directions {
		o := dir.outcome(started)
		if o.Datagrams != nil {
			o.Datagrams.CPU = usage.cpu(done.near, n*len(directions))
		}
		done.outcomes = append(done.outcomes, o)
	}
	if err != nil {
		c.hangUp()
		return done, err
	}
	done.far, err = c.finishTest(ctx, done.near, time.Since(started))
	if err != nil {
		return done, err
	}
	return done, done.addFarResults(n, time.Since(started))
}

// addFarResults adds the far end's counts to the outcomes, with n streams each. The test lasted at most wall.
func (done *clientData) addFarResults(n int, wall time.Duration) error {
	for i, o := range done.outcomes {
		theirs := done.far
		available := len(theirs.Streams)
		theirs.Streams = theirs.Streams[min(i*n, available):min((i+1)*n, available)]
		if o.TCP != nil {
			o.TCP.Complete = true
			addTCPFarResults(o.TCP, theirs)
			continue
		}
		r := o.Datagrams
		err := error(nil)
		if r.Spec.Direction == transfer.Up {
			err = theirs.validateCounts(r.Sent, datagramSize(r.Spec.Size))
		} else {
			err = validateArrivals(r, wall)
		}
		if err != nil {
			return err
		}
		r.Complete = true
		if theirs.CPUTotal > 0 {
			r.FarCPU = cpuOf(theirs, r.CPU.Wall, n*len(done.outcomes))
			if len(theirs.Streams) > 0 && theirs.Streams[0].Extended != nil {
				r.FarCPU.Host = theirs.Streams[0].Extended.Host
			}
		}
		if r.Spec.Direction == transfer.Up {
			addReceiverCounts(r, theirs)
		}
	}
	return nil
}

// allStarted reports whether all TCP streams have run.
func allStarted(directions []direction) bool {
	for _, dir := range directions {
		if l, ok := dir.(*tcpStreams); ok && l.measured == nil {
			return false
		}
	}
	return true
}

// directionOf returns the direction from this end's view.
func directionOf(dir direction) transfer.Direction {
	if dir.sends() {
		return transfer.Up
	}
	return transfer.Down
}

// runDirections moves the data of all directions at once.
func runDirections(ctx context.Context, directions []direction, onInterval func(transfer.Interval)) error {
	errs := make([]error, len(directions))
	var running sync.WaitGroup
	for i, dir := range directions {
		report := transfer.WithDirection(directionOf(dir), onInterval)
		running.Go(func() {
			if f, ok := dir.(*udpFlows); ok {
				errs[i] = f.runTimed(ctx, report)
			} else {
				errs[i] = dir.run(ctx, report)
			}
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
