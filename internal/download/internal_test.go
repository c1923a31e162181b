package download

import (
	"errors"
	"net/netip"
	"net/url"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func TestInternalAddresses(t *testing.T) {
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

// What is public does not lead to what is internal, neither by a redirect nor by a name
// that changes; what was asked for as internal goes wherever it leads.
func TestPublicServersDoNotLeadInside(t *testing.T) {
	s := newSite(t, false)
	p := open(t, s, "/moved", Config{}) // an internal one that leads to an internal one
	if p.public.Load() {
		t.Error("a loopback address counts as public")
	}
	p.public.Store(true) // now as if it had been met on the public network
	before := s.requests.Load()
	inside, err := url.Parse(s.URL + "/object")
	if err != nil {
		t.Fatal(err)
	}
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
		t.Errorf("%d requests were sent inside", n)
	}
	if err := p.reached(netip.MustParseAddr("192.168.1.1")); !errors.As(err, &refused) {
		t.Errorf("a name that is answered differently the second time: %v", err)
	}
}
