package socket

import (
	"net/netip"
	"testing"
)

// An address is counted as the subscriber behind it.
func TestSubscriber(t *testing.T) {
	for text, want := range map[string]string{
		"192.0.2.7": "192.0.2.7/32", "::ffff:192.0.2.7": "192.0.2.7/32", "2001:db8:1:2:3:4:5:6": "2001:db8:1:2::/64",
		"2001:db8:1:2::9": "2001:db8:1:2::/64", "fe80::1%lo": "fe80::/64",
	} {
		if got := Subscriber(netip.MustParseAddr(text)).String(); got != want {
			t.Errorf("%s counts as %s; want %s", text, got, want)
		}
	}
}
