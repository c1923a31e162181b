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

// Command is a test with iperf3's own options. Socket options apply to both ends.
type Command struct {
	Params Params
	// Port is the local port of the first stream. Each further stream uses the next port. 0: any.
	Port uint16
	// OnConnect is called when the server has accepted the control connection, OnOpen when all streams are open,
	// OnInterval with the bytes moved. Each may be nil.
	OnConnect  func()
	OnOpen     func(TestResult)
	OnInterval func(transfer.Interval)
	// Interval is the time between two calls of OnInterval, counted from the end of the omitted time.
	Interval time.Duration
	// IdleTimeout ends a test that only receives when no data arrives for this long. 0: never.
	IdleTimeout time.Duration
}

// TestResult is one test as both ends measured it.
type TestResult struct {
	Cookie  Cookie
	Params  Params
	Started time.Time
	Streams []Endpoints
	Legs    []transfer.Outcome // one, or with --bidir two: first what this end sends
	// Near and Far are the results of both ends. Far has no streams if the test was aborted.
	Near, Far Results
	User      time.Duration // CPU time of this process during the data transfer
	System    time.Duration
	// SendBuffer and ReceiveBuffer are the sizes granted to the first stream when it opened, bytes. 0: unknown.
	SendBuffer, ReceiveBuffer int
	// Handshakes are the TCP options negotiated by each stream, nil where unknown.
	Handshakes []*transfer.Handshake
	// ControlMSS is the MSS of a client's control connection, bytes. 0: unknown. ChosenByMSS is set if it
	// determined the datagram size.
	ControlMSS  int
	ChosenByMSS bool
}

// describe adds the handshakes and buffers of the open streams.
func (a *TestResult) describe(directions []direction) {
	a.Started = time.Now()
	for i, dir := range directions {
		switch dir := dir.(type) {
		case *udpFlows:
			if i == 0 {
				a.SendBuffer, a.ReceiveBuffer, _ = dir.All[0].Socket.Buffers()
			}
		case *tcpStreams:
			for k, s := range dir.streams {
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

// RunCommand runs one test. If the test began, it returns the result along with an error.
func (p *Peer) RunCommand(ctx context.Context, command Command) (*TestResult, error) {
	ctx, cancel := p.untilClosed(ctx)
	defer cancel()
	c, cookie, err := p.connect(ctx)
	if err != nil {
		return nil, err
	}
	defer c.conn.Close()
	if command.OnConnect != nil {
		command.OnConnect()
	}
	a := &TestResult{Cookie: cookie}
	run := func() ([]transfer.Outcome, error) {
		err := p.runCommand(ctx, c, command, a)
		return a.Legs, err
	}
	if command.Params.UDP || !command.Params.Reverse && !command.Params.Both {
		_, err = run() // the kernel of a TCP sender knows its queue
	} else {
		_, err = p.underLoad(ctx, c, run)
	}
	return a, err
}

// runCommand runs a test on a control connection whose cookie the server accepted, and sets its result.
func (p *Peer) runCommand(ctx context.Context, c *control, command Command, a *TestResult) (err error) {
	wire := command.Params
	wire.Streams = max(wire.Streams, 1)
	mss := mssOf(c.conn)
	chosen := wire.UDP && wire.Len == 0
	if chosen {
		wire.Len = datagramSizeFor(mss)
	}
	a.Params = wire
	a.ControlMSS = mss
	a.ChosenByMSS = chosen
	var directions []direction
	if wire.UDP {
		var specs []transfer.DatagramSpec
		for _, sends := range wire.directions() {
			specs = append(specs, wire.datagrams(sends))
		}
		directions, a.Streams, err = p.openUDP(ctx, c, wire, specs, command.Port)
	} else {
		near := transfer.Socket{SendBuffer: wire.Window, ReceiveBuffer: wire.Window, MSS: wire.MSS,
			NoDelay: wire.NoDelay, Congestion: wire.Congestion, PacingBps: float64(wire.FQRate), TOS: wire.TOS}
		var specs []transfer.Spec
		for _, sends := range wire.directions() {
			specs = append(specs, wire.spec(near, sends))
		}
		directions, a.Streams, err = p.openTCP(ctx, c, a.Cookie, wire, near, specs, command.Port)
	}
	if err != nil {
		return err
	}
	defer closeDirections(directions)
	a.describe(directions)
	if command.OnOpen != nil {
		command.OnOpen(*a)
	}
	setInterval(directions, command.Interval)
	ctx, onInterval, over := withIdleTimeout(ctx, command)
	defer over()
	done, err := c.runData(ctx, directions, wire.Streams, onInterval)
	a.Legs = done.outcomes
	a.Near = done.near
	a.Far = done.far
	a.User = done.user
	a.System = done.system
	return err
}

// mssOf returns the maximum segment size of a connection in bytes, 0 if unknown.
func mssOf(conn net.Conn) int {
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

// datagramSizeFor returns the default datagram size: like iperf3, the MSS of the control connection, which avoids
// fragmentation.
func datagramSizeFor(mss int) int {
	if mss < datagram.HeaderSize(true) || mss > MaxUDPLen {
		return defaultDatagramSize
	}
	return mss
}

// withIdleTimeout returns a context that ends when no data has arrived for command.IdleTimeout.
func withIdleTimeout(ctx context.Context, command Command) (context.Context, func(transfer.Interval), func()) {
	if command.IdleTimeout == 0 || !command.Params.Reverse {
		return ctx, command.OnInterval, func() {}
	}
	ctx, stop := context.WithCancelCause(ctx)
	var alive atomic.Int64
	started := time.Now()
	done := watchIdle(ctx, stop, &alive, started, command.IdleTimeout)
	onInterval := func(i transfer.Interval) {
		if i.Bytes > 0 {
			alive.Store(int64(time.Since(started)))
		}
		if command.OnInterval != nil {
			command.OnInterval(i)
		}
	}
	return ctx, onInterval, func() { stop(nil); <-done }
}

// directions returns for each leg whether this end sends.
func (p Params) directions() []bool {
	if p.Both {
		return []bool{true, false}
	}
	return []bool{!p.Reverse}
}

// spec returns one direction of a TCP test from the client's view.
func (p Params) spec(near transfer.Socket, sends bool) transfer.Spec {
	s := transfer.Spec{Direction: transfer.Down, Near: near, Streams: max(p.Streams, 1),
		Time:  time.Duration(p.Omit+p.Time) * time.Second,
		Bytes: p.requestedBytes()}
	if sends {
		s.Bytes = p.wholeWriteBytes()
		s.Direction = transfer.Up
		s.Program = transfer.Program{WriteBytes: p.Len, WriteBps: float64(p.Bandwidth)}
	}
	if s.Bytes > 0 {
		s.Time = 0
	}
	return s
}

// datagrams returns one direction of a UDP test from the client's view.
func (p Params) datagrams(sends bool) transfer.DatagramSpec {
	s := transfer.DatagramSpec{Direction: transfer.Down, Bps: float64(p.Bandwidth) * float64(max(p.Streams, 1)),
		Size: p.Len, Streams: max(p.Streams, 1),
		Time: time.Duration(p.Omit+p.Time) * time.Second, Buffer: p.Window, TOS: p.TOS, DontFragment: p.DontFragment}
	if sends {
		s.Direction = transfer.Up
	}
	if p.requestedBytes() > 0 {
		s.Time = MaxTime * time.Second // the byte count ends the test
	}
	return s
}

// CheckParams checks a client's parameters against the ranges that servers enforce. Its errors use iperf3's text.
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
