package download

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// sharedSpace is the address block of carrier-grade NAT (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// internal reports whether an address is private, link-local or of this host (RFC 1918, 4193, 6598, 3927, 4291).
func internal(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() ||
		sharedSpace.Contains(a)
}

// InternalError reports a server on the public network that leads to an internal address, by a redirect or by DNS: the
// server may use this host to reach addresses that it cannot reach itself.
type InternalError struct {
	Host string
	At   netip.Addr
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("%s leads to %s, an internal address: a public server must not direct requests there", e.Host, e.At)
}

// Try names the way out.
func (e *InternalError) Try() string {
	return "the internal address itself, if it is meant, or the address of a large file on the public network"
}

// guard returns an error for an internal address after the requested server proved to be public, both for redirects and
// for names that resolve to another address.
func (p *Peer) guard(ctx context.Context, address string) error {
	if !p.public.Load() {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return err
	}
	found, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return err
	}
	for _, a := range found {
		if internal(a) {
			return &InternalError{p.from.Host, a.Unmap()}
		}
	}
	return nil
}

// reached checks the address of an open connection like guard, and records whether the first server is public.
func (p *Peer) reached(at netip.Addr) error {
	if p.public.Load() && internal(at) {
		return &InternalError{p.from.Host, at.Unmap()}
	}
	if !internal(at) {
		p.public.Store(true)
	}
	return nil
}
