package link

import "fmt"

// VPN is the VPN of a path.
type VPN struct {
	Kind   string // "" for none, Gateway or WireGuard
	Crypto int64  // bit/s that gateways encrypt, both directions together
	Depth  int    // waiting packets, in each direction
	MTU    int    // of the WireGuard tunnel
}

const (
	// Gateway is a pair of IPsec gateways that the hosts do not know.
	Gateway = "gateway"
	// WireGuard is a software tunnel between the hosts. The path carries it and does not model it.
	WireGuard = "wireguard"
)

const (
	publishedCrypto = 30e6 // bit/s: the devices of the application note (docs/coverage.md, M8)
	gatewayDepth    = 100  // packets; small devices have some hundred buffers
)

// settleVPN sets the defaults.
func (p *Path) settleVPN() error {
	v := &p.VPN
	if v.Kind != Gateway && v.Crypto > 0 {
		return &Error{"crypto", "there are no gateways to encrypt", "vpn=gateway,crypto=30mbit"}
	}
	switch v.Kind {
	case Gateway:
		return p.settleGateways()
	case WireGuard:
		if v.MTU == 0 {
			v.MTU = max(minWireGuardMTU, p.mtu()-wgQuickOverhead)
		}
	default:
		*v = VPN{}
	}
	return nil
}

// mtu returns the smaller MTU of the two directions.
func (p *Path) mtu() int {
	mtu := defaultMTU
	for i, c := range []*Config{&p.Up, &p.Down} {
		if c.MTU > 0 && (i == 0 || c.MTU < mtu) {
			mtu = c.MTU
		}
	}
	return mtu
}

func (p *Path) settleGateways() error {
	if p.VPN.Crypto == 0 {
		p.VPN.Crypto = publishedCrypto
	}
	if p.VPN.Depth == 0 {
		p.VPN.Depth = gatewayDepth
	}
	for _, c := range []*Config{&p.Up, &p.Down} {
		if c.MTU == 0 {
			c.MTU = defaultMTU
		}
		c.Tunnelled = true
		if left := ESPPayload(c.MTU); left < minTunnelMTU {
			return &Error{"mtu", fmt.Sprintf("%d leaves %d bytes in the tunnel", c.MTU, left), "an mtu of 616 or more"}
		}
	}
	return nil
}

// minTunnelMTU is the smallest path MTU that Linux follows (net.ipv4.route.min_pmtu).
const minTunnelMTU = 552

// ESP in tunnel mode with AES-CBC and HMAC-SHA1-96 over IPv4 (RFC 4303 section 2, RFC 3602, RFC 2404): outer
// header, SPI, sequence number and IV; packet and 2-byte trailer, padded to cipher blocks; check value.
const (
	espBlock   = 16
	espTrailer = 2
	espAround  = 20 + 8 + 16 + 12
)

// ESPBytes returns the size of the IP packet that carries a packet of the given size.
func ESPBytes(packet int) int {
	return espAround + (packet+espTrailer+espBlock-1)/espBlock*espBlock
}

// ESPPayload returns the largest packet that a tunnel carries on a path with this MTU: 1438 on 1500.
func ESPPayload(mtu int) int { return (mtu-espAround)/espBlock*espBlock - espTrailer }

// Largest returns the largest IP packet in bytes that the lane accepts; 0 is no limit. A packet outside the tunnel
// has no tunnel overhead.
func (c *Config) Largest(outsideTunnel bool) int {
	if c.Tunnelled && !outsideTunnel {
		return ESPPayload(c.MTU)
	}
	return c.MTU
}

// carried returns the size of a packet on the line.
func (c *Config) carried(s segment) int {
	if c.Tunnelled && s.fate&outside == 0 {
		return ESPBytes(int(s.size))
	}
	return int(s.size)
}

// WireGuard data messages over IPv4: IP and UDP headers, 16-byte header, the packet padded to 16 bytes within the
// tunnel's MTU, 16-byte tag.
const (
	wireGuardBlock  = 16
	wireGuardAround = 20 + 8 + 16 + 16
	// wgQuickOverhead is the overhead that wg-quick subtracts from the path MTU: over IPv6.
	wgQuickOverhead  = wireGuardAround + 20
	minWireGuardMTU  = 1280 // the least MTU of IPv6 (RFC 8200 section 5)
	wireGuardLargest = 65535 - wgQuickOverhead
)

// WireGuardBytes returns the size of the IP packet that carries a packet through a tunnel with this MTU: 1480 for
// 1420.
func WireGuardBytes(packet, mtu int) int {
	padded := (packet + wireGuardBlock - 1) / wireGuardBlock * wireGuardBlock
	return wireGuardAround + max(packet, min(padded, mtu))
}
