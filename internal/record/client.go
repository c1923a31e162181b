package record

import (
	"net/netip"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/admission"
)

// BrowserScheme begins the name of the far end in results of tests that a client of this host's server started.
const BrowserScheme = "browser://"

// Client returns the address under which the results of one client count together: an IPv4 address or an IPv6 /64.
// It returns "" where far does not name a client of a server.
func Client(far string) string {
	text, ok := strings.CutPrefix(far, BrowserScheme)
	if !ok {
		return ""
	}
	a, err := netip.ParseAddr(text)
	if err != nil {
		return "unknown"
	}
	return ClientAddress(a)
}

// ClientAddress returns an IPv4 address as it is and the /64 prefix of an IPv6 address.
func ClientAddress(a netip.Addr) string {
	host := admission.Host(a)
	if host.IsSingleIP() {
		return host.Addr().String()
	}
	return host.String()
}
