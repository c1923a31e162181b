// Package admission decides which clients a busy server serves. A Table limits slots, streams and buffers, in
// total and per host, and chooses the entries to evict. A Turn admits one client at a time. Callers pass the time,
// so that tests control it.
package admission

import "net/netip"

// Host returns the network under which a client is counted: an IPv4 address, or an IPv6 /64, the smallest
// assignment to a subscriber (RFC 6177).
func Host(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	host, _ := a.Prefix(bits)
	return host
}

// Rank is a client's level of authentication. A client is never evicted for one of a lower rank.
type Rank int

// The ranks, lowest first.
const (
	Unauthenticated Rank = iota // a client that proved nothing
	User                        // a client that proved a user's password
	KeyHolder                   // a client that proved a key of the server
)
