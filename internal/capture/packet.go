// Package capture reads captures and interfaces and finds the TCP segments in them:
// pcap and pcapng, compressed or not, through VLANs, PPPoE, MPLS and the usual tunnels.
//
// Files come from unknown sources. Every length is bounded by the content of the file; a file that is cut or corrupt
// gives its readable part and a Damage that says where and why reading stopped.
package capture

import "fmt"

// Packet is one captured packet.
type Packet struct {
	At        int64  // nanoseconds since 1970
	Data      []byte // captured bytes; valid until the next call of Next
	Length    int    // on the wire, in bytes
	Link      LinkType
	Interface uint16

	headers headers // Decode's, here so that it need not allocate them
}

// LinkType is a value of the tcpdump registry of link-layer header types.
type LinkType uint16

const (
	linkNull      LinkType = 0
	linkEthernet  LinkType = 1
	linkSLIP      LinkType = 8
	linkPPP       LinkType = 9
	linkFDDI      LinkType = 10
	linkRawBSD    LinkType = 12
	linkRawOpen   LinkType = 14
	linkPPPHDLC   LinkType = 50
	linkPPPoE     LinkType = 51
	linkATM       LinkType = 100 // RFC 2684, with LLC
	linkRaw       LinkType = 101
	linkCiscoHDLC LinkType = 104
	linkWireless  LinkType = 105
	linkLoop      LinkType = 108
	linkLinuxSLL  LinkType = 113
	linkPrism     LinkType = 119
	linkRadiotap  LinkType = 127
	linkAVS       LinkType = 163
	linkJuniper   LinkType = 178 // Ethernet; the next ones are PPP and Cisco's HDLC
	linkJunPPP    LinkType = 179
	linkJunCHDLC  LinkType = 181
	linkPPI       LinkType = 192
	linkERF       LinkType = 197
	linkMPLS      LinkType = 219
	linkIPv4      LinkType = 228
	linkIPv6      LinkType = 229
	linkNFLOG     LinkType = 239
	linkIPoIB     LinkType = 242
	linkLinuxSLL2 LinkType = 276
)

// Damage says where and why a file could not be read to its end.
type Damage struct {
	File   string
	Offset int64 // in the uncompressed file
	Why    string
	Err    error
}

func (d *Damage) Error() string {
	text := fmt.Sprintf("%s: stopped at byte %d: %s", d.File, d.Offset, d.Why)
	if d.Err != nil {
		text += ": " + d.Err.Error()
	}
	return text
}

func (d *Damage) Unwrap() error { return d.Err }
