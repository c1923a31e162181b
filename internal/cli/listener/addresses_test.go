package listener

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/netip"
	"strings"
	"syscall"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestReachable_UsableElsewhere checks that no printed address is unspecified.
func TestReachable_UsableElsewhere(t *testing.T) {
	for _, listen := range []string{"[::]:8080", "0.0.0.0:8080", "127.0.0.1:8080", "[2001:db8::1]:8080"} {
		all := Reachable(listen)
		if len(all) == 0 {
			t.Fatalf("%s: no address", listen)
		}
		for _, text := range all {
			at, err := netip.ParseAddr(text)
			if err != nil || at.IsUnspecified() || strings.HasPrefix(listen, "0.0.0.0") && !at.Is4() {
				t.Errorf("%s: %s, %v", listen, text, err)
			}
		}
	}
}

func TestListenFlags_URLs(t *testing.T) {
	named := &tls.Config{Certificates: []tls.Certificate{{Leaf: &x509.Certificate{
		DNSNames: []string{"*.example.net", "speed.example.net"}}}}}
	for _, c := range []struct {
		listen string
		tls    *tls.Config
		want   string
	}{
		{"192.0.2.1:80", nil, "http://192.0.2.1:80/test"}, {"[2001:db8::1]:80", nil, "http://[2001:db8::1]:80/test"},
		{"[::]:8443", named, "https://speed.example.net:8443/test"}, {"127.0.0.1:8443", named, "https://127.0.0.1:8443/test"},
	} {
		at := net.TCPAddrFromAddrPort(netip.MustParseAddrPort(c.listen))
		if got := (&ListenFlags{TLS: c.tls}).URLs(at, "/test"); len(got) != 1 || got[0] != c.want {
			t.Errorf("%s: %q, want %s", c.listen, got, c.want)
		}
	}
}

// TestListen_PortInUse checks the status and code of a port in use, which are the same for all servers.
func TestListen_PortInUse(t *testing.T) {
	l := must.Get(net.Listen("tcp", "127.0.0.1:0"))(t)
	defer l.Close()
	_, _, web := (&ListenFlags{Address: l.Addr().String(), Name: "--web"}).Open(t.Context())
	for flag, err := range map[string]error{"--web": web,
		"--listen": Failure("--listen", "127.0.0.1:5201", &net.OpError{Op: "listen", Err: syscall.EADDRINUSE})} {
		failure, status := exit.Describe(t.Context(), err)
		if status != exit.Failed || failure.Code != "address-in-use" || !strings.Contains(failure.Try, flag) {
			t.Errorf("%s: status %d, %+v", flag, status, failure)
		}
		if !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("%v", err)
		}
	}
}
