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

// udpHelloFrom is a UDP stream's first datagram, with the reply in its dialect.
type udpHelloFrom struct {
	from  netip.AddrPort
	reply [4]byte
}

// ServeDatagrams reads the first datagrams of UDP streams from conn until it is closed. socket.ListenFlows opened
// conn on the server's port. Replies go only to hosts whose test waits for streams, and are never longer than the
// hello.
func (s *Server) ServeDatagrams(conn *net.UDPConn) error {
	buffer := make([]byte, 64)
	for {
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		if err != nil {
			return err
		}
		s.handleHello(socket.Unmap(from), buffer[:n])
	}
}

// handleHello passes a hello to the test that waits for it.
func (s *Server) handleHello(from netip.AddrPort, datagram []byte) {
	magic := min(len(datagram), len(helloBytes))
	answer, ok := HelloReply(datagram[:magic])
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, t := range s.tests {
		if t.helloQueue != nil && t.from.Addr() == from.Addr() && bytes.Equal(t.mark(), datagram[magic:]) {
			select {
			case t.helloQueue <- udpHelloFrom{from, answer}:
			default:
			}
			return
		}
	}
}

// mark returns the mark that the test's hellos end with, nil if the client did not announce marks.
func (t *test) mark() []byte {
	if !t.params.Marked {
		return nil
	}
	return mark(t.cookie)
}

// acceptUDP waits for n UDP streams and replies to each from a socket of its own on the server's port.
func (t *test) acceptUDP(ctx context.Context, n int) (directions []direction, err error) {
	greeted := make(chan udpHelloFrom, n)
	t.setHelloQueue(greeted)
	defer t.setHelloQueue(nil)
	var all []*datagram.Flow
	defer func() {
		if err != nil {
			for _, f := range all {
				f.Socket.Close()
			}
		}
	}()
	err = t.send(ctx, CreateStreams)
	if err != nil {
		return nil, err
	}
	timeout := time.NewTimer(t.server.stepTimeout())
	defer timeout.Stop()
	for len(all) < n {
		select {
		case g := <-greeted:
			if slices.ContainsFunc(all, func(f *datagram.Flow) bool { return f.Socket.Remote() == g.from }) {
				continue // a duplicate, or repeated before our reply arrived
			}
			f, err := t.answerHello(ctx, g)
			if err != nil {
				return nil, t.refuse(codeOf(err), errnoOf(err), err)
			}
			all = append(all, f)
			timeout.Reset(t.server.stepTimeout())
		case <-timeout.C:
			return nil, fmt.Errorf("%v opened %d of its %d UDP streams", t.from, len(all), n)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	for i := 0; i < n; i += t.params.Streams {
		directions = append(directions, t.newUDPFlows(all[i:i+t.params.Streams], t.params.Reverse || i > 0))
	}
	return directions, nil
}

func (t *test) setHelloQueue(to chan udpHelloFrom) {
	t.server.mu.Lock()
	defer t.server.mu.Unlock()
	t.helloQueue = to
}

// answerHello connects a socket to the stream and replies. Datagrams of other hosts that arrive before connect()
// are handled as hellos.
func (t *test) answerHello(ctx context.Context, g udpHelloFrom) (*datagram.Flow, error) {
	flow := &datagram.Flow{}
	var err error
	flow.Socket, err = socket.DialFlow(ctx, g.from.String(), socket.FlowOptions{
		Local: socket.AddrPort(t.conn.LocalAddr()), Buffer: t.params.Window, TOS: t.params.TOS,
		DontFragment: t.params.DontFragment,
	})
	if err != nil {
		return nil, err
	}
	flow.Stray = t.server.handleHello
	if err := flow.Socket.Send(g.reply[:], len(g.reply)); err != nil {
		flow.Socket.Close()
		return nil, err
	}
	return flow, nil
}

// newUDPFlows returns the server's side of one direction. The client ends it even with a byte count, because
// datagrams may be lost.
func (t *test) newUDPFlows(all []*datagram.Flow, sending bool) *udpFlows {
	p := t.params
	return &udpFlows{Flows: &datagram.Flows{Send: sending, Wide: p.Counters64, Size: datagramSize(p.Len),
		Bps: float64(p.Bandwidth), Burst: p.Burst, Omit: t.omit(), Search: p.Search, All: all}}
}

// defaultDatagramSize fits into 1500 bytes of IPv6.
const defaultDatagramSize = 1448

func datagramSize(asked int) int {
	if asked == 0 {
		return defaultDatagramSize
	}
	return asked
}
