package probe_test

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/server"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// answering accepts connections and calls answer for each.
func answering(t *testing.T, answer func(net.Conn)) string {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			answer(conn)
			conn.Close()
		}
	}()
	t.Cleanup(func() { l.Close(); <-done })
	return l.Addr().String()
}

func untilClosed(conn net.Conn) { io.Copy(io.Discard, conn) }

func TestConnect_NamesOtherServers(t *testing.T) {
	t.Parallel()
	says := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			io.ReadFull(conn, make([]byte, probe.PrefaceSize))
			io.WriteString(conn, text)
			untilClosed(conn)
		}
	}
	l, _ := net.Listen("tcp", "127.0.0.1:0")
	refusing := l.Addr().String()
	l.Close()
	for _, tt := range []struct {
		name, address, want, try string
	}{
		{"not there", refusing, "connection refused", "fullpipe serve"},
		{"no such name", "nowhere.invalid:5201", "no such host", "address"},
		{"another key", serve(t, server.Config{Key: probe.NewKey()}), "another key", "--key"},
		{"closes at once", answering(t, func(net.Conn) {}), "closed the connection", "fullpipe serve"},
		{"iperf3", answering(t, says("\x09")), "an iperf3 server", "port"},
		{"a busy iperf3", answering(t, says("\xff")), "an iperf3 server listens", "port"},
		{"busy", answering(t, says("B")), "as many clients", "later"},
		{"ssh", answering(t, says("SSH-2.0-OpenSSH_9.9\r\n")), "an SSH server", "port"},
		{"web", answering(t, says("HTTP/1.1 400 Bad Request\r\n\r\n")), "a web server", "port"},
		{"something", answering(t, says("\x00\x01garbage")), `sent "\x00\x01garbage"`, "port"},
		{"closes within TLS", answering(t, func(conn net.Conn) { io.WriteString(conn, "F") }), "closed the connection",
			"fullpipe serve"},
		{"garbage for TLS", answering(t, says("F"+strings.Repeat("\x16garbage", 100))), "TLS", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			c, err := far(tt.address).Connect(context.Background())
			if err == nil {
				c.Close()
				t.Fatal("connected")
			}
			var e *probe.Error
			if !errors.As(err, &e) || !strings.Contains(err.Error(), tt.address) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v; want %s and %q", err, tt.address, tt.want)
			}
			if e != nil && !strings.Contains(e.Try(), tt.try) {
				t.Errorf("%v: try %q; want %q", err, e.Try(), tt.try)
			}
		})
	}
}

func TestIdentify(t *testing.T) {
	_, err := peer.Open(context.Background(), serve(t, server.Config{Key: key}), peer.Options{})
	if err == nil || !strings.Contains(err.Error(), "no key") {
		t.Error(err)
	}
}
