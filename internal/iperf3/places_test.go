package iperf3

import (
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// keyedCookie is one that the tests' server takes for granted to a holder of the key.
func keyedCookie() Cookie {
	c := NewCookie()
	copy(c[:], "keyed")
	return c
}

// beginTest opens a test from a loopback address, with so many streams. It answers what
// the server says to its cookie, to its parameters, and in the end to its streams.
func beginTest(t *testing.T, address, from string, params string, streams int) State {
	t.Helper()
	cookie := NewCookie()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := d.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	conn.SetDeadline(time.Now().Add(10 * time.Second))
	conn.Write(cookie[:])
	s, err := ReadState(conn)
	if err != nil {
		t.Fatal(err)
	}
	if s == ParamExchange {
		conn.Write(frame(params))
		if s, err = ReadState(conn); err != nil {
			t.Fatal(err)
		}
	}
	if s != CreateStreams || streams == 0 {
		return s
	}
	for range streams {
		stream, err := d.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { stream.Close() })
		stream.Write(cookie[:])
	}
	for s != TestRunning {
		if s, err = ReadState(conn); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// keyedDatagrams is a UDP test of a client with the key.
func keyedDatagrams(t *testing.T, address string) {
	t.Helper()
	peer := NewPeer(address)
	peer.Ticket = keyedCookie()
	defer peer.Close()
	spec := transfer.DatagramSpec{Direction: transfer.Up, Bps: 1e6, Time: 100 * time.Millisecond, Streams: 2}
	if r, err := transfer.RunDatagrams(t.Context(), peer, spec, nil); err != nil || !r.Complete {
		t.Errorf("a client with the key: %+v, %v", r, err)
	}
}

// Strangers share places by host, however long they stay, and never take those of
// clients with the key.
func TestStrangersPlaces(t *testing.T) {
	const params = `{"tcp":true,"time":3600,"parallel":1}`
	for name, c := range map[string]struct {
		server *Server
		params string
		each   int // streams of a test
		fit    int // tests of one host
		hosts  int // that fill the server
	}{
		"tests": {&Server{MaxTests: 8, UDP: true}, params, 1, 2, 4},
		"one":   {&Server{MaxTests: 1, UDP: true}, params, 1, 1, 1},
		"streams": {&Server{MaxStreams: 256, MaxTestsPerHost: 9, UDP: true}, `{"tcp":true,"time":3600,"parallel":64}`, 64, 2,
			2},
		"buffers": {&Server{MaxBuffers: 256 << 20, UDP: true}, `{"tcp":true,"time":3600,"parallel":1,"window":33554432}`, 1,
			2, 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.server.Patience = time.Minute
			address := serve(t, c.server)
			for host := range c.hosts {
				from := net.IPv4(127, 0, 1, byte(host+1)).String()
				for n := range c.fit {
					if s := beginTest(t, address, from, c.params, c.each); s != TestRunning {
						t.Fatalf("test %d of host %d: %v", n+1, host+1, s)
					}
				}
				if s := beginTest(t, address, from, c.params, c.each); s != AccessDenied {
					t.Errorf("one more of host %d: %v", host+1, s)
				}
			}
			if s := beginTest(t, address, "127.0.2.1", c.params, c.each); s != AccessDenied {
				t.Errorf("one more where the server is full: %v", s)
			}
			keyedDatagrams(t, address)
		})
	}
}

// A stranger that begins a UDP test and dawdles does not hold up a client with the key
// behind the same address.
func TestDawdlersMakeRoomForTheKey(t *testing.T) {
	const patience = time.Minute
	address := serve(t, &Server{UDP: true, Patience: patience})
	const params = `{"udp":true,"time":3600,"parallel":128}`
	if s := beginTest(t, address, "127.0.0.1", params, 0); s != CreateStreams {
		t.Fatal(s)
	}
	for range 3 { // wait for their turn
		conn, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		cookie := NewCookie()
		conn.Write(append(cookie[:], frame(params)...))
	}
	begun := time.Now()
	keyedDatagrams(t, address)
	if took := time.Since(begun); took >= patience {
		t.Errorf("it waited for %v", took)
	}
}
