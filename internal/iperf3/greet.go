package iperf3

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/datagram"
	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// greeting is a UDP stream's first datagram.
type greeting struct {
	from   netip.AddrPort
	answer [4]byte
}

// ServeDatagrams takes UDP streams' first datagrams from conn, which socket.ListenFlows
// opened on the server's port, until conn is closed. Only a host whose test waits for
// streams is answered, with fewer bytes than it sent or as many.
func (s *Server) ServeDatagrams(conn *net.UDPConn) error {
	buffer := make([]byte, 64)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return err
		}
		s.greeted(socket.Unmap(from), buffer[:n])
	}
}

// greeted hands a greeting to the test that waits for one from that host.
func (s *Server) greeted(from netip.AddrPort, datagram []byte) {
	magic := min(len(datagram), len(udpHello))
	answer, ok := AnswerHello(datagram[:magic])
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tests {
		if t.greeted != nil && t.from.Addr() == from.Addr() && bytes.Equal(t.mark(), datagram[magic:]) {
			select {
			case t.greeted <- greeting{from, answer}:
			default:
			}
			return
		}
	}
}

// mark is what the test's greetings end with; nothing unless the client said so.
func (t *test) mark() []byte {
	if !t.params.Marked {
		return nil
	}
	return mark(t.cookie)
}

// greet waits for n UDP streams and answers each from a socket of its own on the
// server's port.
func (t *test) greet(ctx context.Context, n int) (halves []half, err error) {
	greeted := make(chan greeting, n)
	t.awaitGreetings(greeted)
	defer t.awaitGreetings(nil)
	var all []*datagram.Flow
	defer func() {
		if err != nil {
			for _, f := range all {
				f.Socket.Close()
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
			if slices.ContainsFunc(all, func(f *datagram.Flow) bool { return f.Socket.Remote() == g.from }) {
				continue // a network delivered it twice, or it was repeated before the answer came
			}
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
func (t *test) answer(ctx context.Context, g greeting) (*datagram.Flow, error) {
	flow := &datagram.Flow{}
	var err error
	flow.Socket, err = socket.DialFlow(ctx, g.from.String(), socket.FlowOptions{
		Local: socket.AddrPort(t.conn.LocalAddr()), Buffer: t.params.Window, TOS: t.params.TOS,
		DontFragment: t.params.DontFragment,
	})
	if err != nil {
		return nil, err
	}
	flow.Stray = t.server.greeted
	if err := flow.Socket.Send(g.answer[:], len(g.answer)); err != nil {
		flow.Socket.Close()
		return nil, err
	}
	return flow, nil
}

// flows is one direction of a UDP test. The client ends it, also where it is of so many
// bytes: of those that were sent some may be lost.
func (t *test) flows(all []*datagram.Flow, sending bool) *flows {
	p := t.params
	return &flows{Flows: &datagram.Flows{Send: sending, Wide: p.Counters64, Size: datagramSize(p.Len),
		Bps: float64(p.Bandwidth), Burst: p.Burst, Omit: t.omit(), Search: p.Search, All: all}}
}

// defaultDatagram fits into 1500 bytes of IPv6.
const defaultDatagram = 1448

func datagramSize(asked int) int {
	if asked == 0 {
		return defaultDatagram
	}
	return asked
}
