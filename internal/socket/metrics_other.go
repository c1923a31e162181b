//go:build !linux

package socket

import "net/netip"

func forgetPath(netip.Addr) error { return notSupported("forgetting what earlier connections learned") }

// FreeBSD keeps such a cache too (net.inet.tcp.hostcache), out of this program's sight.
func remembersPaths() bool { return false }
