package listener

import (
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/socket"
)

// maxAddresses is the number of printed addresses.
const maxAddresses = 8

// Reachable returns the addresses at which other hosts reach a server that listens at ADDR:PORT: this host's
// interface addresses, the one of the default route first. Host names may not resolve elsewhere, so they are left
// out. Without other addresses it returns a loopback one.
func Reachable(listen string) (all []string) {
	at, err := netip.ParseAddrPort(listen)
	if err != nil {
		host, _, _ := net.SplitHostPort(listen)
		return []string{host}
	}
	addresses := []netip.Addr{at.Addr().Unmap()}
	if at.Addr().IsUnspecified() {
		addresses = slices.DeleteFunc(socket.HostAddresses(),
			func(a netip.Addr) bool { return a.Is6() && at.Addr().Is4() })
	}
	if len(addresses) == 0 {
		addresses = []netip.Addr{netip.AddrFrom4([4]byte{127, 0, 0, 1})}
	}
	for _, a := range addresses[:min(len(addresses), maxAddresses)] {
		all = append(all, a.String())
	}
	return all
}

// URLs returns the URLs of a page at which other hosts reach this server, the most likely first. With TLS they have
// the names of the certificate, if it has any and other hosts reach the address.
func (f *ListenFlags) URLs(at net.Addr, page string) (all []string) {
	_, port, _ := net.SplitHostPort(at.String())
	scheme := "http"
	hosts := Reachable(at.String())
	if f.TLS != nil {
		scheme = "https"
		leaf := f.TLS.Certificates[0].Leaf
		isPattern := func(name string) bool { return strings.Contains(name, "*") }
		at, err := netip.ParseAddrPort(at.String())
		own := err == nil && at.Addr().IsLoopback()
		if names := slices.DeleteFunc(slices.Clone(leaf.DNSNames), isPattern); len(names) > 0 && !own {
			hosts = names
		}
	}
	for _, host := range hosts {
		all = append(all, fmt.Sprintf("%s://%s%s", scheme, net.JoinHostPort(host, port), page))
	}
	return all
}
