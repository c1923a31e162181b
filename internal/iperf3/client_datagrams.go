package iperf3

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net/netip"
	"os"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/datagram"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	// helloEvery is the time between two copies of a UDP stream's first datagram.
	helloEvery = 500 * time.Millisecond
	// helloTimeout is the longest wait for the reply.
	helloTimeout = 5 * time.Second
	// refusedPause is the time before the next copy after an error, such as a refusal by the server's host.
	refusedPause = 50 * time.Millisecond
)

// CheckDatagrams says which field of one leg's DatagramSpec, or of two legs', iperf3's
// protocol has no words for. Only a fullpipe gives feedback, to clients with its key.
func CheckDatagrams(keyed bool, legs ...transfer.DatagramSpec) error {
	spec := legs[0]
	switch {
	case spec.Streams > MaxStreams:
		return &transfer.Unsupported{Field: "Streams", Why: "iperf3 carries at most 128"}
	case spec.Size > MaxUDPLen || spec.Size != 0 && spec.Size < datagram.HeaderSize(true):
		return &transfer.Unsupported{Field: "Size",
			Why: fmt.Sprintf("a datagram has %d to %d bytes", datagram.HeaderSize(true), MaxUDPLen)}
	case spec.Time <= 0 || spec.Time > MaxTime*time.Second:
		return &transfer.Unsupported{Field: "Time", Why: "iperf3 runs for at most a day"}
	case spec.Search && (!keyed || spec.Streams > 1):
		return &transfer.Unsupported{Field: "Search", Why: "it takes a fullpipe there, a key and one stream"}
	}
	if len(legs) == 2 {
		other := legs[1]
		other.Direction = spec.Direction
		if other != spec || spec.Search {
			return &transfer.Unsupported{Field: "Bps",
				Why: "iperf3 sends the same datagrams at the same rate both ways"}
		}
	}
	return nil
}

func datagramParams(spec transfer.DatagramSpec) Params {
	n := max(spec.Streams, 1)
	return Params{UDP: true, Time: int(math.Ceil(spec.Time.Seconds())), Streams: n,
		Reverse: spec.Direction == transfer.Down,
		Window:  spec.Buffer, Len: datagramSize(spec.Size), Bandwidth: int64(spec.Bps / float64(n)), PacingTimer: 1000,
		TOS:        spec.TOS,
		Counters64: true, Search: spec.Search, DontFragment: spec.DontFragment, ClientVersion: "fullpipe"}
}

// greetAll opens the streams; where one of them fails, none is left. A server that knows
// marks takes the greeting that has one, older ones the other.
func (p *Peer) greetAll(ctx context.Context, c *control, wire Params, spec transfer.DatagramSpec,
	n int, port uint16) (all []*datagram.Flow, err error) {
	greetings := [][]byte{udpHello[:]}
	if wire.Marked {
		greetings = [][]byte{append(udpHello[:], mark(p.Ticket)...), udpHello[:]}
	}
	for range n {
		one, err := p.greetServer(ctx, c.conn.RemoteAddr().String(), greetings, socket.FlowOptions{Route: p.Route,
			Buffer: spec.Buffer, TOS: spec.TOS, DontFragment: spec.DontFragment, LocalPort: port})
		if err != nil {
			c.hangUp()
			(&datagram.Flows{All: all}).Close()
			return nil, err
		}
		all = append(all, one)
		if port > 0 {
			port++
		}
	}
	return all, nil
}

// greetServer opens one UDP stream and waits for the server's answer.
func (p *Peer) greetServer(ctx context.Context, address string, greetings [][]byte,
	o socket.FlowOptions) (*datagram.Flow, error) {
	s, err := socket.DialFlow(ctx, address, o)
	if err != nil {
		return nil, err
	}
	buffer := make([]byte, 1<<16)
	deadline := time.Now().Add(cmp.Or(p.helloTimeout, helloTimeout))
	for ctx.Err() == nil && time.Now().Before(deadline) {
		for _, greeting := range greetings {
			err = s.Send(greeting, len(greeting))
			if err != nil {
				break
			}
		}
		if err == nil {
			s.SetDeadline(time.Now().Add(helloEvery))
			var n int
			var from netip.AddrPort
			n, _, from, err = s.Receive(buffer)
			if err == nil && from == s.Remote() && IsAnswer(buffer[:n]) {
				s.SetDeadline(time.Time{})
				return &datagram.Flow{Socket: s}, nil
			}
		}
		if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
			continue
		}
		// Between two streams the server's port may be closed for a moment.
		select {
		case <-ctx.Done():
		case <-time.After(refusedPause):
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
