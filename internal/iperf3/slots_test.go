package iperf3

import (
	"context"
	"io"
	"net"
	"net/netip"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// keyedCookie returns a cookie that the tests' server treats as granted to a key holder.
func keyedCookie() Cookie {
	c := NewCookie()
	copy(c[:], "keyed")
	return c
}

// beginTest opens a test with n streams from a loopback address. It returns the server's replies to the cookie,
// the parameters and the streams.
func beginTest(t *testing.T, address, from string, params string, streams int) State {
	t.Helper()
	s, _ := startTest(t, address, from, params, streams)
	return s
}

// startTest is like beginTest and also returns the control connection.
func startTest(t *testing.T, address, from string, params string, streams int) (State, net.Conn) {
	t.Helper()
	cookie := NewCookie()
	d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn := must.Get(d.Dial("tcp", address))(t)
	t.Cleanup(func() { conn.Close() })
	conn.Write(cookie[:])
	s, err := ReadState(conn)
	if err != nil {
		t.Fatal(err)
	}
	if s == ParamExchange {
		conn.Write(frame(params))
		s, err = ReadState(conn)
		if err != nil {
			t.Fatal(err)
		}
	}
	if s != CreateStreams || streams == 0 {
		return s, conn
	}
	for range streams {
		stream := must.Get(d.Dial("tcp", address))(t)
		t.Cleanup(func() { stream.Close() })
		stream.Write(cookie[:])
	}
	for s != TestRunning {
		s, err = ReadState(conn)
		if err != nil {
			t.Fatal(err)
		}
	}
	return s, conn
}

// keyedDatagrams runs a UDP test of a key holder.
func keyedDatagrams(t *testing.T, address string) {
	t.Helper()
	peer := NewPeer(address)
	peer.Ticket = keyedCookie()
	peer.helloTimeout = time.Minute
	defer peer.Close()
	spec := transfer.DatagramSpec{Direction: transfer.Up, Bps: 1e6, Time: 100 * time.Millisecond, Streams: 2}
	if r, err := transfer.RunDatagrams(t.Context(), peer, spec, nil); err != nil || !r.Complete {
		t.Errorf("a client with the key: %+v, %v", r, err)
	}
}

// TestServer_SharesSlotsByHost fills a server from a few hosts. A new host then evicts the oldest test of the
// busiest host until all hosts have the same number. A key holder has slots of its own.
func TestServer_SharesSlotsByHost(t *testing.T) {
	const params = `{"tcp":true,"time":3600,"parallel":1}`
	for name, c := range map[string]struct {
		server   *Server
		params   string
		each     int // streams of a test
		fit      int // tests of one host
		hosts    int // hosts that fill the server
		newcomer int // slots that one more host gets
	}{
		"tests": {&Server{MaxTests: 8, UDP: true}, params, 1, 2, 4, 1},
		"one":   {&Server{MaxTests: 1, UDP: true}, params, 1, 1, 1, 0},
		"streams": {&Server{MaxStreams: 256, MaxTestsPerHost: 9, UDP: true}, `{"tcp":true,"time":3600,"parallel":64}`, 64, 2,
			2, 1},
		"buffers": {&Server{MaxBuffers: 256 << 20, UDP: true}, `{"tcp":true,"time":3600,"parallel":1,"window":33554432}`, 1,
			2, 2, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c.server.StepTimeout = time.Minute
			address := serve(t, c.server)
			var oldest net.Conn
			for host := range c.hosts {
				from := net.IPv4(127, 0, 1, byte(host+1)).String()
				for n := range c.fit {
					s, conn := startTest(t, address, from, c.params, c.each)
					if s != TestRunning {
						t.Fatalf("test %d of host %d: %v", n+1, host+1, s)
					}
					if oldest == nil {
						oldest = conn
					}
				}
				if s := beginTest(t, address, from, c.params, c.each); s != AccessDenied {
					t.Errorf("one more of host %d: %v", host+1, s)
				}
			}
			for n := range c.newcomer {
				if s := beginTest(t, address, "127.0.2.1", c.params, c.each); s != TestRunning {
					t.Errorf("test %d of a newcomer: %v", n+1, s)
				}
				if s, err := ReadState(oldest); s != AccessDenied {
					t.Errorf("the oldest test got %v, %v", s, err)
				}
			}
			if s := beginTest(t, address, "127.0.2.1", c.params, c.each); s != AccessDenied {
				t.Errorf("one more than a newcomer's share: %v", s)
			}
			keyedDatagrams(t, address)
		})
	}
}

// TestServer_WrongTokensTakeNoSlot checks that a server with one slot serves each of its users while other clients
// send wrong tokens or nothing.
func TestServer_WrongTokensTakeNoSlot(t *testing.T) {
	key, public := keyPair(t)
	over := make(chan bool, 8)
	address := serve(t, &Server{MaxTests: 1, MaxTestsPerHost: 1,
		Auth: &Authenticator{Key: key, Users: usersFile("mario", "rossi")},
		Report: func(r Report) {
			if r.Authenticated {
				over <- true
			}
		}})
	attacks, stop := context.WithCancel(t.Context())
	var attackers sync.WaitGroup
	defer attackers.Wait()
	defer stop()
	attack := func(params []byte) {
		d := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP("127.0.0.2")}}
		conn, err := d.DialContext(attacks, "tcp", address)
		if err != nil {
			return
		}
		defer conn.Close()
		defer context.AfterFunc(attacks, func() { conn.Close() })()
		cookie := NewCookie()
		conn.Write(append(cookie[:], params...))
		io.Copy(io.Discard, conn) // until it is refused
	}
	for n := range 20 {
		params := frame(`{"tcp":true,"time":1,"parallel":1,"authtoken":"AAAA"}`)
		if n%2 == 0 {
			params = nil
		}
		attackers.Go(func() {
			for attacks.Err() == nil {
				attack(params)
			}
		})
	}
	for n := range 8 {
		token := must.Get(Token(public, Login{"mario", "rossi", time.Now()}, false))(t)
		peer := NewPeer(address)
		account, err := peer.RunCommand(t.Context(), Command{Params: Params{Num: 100000, Len: 1000, Streams: 1, Auth: token}})
		if err != nil || account.Far.Streams[0].Bytes != 100000 {
			t.Errorf("user %d: %v", n+1, err)
		}
		peer.Close()
		if err == nil {
			<-over // the slot is free again
		}
	}
}

// The first connections of a server may come together: each looks for a test that waits for it, and the first test
// sets up the tables. The race detector finds an access without the lock.
func TestServer_FirstConnectionsTogether(t *testing.T) {
	for range 20 {
		s := &Server{}
		var together sync.WaitGroup
		for range 4 {
			near, far := net.Pipe()
			near.Close()
			together.Go(func() {
				if s.deliverStream(acceptedConn{}, NewCookie()) {
					t.Error("a stream found a test")
				}
				s.serve(t.Context(), far, netip.MustParseAddrPort("192.0.2.1:40000"), NewCookie(), false)
			})
		}
		together.Wait()
	}
}

// An unauthenticated client that is slow to begin a UDP test does not delay a key holder at the same address.
func TestServer_KeyHolderEvictsSlowUDPClient(t *testing.T) {
	const stepTimeout = time.Minute
	address := serve(t, &Server{UDP: true, StepTimeout: stepTimeout})
	const params = `{"udp":true,"time":3600,"parallel":128}`
	if s := beginTest(t, address, "127.0.0.1", params, 0); s != CreateStreams {
		t.Fatal(s)
	}
	for range 3 { // wait for their turn
		conn := must.Get(net.Dial("tcp", address))(t)
		defer conn.Close()
		cookie := NewCookie()
		conn.Write(append(cookie[:], frame(params)...))
	}
	startedAt := time.Now()
	keyedDatagrams(t, address)
	if took := time.Since(startedAt); took >= stepTimeout {
		t.Errorf("the key holder waited for %v", took)
	}
}

// TestOpenFlow_PortOpensLater starts the UDP port after the first datagram was refused.
func TestOpenFlow_PortOpensLater(t *testing.T) {
	first := must.Get(net.ListenUDP("udp", &net.UDPAddr{IP: net.IPv4(127, 0, 0, 1)}))(t)
	address := first.LocalAddr().(*net.UDPAddr)
	first.Close()
	opens := make(chan struct{})
	go func() {
		<-opens
		late, err := net.ListenUDP("udp", address)
		if err != nil {
			t.Error(err)
			return
		}
		defer late.Close()
		buffer := make([]byte, 64)
		_, from, err := late.ReadFrom(buffer)
		if err == nil {
			_, err = late.WriteTo(helloReplyBytes[:], from)
		}
		if err != nil {
			t.Error(err)
		}
	}()
	time.AfterFunc(100*time.Millisecond, func() { close(opens) })
	peer := &Peer{helloTimeout: time.Minute}
	flow, err := peer.openFlow(t.Context(), address.String(), [][]byte{helloBytes[:]}, socket.FlowOptions{})
	if err != nil {
		t.Fatal(err)
	}
	flow.Socket.Close()
}
