package agent

import (
	"errors"
	"io"
	"net"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/fleet/agent"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// listen accepts connections on loopback and passes each to serve.
func listen(t *testing.T, serve func(net.Conn)) netip.AddrPort {
	t.Helper()
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				serve(conn)
			}()
		}
	}()
	return l.Addr().(*net.TCPAddr).AddrPort()
}

// TestMeasure_ThirdParty sends an agent to services of third parties. They get 37 bytes, and the hub gets a word of a
// closed list, never what they say.
func TestMeasure_ThirdParty(t *testing.T) {
	const secret = "SECRET-BANNER\x1b[2J"
	got := make(chan int, 10)
	third := func(says string) netip.AddrPort {
		return listen(t, func(conn net.Conn) {
			io.WriteString(conn, says)
			conn.SetReadDeadline(time.Now().Add(500 * time.Millisecond))
			n, _ := io.Copy(io.Discard, conn)
			got <- int(n)
		})
	}
	closed := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	closed.Close()
	for _, c := range []struct {
		name string
		to   netip.AddrPort
		want string
	}{
		{"ssh", third("SSH-2.0-" + secret + "\r\n"), "another service"},
		{"http", third("HTTP/1.1 400 " + secret + "\r\n\r\n"), "another service"},
		{"silent", third(""), "another service"},
		{"binary", third("\x00" + secret), "another service"},
		{"iperf3", third("\x09"), "another service"},
		{"closed", closed.Addr().(*net.TCPAddr).AddrPort(), "refused"},
	} {
		var used agent.Use
		o := bus.Order{Run: "r", Within: 10 * time.Second, Key: probe.NewKey().String(), Peers: []netip.AddrPort{c.to, c.to},
			Spec: bus.Spec{Time: time.Second, Bytes: 1e6}}
		_, err := measure("host", &farend.Losses{})(t.Context(), o, &used)
		var unreachable *agent.UnreachableError
		if !errors.As(err, &unreachable) {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		codes := unreachable.Codes()
		if !strings.Contains(codes, c.want) || strings.Contains(codes, "SECRET") {
			t.Errorf("%s: %q", c.name, codes)
		}
		if used.Connections != 2 || used.Bytes != 0 {
			t.Errorf("%s: used %+v", c.name, used)
		}
		if c.name == "closed" {
			continue
		}
		for range 2 {
			if n := <-got; n != probe.PrefaceSize {
				t.Errorf("%s got %d bytes, want %d", c.name, n, probe.PrefaceSize)
			}
		}
	}
}
