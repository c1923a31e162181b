package socket

import "net/netip"

// ForgetPath makes the kernel forget what it remembers of earlier connections to a host
// (round trip, reordering and, on older systems, the slow start threshold). It needs
// CAP_NET_ADMIN in the first user namespace.
func ForgetPath(to netip.Addr) error { return forgetPath(to) }

// RemembersPaths says whether new connections begin with the slow start threshold at
// which earlier ones to the same host ended, which makes a measurement depend on the
// one before it.
func RemembersPaths() bool { return remembersPaths() }
