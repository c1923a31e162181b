package iperf3

import (
	"context"
	"fmt"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/datagram"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Command is a test asked for in iperf3's own words, as its command line does. What
// concerns sockets is asked of both ends alike.
type Command struct {
	Params Params
	// Opened is called when the streams are open, with their addresses in the order of
	// their numbers; Each with what moved. Either may be nil.
	Opened func(Account)
	Each   func(transfer.Interval)
}

// Account is what both ends say of a Command's test.
type Account struct {
	Cookie  Cookie
	Params  Params
	Started time.Time
	Streams []Endpoints
	Legs    []transfer.Outcome // one, or with --bidir two: what this end sends first
	// Mine and Far are the two ends' results; Far has no streams where the test was cut
	// short.
	Mine, Far Results
	User      time.Duration // of this process, over the test's data
	System    time.Duration
	// SendBuffer and ReceiveBuffer are what UDP's first stream was granted here, bytes; 0:
	// not known. TCP's are with its streams.
	SendBuffer, ReceiveBuffer int
}

// describe adds what is known of the streams when they are open.
func (a *Account) describe(halves []half) {
	a.Started = time.Now()
	if f, ok := halves[0].(*flows); ok {
		a.SendBuffer, a.ReceiveBuffer, _ = f.All[0].Socket.Buffers()
	}
}

// Endpoints are a stream's addresses.
type Endpoints struct{ Local, Remote netip.AddrPort }

// Carry carries out one test. An account that was begun comes with the error.
func (p *Peer) Carry(ctx context.Context, command Command) (*Account, error) {
	ctx, cancel := p.bound(ctx)
	defer cancel()
	c, cookie, err := p.begin(ctx)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	wire := command.Params
	wire.Streams = max(wire.Streams, 1)
	a := &Account{Cookie: cookie, Params: wire}
	var halves []half
	if wire.UDP {
		var specs []transfer.DatagramSpec
		for _, sends := range wire.directions() {
			specs = append(specs, wire.datagrams(sends))
		}
		halves, a.Streams, err = p.openFlows(ctx, c, wire, specs)
	} else {
		near := transfer.Socket{SendBuffer: wire.Window, ReceiveBuffer: wire.Window, MSS: wire.MSS,
			NoDelay: wire.NoDelay, Congestion: wire.Congestion, PacingBps: float64(wire.FQRate), TOS: wire.TOS}
		var specs []transfer.Spec
		for _, sends := range wire.directions() {
			specs = append(specs, wire.spec(near, sends))
		}
		halves, a.Streams, err = p.openLoads(ctx, c, cookie, wire, near, specs)
	}
	if err != nil {
		return a, err
	}
	defer closeHalves(halves)
	a.describe(halves)
	if command.Opened != nil {
		command.Opened(*a)
	}
	done, err := c.carry(ctx, halves, wire.Streams, command.Each)
	a.Legs, a.Mine, a.Far, a.User, a.System = done.outcomes, done.mine, done.far, done.user, done.system
	return a, err
}

// directions say for each leg whether this end sends.
func (p Params) directions() []bool {
	if p.Both {
		return []bool{true, false}
	}
	return []bool{!p.Reverse}
}

// spec is one direction of a TCP test as its client sees it.
func (p Params) spec(near transfer.Socket, sends bool) transfer.Spec {
	s := transfer.Spec{Direction: transfer.Down, Near: near, Streams: max(p.Streams, 1),
		Time:  time.Duration(p.Omit+p.Time) * time.Second,
		Bytes: p.total()}
	if sends {
		s.Direction, s.Program = transfer.Up, transfer.Program{WriteBytes: p.Len, WriteBps: float64(p.Bandwidth)}
	}
	if s.Bytes > 0 {
		s.Time = 0
	}
	return s
}

// datagrams is one direction of a UDP test as its client sees it.
func (p Params) datagrams(sends bool) transfer.DatagramSpec {
	s := transfer.DatagramSpec{Direction: transfer.Down, Bps: float64(p.Bandwidth) * float64(max(p.Streams, 1)),
		Size: p.Len, Streams: max(p.Streams, 1),
		Time: time.Duration(p.Omit+p.Time) * time.Second, Buffer: p.Window, TOS: p.TOS, DontFragment: p.DontFragment}
	if sends {
		s.Direction = transfer.Up
	}
	if p.total() > 0 {
		s.Time = MaxTime * time.Second // the bytes end it
	}
	return s
}

// CheckParams holds what a client is about to ask to the ranges that servers enforce.
func CheckParams(p Params) error {
	switch {
	case p.Time < 0 || p.Time > MaxTime:
		return fmt.Errorf("a test lasts at most %d s", MaxTime)
	case p.Omit < 0 || p.Omit > MaxOmit:
		return fmt.Errorf("at most %d s are omitted", MaxOmit)
	case p.Streams < 1 || p.Streams > MaxStreams:
		return fmt.Errorf("1 to %d streams", MaxStreams)
	case p.Window < 0 || p.Window > MaxWindow:
		return fmt.Errorf("a socket buffer has at most %d bytes", MaxWindow)
	case !p.UDP && (p.Len < 1 || p.Len > MaxLen):
		return fmt.Errorf("a write has 1 to %d bytes", MaxLen)
	case p.UDP && (p.Len < datagram.HeaderSize(true) || p.Len > MaxUDPLen):
		return fmt.Errorf("a datagram has %d to %d bytes", datagram.HeaderSize(true), MaxUDPLen)
	case p.MSS < 0 || p.MSS > MaxMSS:
		return fmt.Errorf("a segment has at most %d bytes", MaxMSS)
	}
	return nil
}
