package agent

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

// A hub names the addresses to which its agents connect. These limits of every agent keep it from making agents a
// port scanner or a flood.
const (
	orderEvery           = time.Second // accepted orders, in the mean
	orderBurst           = 30
	maxFailedConnections = 2000 // of a day, of runs that failed
)

// connectionsOf returns the maximum number of connections of an order to test: one to each address of the far end, and
// the data connections.
func connectionsOf(o *bus.Order) int {
	return len(o.Peers) + maxTransfers*max(o.Spec.Streams, 1)
}

// network is this host's own addresses and the networks of its interfaces.
type network struct {
	announced  []netip.Addr   // at which other agents reach this host
	interfaces []netip.Prefix // an address and the size of its network
}

// hostNetwork returns the network of this host now.
func hostNetwork(announced []netip.Addr) network {
	n := network{announced: announced}
	addresses, _ := net.InterfaceAddrs()
	for _, a := range addresses {
		if in, ok := a.(*net.IPNet); ok {
			addr, _ := netip.AddrFromSlice(in.IP)
			bits, _ := in.Mask.Size()
			if p := netip.PrefixFrom(addr.Unmap(), bits); p.IsValid() {
				n.interfaces = append(n.interfaces, p)
			}
		}
	}
	return n
}

// isPeer reports whether an address can be another agent's: a unicast address. One that has a meaning on this host or
// link only is one where this host's own address is of that kind.
func (n network) isPeer(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	own := func(kind func(netip.Addr) bool) bool { return slices.ContainsFunc(n.announced, kind) }
	switch {
	case !addr.IsValid(), addr.IsUnspecified(), addr.IsMulticast():
		return false
	case addr.IsLoopback():
		return own(netip.Addr.IsLoopback)
	case addr.IsLinkLocalUnicast():
		return own(netip.Addr.IsLinkLocalUnicast) && !n.isBroadcast(addr)
	case addr.Is4():
		first := addr.As4()[0]
		return first != 0 && first < 240 && !n.isBroadcast(addr) // RFC 1122 section 3.2.1.3, RFC 1112 section 4
	}
	return !n.isBroadcast(addr)
}

// isBroadcast reports whether an address is the broadcast address of a network of this host, or its first address,
// which old systems take for one and which reaches any router in IPv6 (RFC 4291 section 2.6.1).
func (n network) isBroadcast(addr netip.Addr) bool {
	return slices.ContainsFunc(n.interfaces, func(p netip.Prefix) bool {
		if p.Addr().Is4() != addr.Is4() || !p.Masked().Contains(addr) || p.Bits() >= addr.BitLen()-1 {
			return false
		}
		return addr == p.Masked().Addr() || addr.Is4() && addr == lastOf(p)
	})
}

// lastOf returns the last address of an IPv4 network.
func lastOf(p netip.Prefix) netip.Addr {
	bytes := p.Masked().Addr().As4()
	for bit := p.Bits(); bit < 32; bit++ {
		bytes[bit/8] |= 0x80 >> (bit % 8)
	}
	return netip.AddrFrom4(bytes)
}

// isOwn reports whether an address is this host's. Agents that share loopback, in tests, are others.
func (n network) isOwn(addr netip.Addr) bool {
	addr = addr.Unmap().WithZone("")
	if addr.IsLoopback() {
		return false
	}
	return slices.Contains(n.announced, addr) ||
		slices.ContainsFunc(n.interfaces, func(p netip.Prefix) bool { return p.Addr().WithZone("") == addr })
}

// restrictPeers leaves out the far end's addresses that are also this host's, because two hosts may have the same one
// on an inner network. It returns why the rest cannot be another agent's, "" if it can.
func restrictPeers(o *bus.Order, n network) string {
	for _, p := range o.Peers {
		switch {
		case !n.isPeer(p.Addr()):
			return p.Addr().String() + " is no address of another host"
		case p.Port() == 0 || p.Port() != o.Peers[0].Port():
			return "an agent has one port"
		}
	}
	others := slices.DeleteFunc(o.Peers, func(p netip.AddrPort) bool { return n.isOwn(p.Addr()) })
	if len(others) == 0 && o.Role == bus.RoleTest {
		return "the order has no address of another host"
	}
	o.Peers = others
	return ""
}
