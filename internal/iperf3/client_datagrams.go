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
	// helloInterval is the time between two copies of a UDP stream's first datagram.
	helloInterval = 500 * time.Millisecond
	// helloTimeout is the longest wait for the reply.
	helloTimeout = 5 * time.Second
	// refusedRetryInterval is the time before the next copy after an error, such as a refusal by the server's host.
	refusedRetryInterval = 50 * time.Millisecond
)

// CheckDatagrams returns *transfer.Unsupported for the DatagramSpecs of one or two legs that iperf3's protocol
// cannot express. Only fullpipe gives feedback for a rate search, to clients with its key.
func CheckDatagrams(keyed bool, legs ...transfer.DatagramSpec) error {
	spec := legs[0]
	switch {
	case spec.Streams > MaxStreams:
		return &transfer.Unsupported{Field: "Streams", Reason: "iperf3 carries at most 128"}
	case spec.Size > MaxUDPLen || spec.Size != 0 && spec.Size < datagram.HeaderSize(true):
		return &transfer.Unsupported{Field: "Size",
			Reason: fmt.Sprintf("a datagram has %d to %d bytes", datagram.HeaderSize(true), MaxUDPLen)}
	case spec.Time <= 0 || spec.Time > MaxTime*time.Second:
		return &transfer.Unsupported{Field: "Time", Reason: "iperf3 runs for at most a day"}
	case spec.Search && (!keyed || spec.Streams > 1):
		return &transfer.Unsupported{Field: "Search", Reason: "needs fullpipe at the far end, a key and one stream"}
	}
	if len(legs) == 2 {
		other := legs[1]
		other.Direction = spec.Direction
		if other != spec || spec.Search {
			return &transfer.Unsupported{Field: "Bps",
				Reason: "iperf3 sends the same datagrams at the same rate both ways"}
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

// openFlows opens n UDP streams, or none on error. Servers that support marks answer the hello with a mark, older
// ones the hello without.
func (p *Peer) openFlows(ctx context.Context, c *control, wire Params, spec transfer.DatagramSpec,
	n int, port uint16) (all []*datagram.Flow, err error) {
	greetings := [][]byte{helloBytes[:]}
	if wire.Marked {
		greetings = [][]byte{append(helloBytes[:], mark(p.Ticket)...), helloBytes[:]}
	}
	for range n {
		one, err := p.openFlow(ctx, c.conn.RemoteAddr().String(), greetings, socket.FlowOptions{Route: p.Route,
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

// openFlow opens one UDP stream and waits for the server's reply.
func (p *Peer) openFlow(ctx context.Context, address string, greetings [][]byte,
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
			s.SetDeadline(time.Now().Add(helloInterval))
			var n int
			var from netip.AddrPort
			n, _, from, err = s.Receive(buffer)
			if err == nil && from == s.Remote() && IsHelloReply(buffer[:n]) {
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
		case <-time.After(refusedRetryInterval):
		}
	}
	s.Close()
	if ctx.Err() != nil {
		return nil, context.Cause(ctx)
	}
	return nil, &noUDPReplyError{address}
}

// noUDPReplyError reports that no hello was answered.
type noUDPReplyError struct{ address string }

func (e *noUDPReplyError) Error() string {
	return "no answer over UDP from " + e.address + ", although TCP connects"
}

// Try returns the suggested action.
func (e *noUDPReplyError) Try() string {
	return "open UDP port as well as TCP on the way to " + e.address
}
