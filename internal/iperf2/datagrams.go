package iperf2

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/datagram"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

const (
	udpIdleTimeout = 3 * time.Second
	// lingerTime is how long a finished flow repeats its report.
	lingerTime = time.Second
	// sweepInterval is the time between two searches for idle flows.
	sweepInterval = 200 * time.Millisecond
	// udpBuffer is the size asked of the kernel for the socket that all flows share, bytes.
	udpBuffer = 4 << 20
)

// flow is one UDP client's datagrams. The goroutine that reads the socket owns it.
type flow struct {
	from        netip.AddrPort
	wide        bool
	base        uint64 // added to its sequence numbers, which begin with 0 before 2.0.13
	size        int    // of its first datagram
	arrivals    datagram.Arrivals
	started     time.Time
	first, last time.Duration // since the server began
	over        bool
	report      []byte
	leave       func()
	ended       chan error // by another client or limit
}

// serveDatagrams receives UDP clients' datagrams until ctx ends.
func (s *Server) serveDatagrams(ctx context.Context, conn *net.UDPConn) {
	defer conn.Close()
	conn.SetReadBuffer(udpBuffer)
	defer context.AfterFunc(ctx, func() { conn.Close() })()
	flows := map[netip.AddrPort]*flow{}
	defer func() {
		for _, f := range flows {
			f.leave()
		}
	}()
	began := time.Now()
	swept := began
	buffer := make([]byte, 1<<16)
	for ctx.Err() == nil {
		conn.SetReadDeadline(time.Now().Add(sweepInterval))
		n, from, err := conn.ReadFromUDPAddrPort(buffer)
		now := time.Now()
		if err == nil {
			s.datagram(conn, flows, from, buffer[:n], now, now.Sub(began))
		}
		if now.Sub(swept) >= sweepInterval {
			swept = now
			s.sweep(flows, now.Sub(began))
		}
	}
}

// datagram counts one datagram and sends the report after a flow's last one.
func (s *Server) datagram(conn *net.UDPConn, flows map[netip.AddrPort]*flow, from netip.AddrPort, b []byte,
	now time.Time, at time.Duration) {
	f := flows[from]
	if f == nil {
		f = s.newFlow(from, b, now, at)
		if f == nil {
			return
		}
		flows[from] = f
	}
	p, ok := parsePacket(b, f.wide)
	if !ok {
		return
	}
	if !f.over {
		p.Sequence += f.base
		f.arrivals.Add(p.Header, len(b), at)
		f.last = at
		err := s.limits().Excess(f.arrivals.Bytes, at-f.first)
		if at-f.first > s.maxTime() {
			err = errTimeLimit
		}
		if p.last || err != nil {
			s.finish(f, p.last, err)
		}
	}
	if p.last && f.over && len(b) >= reportSize {
		f.last = at
		_, _ = conn.WriteToUDPAddrPort(f.report, from) // a lost one is asked for again
	}
}

// newFlow begins a flow with its first datagram. It returns nil for anything else and if the server is full.
func (s *Server) newFlow(from netip.AddrPort, b []byte, now time.Time, at time.Duration) *flow {
	client := netip.AddrPortFrom(from.Addr().Unmap(), from.Port())
	f := &flow{from: client, wide: isWide(b), size: len(b), started: now, first: at, last: at, ended: make(chan error, 1)}
	p, ok := parsePacket(b, f.wide)
	if !ok || p.last {
		return nil
	}
	if p.Sequence == 0 {
		f.base = 1
	}
	var err error
	f.leave, err = s.udp.join(admission.Host(from.Addr()), 0, func(cause error) {
		select {
		case f.ended <- cause:
		default:
		}
	})
	if err != nil {
		if s.Report != nil {
			s.Report(Report{From: client, Err: err})
		}
		return nil
	}
	return f
}

// finish ends a flow and reports it.
func (s *Server) finish(f *flow, complete bool, err error) {
	f.over = true
	span := f.last - f.first
	f.report = putReport(f.wide, &f.arrivals, span)
	if s.Report == nil {
		return
	}
	a := &f.arrivals
	s.Report(Report{From: f.from, Err: err, Datagrams: &transfer.DatagramResult{
		Spec:    transfer.DatagramSpec{Direction: transfer.Down, Size: f.size, Streams: 1},
		Started: f.started, Sent: int64(a.Highest), Received: a.Datagrams, Lost: a.Lost, Reordered: &a.Reordered,
		Duplicates: &a.Duplicates, Bytes: a.Bytes, Duration: span, Jitter: a.Jitter, Complete: complete}})
}

// sweep ends idle and evicted flows and forgets finished ones.
func (s *Server) sweep(flows map[netip.AddrPort]*flow, at time.Duration) {
	idle := cmp.Or(s.IdleTimeout, udpIdleTimeout)
	for from, f := range flows {
		var err error
		select {
		case err = <-f.ended:
		default:
		}
		if err == nil && at-f.last > idle {
			err = fmt.Errorf("ended: no datagram for %v", idle)
		}
		if !f.over && err != nil {
			s.finish(f, false, err)
		}
		if f.over && at-f.last > lingerTime {
			f.leave()
			delete(flows, from)
		}
	}
}
