package iperf2

import (
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// start runs a server on loopback until the test ends. It returns the address of both protocols and the reports.
func start(t *testing.T, s *Server) (address string, reports chan Report) {
	t.Helper()
	l := must.Get(net.ListenTCP("tcp", &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	udp, err := net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1), Port: l.Addr().(*net.TCPAddr).Port})
	if err != nil {
		t.Fatal(err)
	}
	reports = make(chan Report, 1000)
	s.Report = func(r Report) { reports <- r }
	ctx, cancel := context.WithCancel(context.Background())
	var serving sync.WaitGroup
	serving.Go(func() { s.Serve(ctx, l, udp) })
	t.Cleanup(func() { cancel(); serving.Wait() })
	return l.Addr().String(), reports
}

// dial connects from a loopback address.
func dial(t *testing.T, network, address, from string) net.Conn {
	t.Helper()
	var local net.Addr = &net.TCPAddr{IP: net.ParseIP(from)}
	if network == "udp" {
		local = &net.UDPAddr{IP: net.ParseIP(from)}
	}
	d := net.Dialer{LocalAddr: local}
	conn := must.Get(d.Dial(network, address))(t)
	t.Cleanup(func() { conn.Close() })
	return conn
}

// tcpHeader returns a header as iperf 2.1.8 sends it. amount is in 10 ms if negative, in bytes otherwise.
func tcpHeader(flags uint32, second uint16, amount int32) []byte {
	b := make([]byte, 60)
	binary.BigEndian.PutUint32(b, flags)
	binary.BigEndian.PutUint32(b[4:], 1)
	binary.BigEndian.PutUint32(b[20:], uint32(amount))
	binary.BigEndian.PutUint16(b[32:], second)
	return b
}

func TestServer_CountsEachByteOnce(t *testing.T) {
	address, reports := start(t, &Server{})
	for name, payload := range map[string][]byte{
		"one byte": {1}, "flags of 0": make([]byte, 100_000), "digits": []byte(strings.Repeat("0123456789", 100)),
		"header": append(tcpHeader(flagExtended|flagLength|0x78, 0, -100), make([]byte, 1_000_000)...),
		"cut":    tcpHeader(flagExtended|flagLength|0x78, 0, -100)[:10],
	} {
		conn := dial(t, "tcp", address, "127.0.0.1")
		must.Get(conn.Write(payload))(t)
		conn.Close()
		r := <-reports
		if r.Err != nil || r.TCP == nil || !r.TCP.Complete || r.TCP.Spec.Direction != transfer.Down {
			t.Fatalf("%s: %+v", name, r)
		}
		if span, ok := r.TCP.Received(); !ok || span.Bytes != int64(len(payload)) {
			t.Errorf("%s: %d bytes counted of %d", name, span.Bytes, len(payload))
		}
	}
}

// Our own client and server agree.
func TestServer_ServesPeer(t *testing.T) {
	address, reports := start(t, &Server{})
	r, err := transfer.Run(t.Context(), NewPeer(address), transfer.Spec{Direction: transfer.Up, Bytes: 2_000_000,
		Streams: 2}, nil)
	if err != nil {
		t.Fatal(err)
	}
	span, _ := r.Received()
	total := int64(0)
	for range 2 {
		one := <-reports
		received, _ := one.TCP.Received()
		total += received.Bytes - int64(len(noFlags))
	}
	if total != span.Bytes || total != 2_000_000 {
		t.Errorf("the server counted %d bytes, the client %d", total, span.Bytes)
	}
}

func TestServer_SendsInReverse(t *testing.T) {
	for name, amount := range map[string]int32{"time": -20, "bytes": 300_000} {
		address, reports := start(t, &Server{})
		conn := dial(t, "tcp", address, "127.0.0.1")
		conn.Write(tcpHeader(flagExtended|flagLength, flagReverse, amount))
		n, err := io.Copy(io.Discard, conn)
		r := <-reports
		if err != nil || r.Err != nil || r.TCP.Spec.Direction != transfer.Up || amount > 0 && n != int64(amount) || n == 0 {
			t.Errorf("%s: %d bytes, %v, %v", name, n, err, r.Err)
		}
		if span, _ := r.TCP.Received(); span.Bytes != n {
			t.Errorf("%s: the server counted %d bytes, the client %d", name, span.Bytes, n)
		}
	}
}

func TestServer_Limits(t *testing.T) {
	flood := func(t *testing.T, conn net.Conn) {
		b := make([]byte, 64<<10)
		for {
			if _, err := conn.Write(b); err != nil {
				return
			}
		}
	}
	for name, c := range map[string]struct {
		server *Server
		want   string
	}{
		"time":  {&Server{MaxTime: 200 * time.Millisecond}, "longest time"},
		"bytes": {&Server{MaxBytes: 1_000_000}, "more than"},
		"rate":  {&Server{MaxBps: 1e6}, "faster than"},
	} {
		address, reports := start(t, c.server)
		conn := dial(t, "tcp", address, "127.0.0.1")
		flood(t, conn) // returns when the server ends the connection
		if r := <-reports; r.Err == nil || !strings.Contains(r.Err.Error(), c.want) || r.TCP == nil || r.TCP.Complete {
			t.Errorf("%s: %+v", name, r)
		}
	}
	address, reports := start(t, &Server{IdleTimeout: 100 * time.Millisecond, HeaderTimeout: 100 * time.Millisecond})
	dial(t, "tcp", address, "127.0.0.1")
	if r := <-reports; r.Err == nil || r.TCP != nil {
		t.Errorf("a silent client: %+v", r)
	}
	dial(t, "tcp", address, "127.0.0.1").Write(make([]byte, 100))
	if r := <-reports; r.Err == nil || r.TCP == nil {
		t.Errorf("a client that stops: %+v", r)
	}
}

func TestServer_RefusesUnservedModes(t *testing.T) {
	address, reports := start(t, &Server{})
	bounce := make([]byte, 100)
	binary.BigEndian.PutUint32(bounce, flagBounceback)
	conn := dial(t, "tcp", address, "127.0.0.1")
	conn.Write(bounce)
	if r := <-reports; !errors.Is(r.Err, ErrBounceback) || r.TCP != nil {
		t.Errorf("bounceback: %+v", r)
	}
	conn = dial(t, "tcp", address, "127.0.0.1")
	conn.Write(append(tcpHeader(flagVersion1|flagExtended|flagLength|1, 0, -100), make([]byte, 1000)...))
	conn.Close()
	if r := <-reports; !errors.Is(r.Err, ErrConnectBack) || r.TCP == nil || !r.TCP.Complete {
		t.Errorf("-d: %+v", r)
	}
}

func TestServer_SharesSlotsByHost(t *testing.T) {
	address, reports := start(t, &Server{MaxTests: 2, MaxStreams: 4})
	for _, from := range []string{"127.0.0.1", "127.0.0.1", "127.0.0.2"} { // two hosts
		dial(t, "tcp", address, from).Write(make([]byte, 100))
	}
	wait := func(from string, want error) {
		t.Helper()
		for until := time.Now().Add(10 * time.Second); ; {
			conn := dial(t, "tcp", address, from)
			conn.Write(make([]byte, 100))
			if want == nil {
				return
			}
			if r := <-reports; errors.Is(r.Err, want) && r.From == netip.MustParseAddrPort(conn.LocalAddr().String()) {
				return
			} else if time.Now().After(until) {
				t.Fatalf("%s: %v", from, r.Err)
			}
		}
	}
	wait("127.0.0.2", nil)
	wait("127.0.0.3", ErrBusy) // no slot
	wait("127.0.0.1", ErrBusy) // no stream
}

// udpPacket returns a datagram of size bytes as iperf 2.1.8 (wide) and 2.0.5 send it.
func udpPacket(wide bool, sequence int64, size int) []byte {
	b := make([]byte, max(size, 64))
	binary.BigEndian.PutUint32(b, uint32(sequence))
	binary.BigEndian.PutUint32(b[8:], 1000)
	if wide {
		binary.BigEndian.PutUint32(b[12:], uint32(sequence>>32))
		binary.BigEndian.PutUint32(b[16:], flagExtended|flagSequence64|flagLength)
	} else {
		copy(b[12:], "23456789012345678901234567890123456789")
	}
	return b[:size]
}

func TestServer_ReportsDatagrams(t *testing.T) {
	for name, c := range map[string]struct {
		wide  bool
		first int64
	}{"2.1.8": {true, 1}, "2.0.5": {false, 0}} {
		address, reports := start(t, &Server{})
		conn := dial(t, "udp", address, "127.0.0.1")
		for n := range int64(10) {
			if n != 4 && n != 5 { // lost
				conn.Write(udpPacket(c.wide, c.first+n, 1000))
			}
		}
		last := udpPacket(c.wide, -(c.first + 10), 1000)
		conn.Write(last)
		b := make([]byte, 2000)
		n, err := conn.Read(b)
		if err != nil || n != reportSize {
			t.Fatal(name, n, err)
		}
		at := b[12:]
		if c.wide {
			at = b[16:]
		}
		fields := func(i int) uint32 { return binary.BigEndian.Uint32(at[4*i:]) }
		if fields(0)&flagVersion1 == 0 || fields(2) != 9000 || fields(5) != 2 || fields(7) != 11 {
			t.Errorf("%s: flags %x, %d bytes, %d lost of %d", name, fields(0), fields(2), fields(5), fields(7))
		}
		r := <-reports
		if d := r.Datagrams; r.Err != nil || d == nil || d.Lost != 2 || d.Sent != 11 || d.Received != 9 || !d.Complete {
			t.Errorf("%s: %+v, %v", name, d, r.Err)
		}
		conn.Write(last) // the report was lost
		if n, err := conn.Read(b); err != nil || n != reportSize {
			t.Errorf("%s: the repeated report has %d bytes, %v", name, n, err)
		}
	}
}

// A server sends no datagram to an address that sent no test, and none that is larger than its request.
func TestServer_DoesNotAmplifyDatagrams(t *testing.T) {
	address, reports := start(t, &Server{MaxTests: 1, IdleTimeout: time.Minute})
	conn := dial(t, "udp", address, "127.0.0.1")
	for _, b := range [][]byte{{}, {1}, udpPacket(true, -5, 1000), udpPacket(true, 1, 20),
		udpPacket(true, -2, reportSize-1)} {
		conn.Write(b)
	}
	if r := <-reports; r.Datagrams == nil || r.Datagrams.Received != 2 { // the last two
		t.Errorf("%+v", r)
	}
	conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 100)); err == nil {
		t.Errorf("%d bytes were sent", n)
	}
	other := dial(t, "udp", address, "127.0.0.2")
	other.Write(udpPacket(true, 1, 100))
	if r := <-reports; !errors.Is(r.Err, ErrBusy) {
		t.Errorf("a second host: %+v", r)
	}
}

func TestServer_EndsIdleFlows(t *testing.T) {
	address, reports := start(t, &Server{IdleTimeout: time.Millisecond})
	dial(t, "udp", address, "127.0.0.1").Write(udpPacket(true, 1, 100))
	if r := <-reports; r.Datagrams == nil || r.Datagrams.Complete || r.Err == nil {
		t.Errorf("%+v", r)
	}
}

// FuzzServer checks that no bytes of a client stop the server or make a report inconsistent.
func FuzzServer(f *testing.F) {
	conn := must.Get(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(f)
	defer conn.Close()
	f.Add(tcpHeader(flagExtended|flagLength|0x78, flagReverse, -1), udpPacket(true, 1, 60))
	f.Add(tcpHeader(flagVersion1|1, 0, 1<<30), udpPacket(false, -1<<31, 60))
	f.Fuzz(func(t *testing.T, tcp, udp []byte) {
		var flags [flagsSize]byte
		copy(flags[:], tcp)
		if n := headerSize(flags); len(tcp) >= n {
			if h := parseHeader(tcp[:n]); h.time < 0 || h.bytes < 0 || h.time > 0 && h.bytes > 0 {
				t.Errorf("%x: %+v", tcp, h)
			}
		}
		s := &Server{}
		s.once.Do(s.initTables)
		flows := map[netip.AddrPort]*flow{}
		from := netip.MustParseAddrPort("127.0.0.1:9")
		reported := 0
		s.Report = func(r Report) {
			reported++
			if d := r.Datagrams; d == nil || d.Lost < 0 || d.Sent < 0 || d.Received < 1 {
				t.Errorf("%x: %+v", udp, r)
			}
		}
		for i := range 3 {
			cut := udp[min(len(udp), i*len(udp)/3):]
			s.datagram(conn, flows, from, cut, time.Now(), time.Duration(i)*time.Millisecond)
		}
		s.sweep(flows, time.Hour)
		s.sweep(flows, time.Hour)
		if len(flows) > 0 || s.udp.streams != 0 || reported > 1 {
			t.Errorf("%x: %d flows are left, %d reports", udp, len(flows), reported)
		}
	})
}
