package peer

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/probe"
)

func TestHostPort(t *testing.T) {
	for text, want := range map[string]string{
		"host": "host:5201", "host:80": "host:80", "192.0.2.1": "192.0.2.1:5201", "2001:db8::1": "[2001:db8::1]:5201",
		"[2001:db8::1]": "[2001:db8::1]:5201", "[fe80::1%eth0]:7": "[fe80::1%eth0]:7", "fe80::1%eth0": "[fe80::1%eth0]:5201",
		"": "", ":5201": "", "host:": "", "host:0": "", "host:65536": "", "host:http": "", "a b": "", "[::1": "",
		"user@host": "",
	} {
		got, err := hostPortOr(text, 5201)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q: %q, %v; want %q", text, got, err, want)
		}
	}
}

func TestOpen_RejectsInvalidPeers(t *testing.T) {
	for text, want := range map[string]string{
		"ssh://": "no host", "ssh://-oProxyCommand=x": "no host", "ssh://u:p@h": "password", "ssh://h/x": "nothing follows",
		"gopher://host": "no kind of peer", "host:99999": "port",
		"ndt7://": "no host", "ndt7://h:0": "port", "ndt7://h?a=%zz": "malformed",
		"iperf2://": "no host", "iperf2://h:0": "port",
		"fullpipe://": "no host", "": "no host",
	} {
		_, err := Open(context.Background(), text, Options{Key: &probe.Key{}})
		var bad *BadPeer
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), want) || bad.Try() == "" {
			t.Errorf("%q: %v; want %q and a hint", text, err, want)
		}
	}
}

func FuzzHostPort(f *testing.F) {
	f.Add("host:80")
	f.Add("[::1]:5201")
	f.Fuzz(func(t *testing.T, text string) {
		if address, err := hostPortOr(text, 5201); err == nil {
			if host, _, err := net.SplitHostPort(address); err != nil || host == "" {
				t.Fatalf("%q became %q: %v", text, address, err)
			}
		}
	})
}
