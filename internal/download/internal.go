package download

import (
	"context"
	"fmt"
	"net"
	"net/netip"
)

// sharedSpace is what carriers give their customers behind one address (RFC 6598).
var sharedSpace = netip.MustParsePrefix("100.64.0.0/10")

// internal says whether an address belongs to a private network, a link or this host
// (RFC 1918, 4193, 6598, 3927, 4291).
func internal(a netip.Addr) bool {
	a = a.Unmap()
	return a.IsPrivate() || a.IsLoopback() || a.IsLinkLocalUnicast() || a.IsUnspecified() || a.IsMulticast() ||
		sharedSpace.Contains(a)
}

// InternalError is a server on the public network that leads to an internal address,
// where it may have no access itself.
type InternalError struct {
	Host string
	At   netip.Addr
}

func (e *InternalError) Error() string {
	return fmt.Sprintf("%s leads to %s, which is internal: what is public does not choose what is fetched there", e.Host,
		e.At)
}

// Try names the way out.
func (e *InternalError) Try() string {
	return "the internal address itself, if it is meant, or the address of a large file on the public network"
}

// guard refuses to connect to an internal address once the server that was asked for has
// turned out to be public, whether a redirect leads there or its name.
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

// reached guards what a name led to after all, and learns what the first server is.
func (p *Peer) reached(at netip.Addr) error {
	if p.public.Load() && internal(at) {
		return &InternalError{p.from.Host, at.Unmap()}
	}
	if !internal(at) {
		p.public.Store(true)
	}
	return nil
}
