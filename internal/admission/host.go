// Package admission decides who is served when a server has fewer places than clients. A
// Table holds what clients take, in total and per host, and chooses which entry makes room
// for a newcomer. A Turn gives one client at a time the server for itself. Callers pass the
// time, so that tests choose it.
package admission

import "net/netip"

// Host returns the network under which a client is counted: an IPv4 address by itself, an
// IPv6 address by its /64, which is the least that one subscriber has (RFC 6177).
func Host(a netip.Addr) netip.Prefix {
	a = a.Unmap().WithZone("")
	bits := a.BitLen()
	if a.Is6() {
		bits = 64
	}
	host, _ := a.Prefix(bits)
	return host
}

// Rank is the right of a client, by what it has proven. A client never makes room for one of
// a lower rank.
type Rank int

// The ranks, lowest first.
const (
	Stranger  Rank = iota // has proven nothing
	User                  // has proven a user's password
	KeyHolder             // has proven a key of the server
)
