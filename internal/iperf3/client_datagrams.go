package iperf3

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	// helloEvery is how often a UDP stream's first datagram is repeated until it is
	// answered, helloTries how often at most.
	helloEvery = 500 * time.Millisecond
	helloTries = 10
	// settle is how long the last datagrams may be on their way before the test is ended.
	settle = 250 * time.Millisecond
)

// RunDatagrams implements transfer.DatagramPeer.
func (p *Peer) RunDatagrams(ctx context.Context, spec transfer.DatagramSpec, each func(transfer.Interval)) (*transfer.DatagramResult, error) {
	if err := checkDatagrams(spec); err != nil {
		return nil, err
	}
	if spec.Search && (p.Ticket == Cookie{} || spec.Streams > 1) {
		return nil, &transfer.Unsupported{Field: "Search", Why: "it takes a fullpipe there, a key and one stream"}
	}
	ctx, cancel := p.bound(ctx)
	defer cancel()
	c, _, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	wire := datagramParams(spec)
	if err := c.ask(ctx, wire); err != nil {
		return nil, err
	}
	all, err := p.greetAll(ctx, c, spec, wire.Streams)
	if err != nil {
		return nil, err
	}
	f := newFlows(spec, all)
	defer f.close()
	if err := c.awaitStart(ctx, wire); err != nil {
		return nil, err
	}
	return c.datagrams(ctx, f, spec, each)
}

func checkDatagrams(spec transfer.DatagramSpec) error {
	switch {
	case spec.Streams > MaxStreams:
		return &transfer.Unsupported{Field: "Streams", Why: "iperf3 carries at most 128"}
	case spec.Size > MaxUDPLen || spec.Size != 0 && spec.Size < headerSize(true):
		return &transfer.Unsupported{Field: "Size", Why: fmt.Sprintf("a datagram has %d to %d bytes", headerSize(true), MaxUDPLen)}
	case spec.Time <= 0 || spec.Time > MaxTime*time.Second:
		return &transfer.Unsupported{Field: "Time", Why: "iperf3 runs for at most a day"}
	}
	return nil
}

func datagramParams(spec transfer.DatagramSpec) Params {
	n := max(spec.Streams, 1)
	return Params{UDP: true, Time: int(math.Ceil(spec.Time.Seconds())), Streams: n, Reverse: spec.Direction == transfer.Down,
		Window: spec.Buffer, Len: datagramSize(spec.Size), Bandwidth: int64(spec.Bps / float64(n)), PacingTimer: 1000, TOS: spec.TOS,
		Counters64: true, Search: spec.Search, DontFragment: spec.DontFragment, ClientVersion: "fullpipe"}
}

// newFlows takes over one direction's streams.
func newFlows(spec transfer.DatagramSpec, all []*flow) *flows {
	f := &flows{sending: spec.Direction == transfer.Up, wide: true, size: datagramSize(spec.Size), bps: spec.Bps / float64(len(all)),
		time: spec.Time, all: all}
	if spec.Search {
		f.search = &searching{}
	}
	return f
}

// greetAll opens the streams; where one of them fails, none is left.
func (p *Peer) greetAll(ctx context.Context, c *control, spec transfer.DatagramSpec, n int) (all []*flow, err error) {
	for range n {
		one, err := greetServer(ctx, c.conn.RemoteAddr().String(), socket.FlowOptions{Route: p.Route, Buffer: spec.Buffer, TOS: spec.TOS, DontFragment: spec.DontFragment})
		if err != nil {
			c.hangUp()
			(&flows{all: all}).close()
			return nil, err
		}
		all = append(all, one)
	}
	return all, nil
}

// carry moves one direction's datagrams for its time: a receiver ends by its own clock,
// and what was sent last gets the time to arrive.
func (f *flows) carry(ctx context.Context, each func(transfer.Interval)) error {
	if !f.sending {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, f.time, errOver)
		defer cancel()
	}
	err := f.run(ctx, each)
	if f.sending && err == nil {
		pause(ctx, settle)
	}
	if errors.Is(err, errOver) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// greetServer opens one UDP stream and waits for the server's answer.
func greetServer(ctx context.Context, address string, o socket.FlowOptions) (*flow, error) {
	s, err := socket.DialFlow(ctx, address, o)
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, 1<<16)
	for range helloTries {
		if err := s.Send(udpHello[:], len(udpHello)); err != nil {
			break
		}
		s.SetDeadline(time.Now().Add(helloEvery))
		n, _, from, err := s.Receive(buffer)
		if err == nil && from == s.Remote() && IsAnswer(buffer[:n]) {
			s.SetDeadline(time.Time{})
			return &flow{socket: s}, nil
		}
		if ctx.Err() != nil {
			break
		}
	}
	s.Close()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, &unanswered{address}
}

// unanswered is a UDP port from which nothing came back.
type unanswered struct{ address string }

func (e *unanswered) Error() string {
	return "no answer over UDP from " + e.address + ", though TCP gets there"
}

// Try names the way out.
func (e *unanswered) Try() string { return "open UDP port as well as TCP on the way to " + e.address }

// datagrams carries out the test's data and puts both ends' counts together.
func (c *control) datagrams(ctx context.Context, f *flows, spec transfer.DatagramSpec, each func(transfer.Interval)) (*transfer.DatagramResult, error) {
	usage, started := startUsage(), time.Now()
	err := c.during(ctx, func(ctx context.Context) error { return f.carry(ctx, each) })
	mine := resultsOf(usage, f)
	r := f.result(started, false)
	r.Spec = spec
	r.CPU = usage.spent(mine)
	if err != nil {
		c.hangUp()
		return r, err
	}
	far, err := c.finish(ctx, mine)
	if err != nil {
		return r, err
	}
	r.Complete = true
	r.FarCPU = toldCPU(far, r.CPU.Wall)
	if f.sending {
		receivedThere(r, far)
	}
	return r, nil
}

// receivedThere fills in what a far end counted of what this end sent. Datagrams that
// were lost after the last one that it saw are known only here.
func receivedThere(r *transfer.DatagramResult, far Results) {
	var seconds float64
	var reordered, duplicates int64
	told := len(far.Streams) > 0
	for _, s := range far.Streams {
		if s.More != nil {
			reordered += s.More.Reordered
			duplicates += s.More.Duplicates
			r.Variation = s.More.Variation
		}
		told = told && s.More != nil
		r.Received += max(s.Packets-s.Errors, 0)
		r.Bytes += s.Bytes
		r.Jitter += time.Duration(s.Jitter * float64(time.Second) / float64(len(far.Streams)))
		seconds = max(seconds, s.End-s.Start)
	}
	r.Lost = max(r.Sent-r.Received, 0)
	if told {
		r.Reordered, r.Duplicates = &reordered, &duplicates
		r.Received += duplicates
	}
	r.Duration = time.Duration(seconds * float64(time.Second))
	if !told { // iperf3's time includes what the test waited for at its end
		r.Duration = min(r.Duration, max(r.Spec.Time, time.Millisecond))
	}
}
