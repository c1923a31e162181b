package watch

import (
	"cmp"
	"net/netip"
	"strconv"
)

// Group is the key by which connections are summed where they are too many or too private to list: owner, far network
// and service port.
type Group struct {
	Owner   string       // a unit, else a program; "": not known
	Network netip.Prefix // of the far end: a /24 or a /48
	Port    uint16       // of the service; 0: neither port looks like one
}

// String is "OWNER NETWORK PORT".
func (g Group) String() string {
	port := "-"
	if g.Port > 0 {
		port = strconv.Itoa(int(g.Port))
	}
	return cmp.Or(g.Owner, "unknown") + " " + g.Network.String() + " " + port
}

// groupOf returns the group of a connection: the address is cut to its network, and only the service's port is kept.
func groupOf(c *Connection) Group {
	const ephemeral = 32768 // net.ipv4.ip_local_port_range begins here
	g := Group{Owner: cmp.Or(c.Owner.Unit, c.Owner.Program), Network: networkOf(c.Remote.Addr()),
		Port: min(c.Local.Port(), c.Remote.Port())}
	if g.Port >= ephemeral {
		g.Port = 0
	}
	return g
}

// networkOf returns the /24 or the /48 that an address is in.
func networkOf(a netip.Addr) netip.Prefix {
	bits := 24
	if a.Is6() {
		bits = 48
	}
	network, err := a.Prefix(bits)
	if err != nil {
		return netip.Prefix{}
	}
	return network
}
