package server

import (
	"context"
	"errors"
	"io"
	"net"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// FuzzUnauthenticated checks that the server closes the connection soon after the client's last byte, and never
// treats it as authenticated.
func FuzzUnauthenticated(f *testing.F) {
	cookie := iperf3.NewCookie()
	f.Add([]byte("GET / HTTP/1.1\r\nHost: example\r\n\r\n"))
	f.Add(probe.Marker[:])
	f.Add(append(probe.Marker[:], "\x16\x03\x01\x00\x05\x01\x00\x00\x01\x03"...))
	f.Add(append(cookie[:], "\x00\x00\x00\x1d{\"tcp\":true,\"num\":1,\"len\":1}"...))
	clients := &iperf3.Server{UDP: true, StepTimeout: 100 * time.Millisecond}
	admitted := make(chan Event, 1)
	s, err := New(f.Context(), Config{Address: "127.0.0.1:0", Key: probe.NewKey(), AllowUnauthenticated: true,
		Iperf3: func(ctx context.Context, conn *net.TCPConn, preface probe.Preface, order int64, keyed bool) {
			clients.Handle(ctx, conn, iperf3.Cookie(preface), order, keyed)
		},
		Event: func(e Event) {
			if e.Keyed {
				select {
				case admitted <- e:
				default:
				}
			}
		}})
	if err != nil {
		f.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error)
	go func() { done <- s.Serve(ctx) }()
	f.Cleanup(func() { cancel(); <-done })
	address := net.TCPAddrFromAddrPort(s.Addr())
	f.Fuzz(func(t *testing.T, said []byte) {
		conn, err := net.DialTCP("tcp", nil, address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		conn.SetDeadline(time.Now().Add(10 * time.Second))
		conn.SetLinger(0) // otherwise ports run out
		go func() {
			conn.Write(said)
			conn.CloseWrite()
		}()
		_, err = io.Copy(io.Discard, conn)
		var timeout net.Error
		if errors.As(err, &timeout) && timeout.Timeout() {
			t.Error("the connection is still open")
		}
		select {
		case e := <-admitted:
			t.Errorf("%+v", e)
		default:
		}
	})
}
