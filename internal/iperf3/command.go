package iperf3

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"sync/atomic"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/datagram"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// Command is a test asked for in iperf3's own words, as its command line does. What
// concerns sockets is asked of both ends alike.
type Command struct {
	Params Params
	// Port is the first stream's here, each further one's is the next; 0: the system's choice.
	Port uint16
	// Opened is called when the streams are open, with their addresses in the order of
	// their numbers; Each with what moved. Either may be nil.
	Opened func(Account)
	Each   func(transfer.Interval)
	// Every has Each told at its multiples, which count from the omitted time's end.
	Every time.Duration
	// Quiet is how long no data may come where this end only receives; 0: as long as it likes.
	Quiet time.Duration
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
	// SendBuffer and ReceiveBuffer are what the first stream was granted here when it was
	// opened, bytes; 0: not known.
	SendBuffer, ReceiveBuffer int
	// Handshakes are what TCP's streams settled; nil of those that do not tell.
	Handshakes []*transfer.Handshake
	// ControlMSS is the control connection's at a client, bytes; 0: not known. Chosen says that
	// the size of datagrams was chosen by it.
	ControlMSS int
	Chosen     bool
}

// describe adds what is known of the streams when they are open.
func (a *Account) describe(halves []half) {
	a.Started = time.Now()
	for i, h := range halves {
		switch h := h.(type) {
		case *flows:
			if i == 0 {
				a.SendBuffer, a.ReceiveBuffer, _ = h.All[0].Socket.Buffers()
			}
		case *load:
			for k, s := range h.streams {
				d := s.Describe()
				a.Handshakes = append(a.Handshakes, d.Handshake)
				if i+k == 0 {
					a.SendBuffer = d.SendBuffer.Granted
					a.ReceiveBuffer = d.ReceiveBuffer.Granted
				}
			}
		}
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
	mss := segmentSize(c.conn)
	chosen := wire.UDP && wire.Len == 0
	if chosen {
		wire.Len = fittingDatagram(mss)
	}
	a := &Account{Cookie: cookie, Params: wire, ControlMSS: mss, Chosen: chosen}
	var halves []half
	if wire.UDP {
		var specs []transfer.DatagramSpec
		for _, sends := range wire.directions() {
			specs = append(specs, wire.datagrams(sends))
		}
		halves, a.Streams, err = p.openFlows(ctx, c, wire, specs, command.Port)
	} else {
		near := transfer.Socket{SendBuffer: wire.Window, ReceiveBuffer: wire.Window, MSS: wire.MSS,
			NoDelay: wire.NoDelay, Congestion: wire.Congestion, PacingBps: float64(wire.FQRate), TOS: wire.TOS}
		var specs []transfer.Spec
		for _, sends := range wire.directions() {
			specs = append(specs, wire.spec(near, sends))
		}
		halves, a.Streams, err = p.openLoads(ctx, c, cookie, wire, near, specs, command.Port)
	}
	if err != nil {
		return a, err
	}
	defer closeHalves(halves)
	a.describe(halves)
	if command.Opened != nil {
		command.Opened(*a)
	}
	every(halves, command.Every)
	ctx, each, over := untilQuiet(ctx, command)
	defer over()
	done, err := c.carry(ctx, halves, wire.Streams, each)
	a.Legs = done.outcomes
	a.Mine = done.mine
	a.Far = done.far
	a.User = done.user
	a.System = done.system
	return a, err
}

// segmentSize is a connection's maximum segment size, bytes; 0: not known.
func segmentSize(conn net.Conn) int {
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return 0
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return 0
	}
	if h, err := socket.Account(raw, &transfer.Sample{}); err == nil && h != nil {
		return h.MSS
	}
	return 0
}

// fittingDatagram is the size of datagrams where none was asked for: as iperf3 has it, what
// a segment of the control connection carries, so that nothing is fragmented.
func fittingDatagram(mss int) int {
	if mss < datagram.HeaderSize(true) || mss > MaxUDPLen {
		return defaultDatagram
	}
	return mss
}

// untilQuiet makes a context that ends when nothing has come for too long.
func untilQuiet(ctx context.Context, command Command) (context.Context, func(transfer.Interval), func()) {
	if command.Quiet == 0 || !command.Params.Reverse {
		return ctx, command.Each, func() {}
	}
	ctx, stop := context.WithCancelCause(ctx)
	var alive atomic.Int64
	started := time.Now()
	done := watch(ctx, stop, &alive, started, command.Quiet)
	each := func(i transfer.Interval) {
		if i.Bytes > 0 {
			alive.Store(int64(time.Since(started)))
		}
		if command.Each != nil {
			command.Each(i)
		}
	}
	return ctx, each, func() { stop(nil); <-done }
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
		s.Bytes = p.written()
		s.Direction = transfer.Up
		s.Program = transfer.Program{WriteBytes: p.Len, WriteBps: float64(p.Bandwidth)}
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

// CheckParams holds what a client is about to ask to the ranges that servers enforce, and
// says so in iperf3's words.
func CheckParams(p Params) error {
	switch {
	case p.Time < 0 || p.Time > MaxTime:
		return fmt.Errorf("test duration too long (maximum = %d seconds)", MaxTime)
	case p.Omit < 0 || p.Omit > MaxOmit:
		return fmt.Errorf("bogus value for --omit (maximum = %d seconds)", MaxOmit)
	case p.Streams < 1 || p.Streams > MaxStreams:
		return fmt.Errorf("invalid number of parallel streams (min = 1, max = %d)", MaxStreams)
	case p.Window < 0 || p.Window > MaxWindow:
		return fmt.Errorf("socket buffer size too large (maximum = %d bytes)", MaxWindow)
	case !p.UDP && (p.Len < 1 || p.Len > MaxLen):
		return fmt.Errorf("block size too large (maximum = %d bytes)", MaxLen)
	case p.UDP && p.Len != 0 && (p.Len < datagram.HeaderSize(true) || p.Len > MaxUDPLen):
		return fmt.Errorf("block size invalid (minimum = %d bytes, maximum = %d bytes)", datagram.HeaderSize(true), MaxUDPLen)
	case p.MSS < 0 || p.MSS > MaxMSS:
		return fmt.Errorf("TCP MSS too large (maximum = %d bytes)", MaxMSS)
	case p.Omit > 0 && (p.Num > 0 || p.Blocks > 0):
		return errors.New("an omitted time goes with -t, not with -n or -k")
	}
	return nil
}
