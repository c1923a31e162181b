package probe

import (
	"net"
	"testing"
	"time"
)

func TestLookupError(t *testing.T) {
	for want, e := range map[string]*net.DNSError{
		"no such host: x": {Name: "x", Err: "no such host", IsNotFound: true},
		"the name server 192.0.2.53:53 does not resolve x: network is unreachable": {Name: "x",
			Server: "192.0.2.53:53", Err: "dial udp 192.0.2.53:53: connect: network is unreachable"},
		"no name server resolves x: server misbehaving": {Name: "x", Err: "server misbehaving"},
	} {
		if got := Simplify(&net.OpError{Op: "dial", Net: "tcp", Err: e}, time.Second); got.Error() != want {
			t.Errorf("%q, not %q", got, want)
		}
	}
}
