package download

import (
	"errors"
	"net/netip"
	"net/url"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestInternal(t *testing.T) {
	for text, want := range map[string]bool{
		"127.0.0.1": true, "::1": true, "10.1.2.3": true, "172.31.0.1": true, "192.168.0.1": true, "169.254.169.254": true,
		"100.64.0.1": true, "fe80::1": true, "fd00::1": true, "0.0.0.0": true, "::": true, "::ffff:10.0.0.1": true,
		"224.0.0.1": true,
		"192.0.2.1": false, "100.128.0.1": false, "2001:db8::1": false, "172.32.0.1": false,
	} {
		if got := internal(netip.MustParseAddr(text)); got != want {
			t.Errorf("%s: internal %v", text, got)
		}
	}
}

// TestRun_PublicServerRedirectsToInternal checks that a public server can lead to an internal address neither by a
// redirect nor by DNS. An internal server may lead anywhere.
func TestRun_PublicServerRedirectsToInternal(t *testing.T) {
	s := newSite(t, false)
	p := open(t, s, "/moved", Config{}) // an internal server redirects to an internal one
	if p.public.Load() {
		t.Error("a loopback address counts as public")
	}
	p.public.Store(true) // as if the first connection was to a public address
	before := s.requests.Load()
	inside := must.Get(url.Parse(s.URL + "/object"))(t)
	var refused *InternalError
	if _, err := p.inquire(t.Context(), inside); !errors.As(err, &refused) {
		t.Errorf("a redirect: %v", err)
	}
	refused = nil
	if _, err := transfer.Run(t.Context(), p, transfer.Spec{Direction: transfer.Down, Bytes: 1000}, nil); !errors.As(err,
		&refused) {
		t.Errorf("a name that changed: %v", err)
	}
	if n := s.requests.Load() - before; n > 0 {
		t.Errorf("%d requests reached the internal server", n)
	}
	if err := p.reached(netip.MustParseAddr("192.168.1.1")); !errors.As(err, &refused) {
		t.Errorf("a name that resolves to another address: %v", err)
	}
}
