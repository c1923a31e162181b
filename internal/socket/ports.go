package socket

import "net/netip"

// ReservePorts returns n ports of this host from which connections of an address's family can be made, by
// Options.LocalPort. On Linux no other program connects from them until release is called.
func ReservePorts(family netip.Addr, n int) (ports []uint16, release func(), err error) {
	return reservePorts(family, n)
}
