package server

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// open runs a server that also admits iperf3 clients, until the test ends.
func open(t *testing.T) (address string, key probe.Key) {
	t.Helper()
	clients := &iperf3.Server{UDP: true, StepTimeout: 300 * time.Millisecond}
	key = probe.NewKey()
	s, err := New(t.Context(), Config{Address: "127.0.0.1:0", Key: key, AllowUnauthenticated: true, ShareWindows: true,
		Iperf3: func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
			clients.Handle(ctx, conn, iperf3.Cookie(preface), order, keyed)
		}})
	if err != nil {
		t.Fatal(err)
	}
	clients.Window = s.Window
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { s.Serve(ctx) })
	flows, err := socket.ListenFlows(ctx, s.Addr().String())
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	running.Go(func() { clients.ServeDatagrams(flows) })
	t.Cleanup(func() { cancel(); flows.Close(); running.Wait() })
	return s.Addr().String(), key
}

// Unauthenticated clients: slow, silent, half open or invalid.
func hostilities() []func(net.Conn) {
	cookie := func() []byte { c := iperf3.NewCookie(); return c[:] }
	frame := func(text string) []byte {
		return append(binary.BigEndian.AppendUint32(nil, uint32(len(text))), text...)
	}
	noise := make([]byte, 4096)
	rand.Read(noise)
	return []func(net.Conn){
		func(c net.Conn) {}, // silent
		func(c net.Conn) { c.Write(noise[:10]) },
		func(c net.Conn) { c.Write(noise) },
		func(c net.Conn) { fmt.Fprint(c, "GET / HTTP/1.1\r\nHost: example\r\n\r\n") },
		func(c net.Conn) { c.Write(probe.Marker[:]) },
		func(c net.Conn) { c.Write(append(probe.Marker[:], noise...)) },
		func(c net.Conn) { c.Write(append(cookie(), 0xff, 0xff, 0xff, 0xff)) },
		func(c net.Conn) { c.Write(append(cookie(), frame(`{"tcp":1}`)...)) },
		func(c net.Conn) { c.Write(append(cookie(), frame(`{"tcp":true,"time":10,"parallel":128}`)...)) },
		func(c net.Conn) { c.Write(append(cookie(), frame(`{"udp":true,"time":10,"parallel":128}`)...)) },
		func(c net.Conn) { c.Write(append(cookie(), frame(`{"tcp":true,"time":10,"window":4096}`)...)) },
		func(c net.Conn) { c.(*net.TCPConn).SetLinger(0) }, // reset at once
	}
}

// A running test and a new one succeed during a thousand unauthenticated connections, and no resources leak.
func TestServe_SurvivesUnauthenticatedClients(t *testing.T) {
	address, key := open(t)
	far := must.Get(probe.Connect(t.Context(), address, key))(t)
	defer far.Close()
	spec := transfer.Spec{Direction: transfer.Up, Bytes: 1 << 20, Program: transfer.Program{WriteBps: 8e6}}
	spec.Bytes = 1 << 20 // about 1 s at this rate

	before := runtime.NumGoroutine()
	var coming sync.WaitGroup
	over := make(chan struct{})
	attacks := hostilities()
	for worker := range 20 {
		coming.Go(func() {
			for i := range 50 {
				conn, err := net.Dial("tcp", address)
				if err != nil {
					continue
				}
				attacks[(worker+i)%len(attacks)](conn)
				if i%3 == 0 {
					conn.Close()
					continue
				}
				coming.Go(func() { // stays until the end
					<-over
					conn.Close()
				})
			}
		})
	}
	result, err := transfer.Run(t.Context(), far, spec, nil)
	if err != nil {
		t.Errorf("the running test: %v", err)
	} else if span, ok := result.Received(); !ok || span.Bytes != spec.Bytes {
		t.Errorf("the running test moved %d bytes of %d", span.Bytes, spec.Bytes)
	}
	second, err := probe.Connect(t.Context(), address, key)
	if err != nil {
		t.Errorf("a client that comes meanwhile: %v", err)
	} else {
		second.Close()
	}
	close(over)
	coming.Wait()
	for deadline := time.Now().Add(20 * time.Second); runtime.NumGoroutine() > before+5; {
		if time.Now().After(deadline) {
			t.Fatalf("%d goroutines, %d before", runtime.NumGoroutine(), before)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// The server replies by UDP only to hosts whose test waits for it, with at most the received bytes. It cannot
// amplify traffic with forged source addresses.
func TestServe_SendsNoUDPAmplification(t *testing.T) {
	address, _ := open(t)
	datagrams := []string{"9876", "", "6789", "\x15\xCD\x5B\x07", "a long datagram that wants an answer"}
	// greet sends all hellos from a host and returns the size of the replies.
	greet := func(from string) (bytes int) {
		dialer := net.Dialer{LocalAddr: &net.UDPAddr{IP: net.ParseIP(from)}}
		conn := must.Get(dialer.Dial("udp", address))(t)
		defer conn.Close()
		for _, datagram := range datagrams {
			conn.Write([]byte(datagram))
		}
		conn.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
		for buffer := make([]byte, 100); ; {
			n, err := conn.Read(buffer)
			bytes += n
			if err != nil {
				return bytes
			}
		}
	}
	if n := greet("127.0.0.1"); n > 0 {
		t.Errorf("%d bytes came back to somebody who has no test", n)
	}
	// 127.0.0.1 has a test that waits for one stream; 127.0.0.2 has none.
	control := must.Get(net.Dial("tcp", address))(t)
	defer control.Close()
	cookie, params := iperf3.NewCookie(), `{"udp":true,"time":1,"parallel":1,"reverse":true}`
	control.Write(append(binary.BigEndian.AppendUint32(cookie[:], uint32(len(params))), params...))
	for _, want := range []iperf3.State{iperf3.ParamExchange, iperf3.CreateStreams} {
		if s, err := iperf3.ReadState(control); s != want {
			t.Fatal(s, err)
		}
	}
	if n := greet("127.0.0.2"); n > 0 {
		t.Errorf("%d bytes came back to a host whose test it is not", n)
	}
}

// Clients that send the marker without a key take no slot, however often they return.
func TestServe_ClientsWithoutKeyTakeNoSlot(t *testing.T) {
	key := probe.NewKey()
	var known atomic.Int64
	s, err := New(t.Context(), Config{Address: "127.0.0.1:0", Key: key, Clients: 2, Event: func(e Event) {
		if e.Kind == "client" {
			known.Add(1)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	served := make(chan error)
	go func() { served <- s.Serve(ctx) }()
	t.Cleanup(func() { cancel(); <-served })
	var idle []net.Conn
	defer func() {
		for _, conn := range idle {
			conn.Close()
		}
	}()
	unauthenticated := func(then []byte) {
		conn := must.Get(net.Dial("tcp", s.Addr().String()))(t)
		idle = append(idle, conn)
		conn.Write(append(probe.Marker[:], then...))
		conn.SetReadDeadline(time.Now().Add(5 * time.Second))
		if answer := make([]byte, 1); then == nil {
			if _, err := io.ReadFull(conn, answer); err != nil || answer[0] != probe.AnswerFullpipe {
				t.Fatalf("an unauthenticated client got %q, %v", answer, err)
			}
		}
	}
	clientHello := []byte("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03") // of an endless ClientHello
	for range 40 {
		unauthenticated(nil)
		unauthenticated(clientHello)
	}
	var clients []*probe.Client
	for n := range 2 {
		client, err := probe.Connect(t.Context(), s.Addr().String(), key)
		if err != nil {
			t.Fatalf("client %d among 80 unauthenticated ones: %v", n+1, err)
		}
		defer client.Close()
		clients = append(clients, client)
	}
	for _, client := range clients {
		if _, err := transfer.Run(t.Context(), client, transfer.Spec{Direction: transfer.Up, Bytes: 1000}, nil); err != nil {
			t.Error(err)
		}
	}
	if _, err := probe.Connect(t.Context(), s.Addr().String(), key); err == nil {
		t.Error("a third client was admitted where two are")
	}
	if n := known.Load(); n != 2 {
		t.Errorf("the log has %d clients", n)
	}
}
