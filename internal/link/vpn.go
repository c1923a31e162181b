package link

import "fmt"

// VPN is what carries the hosts' packets through a path.
type VPN struct {
	Kind   string // "" for none, or Gateway
	Crypto int64  // bit/s that the gateways encrypt, both directions together
	Depth  int    // packets that wait for it, in each direction
}

// Gateway is a pair of IPsec gateways between hosts that know nothing of it.
const Gateway = "gateway"

const (
	publishedCrypto = 30e6 // bit/s: the devices of the application note (docs/coverage.md, M8)
	gatewayDepth    = 100  // packets; small devices have some hundred buffers
)

// settleVPN fills in what was not stated, and makes room for the tunnel in the MTU.
func (p *Path) settleVPN() error {
	v := &p.VPN
	if v.Kind != Gateway {
		if v.Crypto > 0 {
			return &Error{"crypto", "there are no gateways to encrypt", "vpn=gateway,crypto=30mbit"}
		}
		*v = VPN{}
		return nil
	}
	if v.Crypto == 0 {
		v.Crypto = publishedCrypto
	}
	if v.Depth == 0 {
		v.Depth = gatewayDepth
	}
	for _, c := range []*Config{&p.Up, &p.Down} {
		mtu := c.MTU
		if mtu == 0 {
			mtu = defaultMTU
		}
		c.Tunnelled = true
		if c.MTU = ESPPayload(mtu); c.MTU < leastTunnelled {
			return &Error{"mtu", fmt.Sprintf("%d leaves %d bytes in the tunnel", mtu, c.MTU), "an mtu of 616 or more"}
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

// carried is the size on the line of a packet of so many IP bytes.
func (c *Config) carried(packet int) int {
	if c.Tunnelled {
		return ESPBytes(packet)
	}
	return packet
}
