package iperf3

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// serve runs a Server on a loopback port until the test ends. Cookies that begin with "keyed" count as granted.
func serve(t *testing.T, s *Server) (address string) {
	t.Helper()
	l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(testenv.FreePort(t, 1))))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	var flows *net.UDPConn
	if s.UDP {
		flows, err = socket.ListenFlows(ctx, l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		running.Go(func() { s.ServeDatagrams(flows) })
	}
	running.Go(func() {
		for order := int64(0); ; order++ {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			running.Go(func() {
				var cookie Cookie
				if _, err := io.ReadFull(conn, cookie[:]); err != nil {
					conn.Close()
					return
				}
				s.Handle(ctx, conn.(*net.TCPConn), cookie, order, bytes.HasPrefix(cookie[:], []byte("keyed")))
			})
		}
	})
	t.Cleanup(func() {
		cancel()
		l.Close()
		if flows != nil {
			flows.Close()
		}
		running.Wait()
	})
	return l.Addr().String()
}

func TestRun_OwnClientAndServer(t *testing.T) {
	for name, spec := range map[string]transfer.Spec{
		"up":                 {Direction: transfer.Up, Bytes: 1 << 20},
		"down":               {Direction: transfer.Down, Bytes: 1 << 20},
		"three streams":      {Direction: transfer.Up, Bytes: 1 << 20, Streams: 3},
		"three streams down": {Direction: transfer.Down, Bytes: 1 << 20, Streams: 3},
		"with a time": {Direction: transfer.Up, Time: 100 * time.Millisecond,
			Program: transfer.Program{WriteBytes: 1000, WriteBps: 8e6}},
		"with a time down": {Direction: transfer.Down, Time: 100 * time.Millisecond,
			Program: transfer.Program{WriteBytes: 1000, WriteBps: 8e6}},
		"windows": {Direction: transfer.Up, Bytes: 1 << 20, Far: transfer.Socket{ReceiveBuffer: 32768}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reports := make(chan Report, 1)
			peer := NewPeer(serve(t, &Server{Report: func(r Report) { reports <- r }}))
			defer peer.Close()
			result, err := transfer.Run(context.Background(), peer, spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			span, ok := result.Received()
			if !ok || !result.Complete || span.Bytes == 0 || spec.Bytes > 0 && span.Bytes < spec.Bytes {
				t.Errorf("%d bytes, complete %v", span.Bytes, result.Complete)
			}
			report := <-reports
			if report.Err != nil {
				t.Errorf("the server: %v", report.Err)
			}
			seen, _ := report.Outcomes[0].TCP.Received()
			if spec.Direction == transfer.Up && spec.Bytes > 0 && seen.Bytes != spec.Bytes {
				t.Errorf("the server counted %d bytes of %d", seen.Bytes, spec.Bytes)
			}
		})
	}
}

// A receiver cannot see the sender's queue, so both kinds of client measure the latency: one evidence, one verdict.
func TestRun_LatencyOfReceivedTests(t *testing.T) {
	address := serve(t, &Server{})
	for _, params := range []Params{{Num: 100000, Reverse: true}, {Num: 100000, Both: true}} {
		test := transfer.Test{Legs: []transfer.Leg{{TCP: &transfer.Spec{Direction: transfer.Down, Bytes: 100000,
			Latency: true}}}}
		measured := func(run func(*Peer) ([]transfer.Outcome, error)) *transfer.Result {
			peer := NewPeer(address)
			defer peer.Close()
			legs, err := run(peer)
			if err != nil {
				t.Fatal(err)
			}
			return legs[len(legs)-1].TCP
		}
		asked := measured(func(p *Peer) ([]transfer.Outcome, error) { return p.Run(t.Context(), test, nil) })
		command := measured(func(p *Peer) ([]transfer.Outcome, error) {
			account, err := p.RunCommand(t.Context(), Command{Params: params})
			return account.Legs, err
		})
		if command.Latency == nil && len(command.Warnings) == 0 || (asked.Latency == nil) != (command.Latency == nil) {
			t.Errorf("%+v: latency %v, %v; measure's %v", params, command.Latency, command.Warnings, asked.Latency)
		}
	}
}

func TestServer_ReportsBusy(t *testing.T) {
	address := serve(t, &Server{MaxTests: 1})
	first, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer first.Close()
	cookie := NewCookie()
	first.Write(cookie[:])
	first.Write(frame(`{"tcp":true,"time":1,"parallel":1}`))
	for _, want := range []State{ParamExchange, CreateStreams} {
		if s, err := ReadState(first); s != want {
			t.Fatal(s, err)
		}
	}
	second, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	cookie = NewCookie()
	second.Write(cookie[:])
	if s, err := ReadState(second); s != AccessDenied {
		t.Errorf("%v, %v", s, err)
	}
}

func TestServer_FreesSlotOfLeavingClient(t *testing.T) {
	reports := make(chan Report, 1)
	address := serve(t, &Server{MaxTests: 1, UDP: true, StepTimeout: time.Minute, Report: func(r Report) { reports <- r }})
	for _, params := range []string{`{"tcp":true,"time":1}`, `{"tcp":true,"time":1,"window":4096}`,
		`{"udp":true,"time":1}`} {
		c, _, err := ask(t, address, params)
		if err != nil {
			t.Fatal(err)
		}
		c.conn.Close()
		if r := <-reports; r.Err == nil {
			t.Errorf("%+v", r)
		}
	}
}

func TestServer_ClosesSurplusStreams(t *testing.T) {
	const rounds = 30
	reports := make(chan Report, 21*rounds)
	address := serve(t, &Server{StepTimeout: 5 * time.Second, Report: func(r Report) { reports <- r }})
	for range rounds {
		peer := NewPeer(address)
		control, cookie, err := peer.connect(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := control.requestStreams(t.Context(), Params{Time: 1, Streams: 4}); err != nil {
			t.Fatal(err)
		}
		var opening sync.WaitGroup
		var conns [20]net.Conn
		for i := range conns {
			opening.Go(func() {
				if conn, err := net.Dial("tcp", address); err == nil {
					conn.Write(cookie[:])
					conns[i] = conn
				}
			})
		}
		if err := control.awaitStart(t.Context(), Params{}); err != nil {
			t.Fatal(err) // no outcome follows
		}
		control.hangUp()
		control.conn.Close()
		opening.Wait()
		for _, conn := range conns {
			if conn != nil {
				conn.Close()
			}
		}
		r := <-reports
		for len(r.Outcomes) == 0 {
			r = <-reports // surplus stream that arrived after the test
		}
		if n := len(r.Outcomes[0].TCP.Near.Streams); n != 4 {
			t.Errorf("%d streams", n)
		}
		peer.Close()
	}
}

func TestServer_StopsClientsAboveLimits(t *testing.T) {
	for name, c := range map[string]struct {
		server *Server
		want   Code
	}{"rate": {&Server{MaxBps: 1e6}, CodeRate}, "bytes": {&Server{MaxBytes: 1e6}, CodeTimeout}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := NewPeer(serve(t, c.server))
			defer peer.Close()
			control, cookie, err := peer.connect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer control.conn.Close()
			conns, err := open(t.Context(), control, cookie, Params{Time: 30, Streams: 1, Bandwidth: 1e6}, socket.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer closeAll(conns)
			go func() {
				for _, err := conns[0].Write(make([]byte, 1<<16)); err == nil; _, err = conns[0].Write(make([]byte, 1<<16)) {
				}
			}()
			var remote *RemoteError
			if _, err := control.expect(t.Context(), 10*time.Second, ExchangeResults); !errors.As(err, &remote) ||
				remote.Code != c.want {
				t.Errorf("%v; want code %d", err, c.want)
			}
		})
	}
}

func TestServer_RefusesTestsAboveLimits(t *testing.T) {
	for name, c := range map[string]struct {
		server *Server
		params string
		want   Code
	}{
		"types":    {&Server{}, `{"tcp":1}`, CodeParams},
		"duration": {&Server{MaxTime: 5 * time.Second}, `{"tcp":true,"time":6,"parallel":1}`, CodeDuration},
		"endless":  {&Server{}, `{"tcp":true,"time":0,"parallel":1}`, CodeDuration},
		"rate":     {&Server{MaxBps: 1e6}, `{"tcp":true,"time":1,"parallel":2,"bandwidth":600000}`, CodeRate},
		"no rate":  {&Server{MaxBps: 1e6}, `{"tcp":true,"time":1,"parallel":1}`, CodeRate},
		"pacing":   {&Server{MaxBps: 1e6}, `{"tcp":true,"time":1,"parallel":2,"fqrate":600000}`, CodeRate},
		"bytes":    {&Server{MaxBytes: 1e6}, `{"tcp":true,"num":1000001,"parallel":1}`, CodeDuration},
		"streams":  {&Server{MaxStreams: 3}, `{"tcp":true,"time":1,"parallel":2,"bidirectional":true}`, CodeParams},
		"buffers":  {&Server{MaxBuffers: 1e6}, `{"tcp":true,"time":1,"parallel":2,"window":300000}`, CodeBuffer},
	} {
		t.Run(name, func(t *testing.T) {
			conn, err := net.Dial("tcp", serve(t, c.server))
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			cookie := NewCookie()
			conn.Write(cookie[:])
			control := control{conn: conn}
			if _, err := control.expect(t.Context(), time.Second, ParamExchange); err != nil {
				t.Fatal(err)
			}
			conn.Write(frame(c.params))
			var remote *RemoteError
			if _, err := control.expect(t.Context(), time.Second, CreateStreams); !errors.As(err, &remote) ||
				remote.Code != c.want {
				t.Errorf("%v; want code %d", err, c.want)
			}
		})
	}
}

func TestRun_OwnDatagrams(t *testing.T) {
	for name, spec := range map[string]transfer.DatagramSpec{
		"up":          {Direction: transfer.Up, Bps: 8e6, Size: 1000, Time: 100 * time.Millisecond},
		"down":        {Direction: transfer.Down, Bps: 8e6, Size: 1000, Time: 100 * time.Millisecond},
		"two up":      {Direction: transfer.Up, Bps: 8e6, Size: 200, Streams: 2, Time: 100 * time.Millisecond},
		"two down":    {Direction: transfer.Down, Bps: 8e6, Size: 200, Streams: 2, Time: 100 * time.Millisecond},
		"no rate set": {Direction: transfer.Up, Time: 50 * time.Millisecond, Buffer: 1 << 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			peer := NewPeer(serve(t, &Server{UDP: true}))
			defer peer.Close()
			r, err := transfer.RunDatagrams(t.Context(), peer, spec, nil)
			if err != nil {
				t.Fatal(err)
			}
			if !r.Complete || r.Received == 0 || r.Sent < r.Received || r.Bytes == 0 || r.Bps() <= 0 {
				t.Errorf("%+v", r)
			}
			if spec.Bps > 0 && r.Lost > r.Sent/10 {
				t.Errorf("%d of %d lost on loopback", r.Lost, r.Sent)
			}
			if r.Variation == nil || r.Reordered == nil || r.Duplicates == nil {
				t.Errorf("%+v: order and delays are missing", r)
			}
		})
	}
}

func TestRun_OwnDatagramsBothDirections(t *testing.T) {
	for _, streams := range []int{1, 2} {
		peer := NewPeer(serve(t, &Server{UDP: true}))
		defer peer.Close()
		spec := transfer.DatagramSpec{Direction: transfer.Up, Bps: 8e6, Size: 1000, Streams: streams,
			Time: time.Second}
		other := spec
		other.Direction = transfer.Down
		outcomes, err := peer.Run(t.Context(), transfer.UDP(spec, other), nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range outcomes {
			r := o.Datagrams
			if !r.Complete || r.Received == 0 || r.Lost > r.Sent/10 || r.Variation == nil || r.Bps() <= 0 || r.FarCPU == nil {
				t.Errorf("%s: %+v", r.Spec.Direction, r)
			}
		}
		other.Bps *= 2
		var refused *transfer.Unsupported
		if _, err := peer.Run(t.Context(), transfer.UDP(spec, other), nil); !errors.As(err, &refused) {
			t.Errorf("two rates in one test: %v", err)
		}
	}
}
