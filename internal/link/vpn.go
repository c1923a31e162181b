package link

import "fmt"

// VPN is what carries the hosts' packets through a path.
type VPN struct {
	Kind   string // "" for none, Gateway or WireGuard
	Crypto int64  // bit/s that gateways encrypt, both directions together
	Depth  int    // packets that wait for it, in each direction
	MTU    int    // of WireGuard's tunnel
}

const (
	// Gateway is a pair of IPsec gateways between hosts that know nothing of it.
	Gateway = "gateway"
	// WireGuard is a tunnel that the hosts themselves make, in software. The path is what
	// it runs over: nothing of it is modelled here.
	WireGuard = "wireguard"
)

const (
	publishedCrypto = 30e6 // bit/s: the devices of the application note (docs/coverage.md, M8)
	gatewayDepth    = 100  // packets; small devices have some hundred buffers
)

// settleVPN fills in what was not stated.
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
			v.MTU = max(wireGuardLeast, p.mtu()-wireGuardLess)
		}
	default:
		*v = VPN{}
	}
	return nil
}

// mtu is the smaller one of both directions.
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
		if left := ESPPayload(c.MTU); left < leastTunnelled {
			return &Error{"mtu", fmt.Sprintf("%d leaves %d bytes in the tunnel", c.MTU, left), "an mtu of 616 or more"}
		}
	}
	return nil
}

// leastTunnelled is the smallest MTU of a path that Linux follows (net.ipv4.route.min_pmtu).
const leastTunnelled = 552

// IPsec's ESP in tunnel mode with AES-CBC and HMAC-SHA1-96 (RFC 4303 section 2, RFC 3602,
// RFC 2404) over IPv4: outer header, SPI and sequence number, IV; then the packet, padded
// to the cipher's blocks together with two bytes of trailer; then the check value.
const (
	espBlock   = 16
	espTrailer = 2
	espAround  = 20 + 8 + 16 + 12
)

// ESPBytes is the size of the IP packet that carries one of so many IP bytes.
func ESPBytes(packet int) int {
	return espAround + (packet+espTrailer+espBlock-1)/espBlock*espBlock
}

// ESPPayload is the largest packet that a tunnel carries on a path of that MTU: 1438 on 1500.
func ESPPayload(mtu int) int { return (mtu-espAround)/espBlock*espBlock - espTrailer }

// Largest is the largest packet (IP bytes) that gets through the lane; 0 lets all pass.
// Those that go Beside a tunnel have the whole line.
func (c *Config) Largest(beside bool) int {
	if c.Tunnelled && !beside {
		return ESPPayload(c.MTU)
	}
	return c.MTU
}

// carried is the size on the line of a packet.
func (c *Config) carried(s segment) int {
	if c.Tunnelled && s.fate&beside == 0 {
		return ESPBytes(int(s.size))
	}
	return int(s.size)
}

// WireGuard's data messages over IPv4: IP and UDP headers, 16 bytes of its own, the packet
// padded to blocks of 16 but not beyond the tunnel's MTU, and a tag of 16.
const (
	wireGuardBlock  = 16
	wireGuardAround = 20 + 8 + 16 + 16
	// wireGuardLess is what wg-quick leaves of a path's MTU: the same over IPv6.
	wireGuardLess    = wireGuardAround + 20
	wireGuardLeast   = 1280 // IPv6 needs as much (RFC 8200, section 5)
	wireGuardLargest = 65535 - wireGuardLess
)

// WireGuardBytes is the size of the IP packet that carries one of so many IP bytes through
// a tunnel of that MTU: 1480 for 1420.
func WireGuardBytes(packet, mtu int) int {
	padded := (packet + wireGuardBlock - 1) / wireGuardBlock * wireGuardBlock
	return wireGuardAround + max(packet, min(padded, mtu))
}
