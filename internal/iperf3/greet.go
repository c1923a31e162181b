package iperf3

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// greeting is a UDP stream's first datagram.
type greeting struct {
	from   netip.AddrPort
	answer [4]byte
}

// ServeDatagrams takes UDP streams' first datagrams from conn, which socket.ListenFlows
// opened on the server's port, until conn is closed. Only a host whose test waits for
// streams is answered, with as many bytes as it sent.
func (s *Server) ServeDatagrams(conn *net.UDPConn) error {
	buffer := make([]byte, 64)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return err
		}
		s.greeted(netip.AddrPortFrom(from.Addr().Unmap(), from.Port()), buffer[:n])
	}
}

// greeted hands a greeting to the test that waits for one from that host.
func (s *Server) greeted(from netip.AddrPort, datagram []byte) {
	answer, ok := AnswerHello(datagram)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tests {
		if t.greeted != nil && t.from.Addr() == from.Addr() {
			select {
			case t.greeted <- greeting{from, answer}:
			default:
			}
			return
		}
	}
}

// greet waits for n UDP streams and answers each from a socket of its own on the
// server's port.
func (t *test) greet(ctx context.Context, n int) (halves []half, err error) {
	greeted := make(chan greeting, n)
	t.awaitGreetings(greeted)
	defer t.awaitGreetings(nil)
	var all []*flow
	defer func() {
		if err != nil {
			for _, f := range all {
				f.socket.Close()
			}
		}
	}()
	if err = t.send(ctx, CreateStreams); err != nil {
		return nil, err
	}
	patience := time.NewTimer(t.server.patience())
	defer patience.Stop()
	for len(all) < n {
		select {
		case g := <-greeted:
			f, err := t.answer(ctx, g)
			if err != nil {
				return nil, t.refuse(codeOf(err), errnoOf(err), err)
			}
			all = append(all, f)
			patience.Reset(t.server.patience())
		case <-patience.C:
			return nil, fmt.Errorf("%v opened %d of its %d UDP streams", t.from, len(all), n)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for i := 0; i < n; i += t.params.Streams {
		halves = append(halves, t.flows(all[i:i+t.params.Streams], t.params.Reverse || i > 0))
	}
	return halves, nil
}

func (t *test) awaitGreetings(to chan greeting) {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.greeted = to
}

// answer connects a socket to a stream and greets back. What other hosts sent to the
// port before it was connected is passed on.
func (t *test) answer(ctx context.Context, g greeting) (*flow, error) {
	local := t.conn.LocalAddr().(*net.TCPAddr).AddrPort()
	flow := &flow{}
	var err error
	flow.socket, err = socket.DialFlow(ctx, g.from.String(), socket.FlowOptions{
		Local: netip.AddrPortFrom(local.Addr().Unmap(), local.Port()), Buffer: t.params.Window, TOS: t.params.TOS,
		DontFragment: t.params.DontFragment,
	})
	if err != nil {
		return nil, err
	}
	flow.stray = t.server.greeted
	if err := flow.socket.Send(g.answer[:], len(g.answer)); err != nil {
		flow.socket.Close()
		return nil, err
	}
	return flow, nil
}

// flows is one direction of a UDP test.
func (t *test) flows(all []*flow, sending bool) *flows {
	p := t.params
	f := &flows{sending: sending, wide: p.Counters64, size: datagramSize(p.Len), bps: float64(p.Bandwidth), bytes: p.total(),
		omit: t.omit(), all: all}
	if p.Search {
		f.search = &searching{}
	}
	return f
}

// defaultDatagram fits into 1500 bytes of IPv6.
const defaultDatagram = 1448

func datagramSize(asked int) int {
	if asked == 0 {
		return defaultDatagram
	}
	return asked
}

// result is what this end knows of the flows.
func (f *flows) result(started time.Time, complete bool) *transfer.DatagramResult {
	r := &transfer.DatagramResult{Started: started, Complete: complete,
		Spec: transfer.DatagramSpec{Direction: transfer.Down, Bps: f.bps * float64(len(f.all)), Size: f.size, Streams: len(f.all)}}
	if f.sending {
		r.Spec.Direction = transfer.Up
	}
	var reordered, duplicates int64
	first := time.Duration(-1)
	if len(f.all) > 0 {
		r.Headers = f.all[0].headers()
	}
	for _, one := range f.all {
		if f.sending {
			r.Sent += int64(one.sent)
			continue
		}
		a := &one.arrivals
		r.Sent += int64(a.Highest)
		r.Received += a.Datagrams
		r.Lost += a.Lost
		r.Bytes += a.Bytes
		r.Jitter += a.Jitter / time.Duration(len(f.all))
		reordered += a.Reordered
		duplicates += a.Duplicates
		r.Duration = max(r.Duration, one.last)
		if a.Datagrams > 0 && (first < 0 || one.first < first) {
			first = one.first
		}
	}
	if !f.sending {
		r.Reordered, r.Duplicates, r.Variation = &reordered, &duplicates, f.variation()
		r.Duration -= max(first, 0)
	}
	if f.search != nil {
		r.Seconds, r.Congested = f.search.account.seconds, f.search.account.congested
	}
	return r
}
