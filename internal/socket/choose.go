package socket

import (
	"net"
	"net/netip"
)

// Choice sends connections from a host to one of the listeners that share a port.
type Choice struct {
	From  netip.Addr
	Ports []uint16 // only those from these ports, at most MostPorts; none: from all
	Index int      // of the listener, in the order in which they began to listen
}

// MostPorts bounds the ports of one Choice, and with them the program that chooses.
const MostPorts = 128

// ChooseListener attaches choices to the listeners that share l's port (SharePort), in
// place of those before; other hosts go to the first one. It needs no privilege
// (SO_ATTACH_REUSEPORT_CBPF, Linux 4.6).
func ChooseListener(l *net.TCPListener, choices []Choice) error { return chooseListener(l, choices) }

// SetListener changes the receive buffer, the clamp and the MSS that l's next connections start with. Those that are 0
// stay as they are.
func SetListener(l *net.TCPListener, o Options) error { return setListener(l, o) }
