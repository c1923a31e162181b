package model

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// Layer is the overhead of one tunnel: bytes around a packet, and padding of packet and trailer to blocks.
type Layer struct {
	Name    string
	Around  int // outer headers, initialization vector and check value, bytes
	Trailer int // bytes padded with the packet
	Block   int // 0 or 1: no padding
	// Bounded means that padding never makes a packet larger than the tunnel's MTU, as in WireGuard.
	Bounded bool
}

// Tunnel is a list of nested layers, outermost first.
type Tunnel []Layer

const (
	ipv4, ipv6, udp, tcp = 20, 40, 8, 20
	moreIPv6             = ipv6 - ipv4
	esp                  = 8 // SPI and sequence number, RFC 4303 section 2
	espTrailer           = 2 // pad length and next header
	leastPacket          = 576
)

// carry returns the size of the layer's packet around a packet.
func (l Layer) carry(packet, mtu int) int {
	inner := packet + l.Trailer
	if l.Block > 1 {
		padded := (inner + l.Block - 1) / l.Block * l.Block
		if l.Bounded {
			padded = max(inner, min(padded, mtu))
		}
		inner = padded
	}
	return l.Around + inner
}

// payload returns the largest packet that fits in the layer's packet of mtu bytes.
func (l Layer) payload(mtu int) int {
	inner := mtu - l.Around
	if l.Block > 1 && !l.Bounded {
		inner = inner / l.Block * l.Block
	}
	return inner - l.Trailer
}

// Carry returns the size on the path of a tunnelled packet, both in IP bytes.
func (t Tunnel) Carry(packet, mtu int) int {
	mtus := make([]int, len(t))
	for i, l := range t {
		mtu = l.payload(mtu)
		mtus[i] = mtu
	}
	for i, l := range slices.Backward(t) {
		packet = l.carry(packet, mtus[i])
	}
	return packet
}

// MTU returns the largest packet that the tunnel carries on a path of that MTU.
func (t Tunnel) MTU(path int) int {
	for _, l := range t {
		path = l.payload(path)
	}
	return path
}

// WorstPadding returns the largest padding of any packet in the tunnel on a path of that MTU.
func (t Tunnel) WorstPadding(path int) (most int) {
	least := 0
	for _, l := range t {
		least += l.Around + l.Trailer
	}
	for packet := 1; packet <= t.MTU(path); packet++ {
		most = max(most, t.Carry(packet, path)-packet-least)
	}
	return most
}

func (t Tunnel) String() string {
	names := make([]string, len(t))
	for i, l := range t {
		names[i] = l.Name
	}
	return strings.Join(names, ",")
}

// TunnelNames returns the names that ParseTunnel accepts.
func TunnelNames() []string {
	return []string{"ipsec:aes256-cbc-sha1", "ipsec:aes256-gcm", "ipsec:3des-sha1", "wireguard", "openvpn",
		"openvpn:aes256-cbc-sha1", "gre", "ipip", "vxlan", "geneve", "pppoe",
		"custom:header=28,iv=8,block=4,trailer=2,tag=16"}
}

// LeastIPv6MTU is the smallest MTU in bytes that a link must have for IPv6 (RFC 8200 section 5).
const LeastIPv6MTU = 1280

// ParseTunnel parses layers, outermost first, each followed by its options: "pppoe,ipsec:aes256-gcm,natt" or
// "wireguard,ipv6". An error lists the accepted values.
func ParseTunnel(text string) (Tunnel, error) {
	var t Tunnel
	for word := range strings.SplitSeq(strings.ToLower(strings.TrimSpace(text)), ",") {
		word = strings.TrimSpace(word)
		if len(t) > 0 {
			done, err := t[len(t)-1].option(word)
			if err != nil {
				return nil, err
			}
			if done {
				t[len(t)-1].Name += "," + word
				continue
			}
		}
		l, err := parseLayer(word)
		if err != nil {
			return nil, err
		}
		t = append(t, l)
	}
	if left := t.MTU(1500); left < leastPacket {
		return nil, fmt.Errorf("%s leaves %d of 1500 bytes", t, left)
	}
	return t, nil
}

// option parses an option of the layer before it.
func (l *Layer) option(word string) (bool, error) {
	kind, _, _ := strings.Cut(l.Name, ":")
	kind, _, _ = strings.Cut(kind, ",")
	key, value, assigned := strings.Cut(word, "=")
	switch {
	case assigned && kind == "custom":
		return true, l.set(key, value)
	case word == "natt" && kind == "ipsec": // RFC 3948
		l.Around += udp
	case word == "ipv6" && kind != "pppoe" && kind != "custom":
		l.Around += moreIPv6
	case word == "tcp" && kind == "openvpn": // a length of 2 bytes, and timestamps
		l.Around += tcp + TimestampBytes + 2 - udp
	case word == "key" && kind == "gre": // RFC 2890
		l.Around += 4
	default:
		return false, nil
	}
	return true, nil
}

func (l *Layer) set(key, value string) error {
	n, err := strconv.Atoi(value)
	if err != nil || n < 0 || n > 512 {
		return fmt.Errorf("%s=%q is no number of bytes from 0 to 512", key, value)
	}
	switch key {
	case "header", "iv", "tag":
		l.Around += n
	case "block":
		l.Block = n
	case "trailer":
		l.Trailer = n
	default:
		return fmt.Errorf("%q is neither header, iv, block, trailer nor tag", key)
	}
	return nil
}

func parseLayer(word string) (l Layer, err error) {
	kind, suite, _ := strings.Cut(word, ":")
	l.Name = word
	switch {
	case kind == "custom" && suite != "":
		key, value, _ := strings.Cut(suite, "=")
		return l, l.set(key, value)
	case kind == "ipsec":
		l.Around = ipv4 + esp
		l.Trailer = espTrailer
		return l, l.cipher(suite, 4) // RFC 4303 section 2.4: aligned to 4 bytes at least
	case kind == "openvpn" && (suite == "" || strings.HasSuffix(suite, "-gcm")): // opcode and peer, packet number, tag
		l.Around = ipv4 + udp + 4 + 4 + 16
		return l, nil
	case kind == "openvpn": // opcode and peer; packet number within, at least one byte of padding
		l.Around = ipv4 + udp + 4
		l.Trailer = 4 + 1
		if err := l.cipher(suite, 1); err != nil {
			return l, err
		}
		hash := suite[strings.LastIndexByte(suite, '-')+1:]
		l.Around += map[string]int{"sha1": 20 - 12, "sha256": 32 - 16, "sha512": 64 - 32}[hash] // whole, not cut as ESP's
		return l, nil
	}
	known, ok := map[string]Layer{
		"wireguard": {Around: ipv4 + udp + 16 + 16, Block: 16, Bounded: true}, // type, receiver, counter; tag
		"gre":       {Around: ipv4 + 4},                                       // RFC 2784
		"ipip":      {Around: ipv4},                                           // RFC 2003
		"vxlan":     {Around: ipv4 + udp + 8 + 14},                            // RFC 7348, with the inner Ethernet header
		"geneve":    {Around: ipv4 + udp + 8 + 14},                            // RFC 8926, without options
		"pppoe":     {Around: 8},                                              // RFC 2516
	}[word]
	if !ok {
		return l, fmt.Errorf("%q is no tunnel", word)
	}
	known.Name = word
	return known, nil
}

// cipher adds the overhead of a suite: aes256-cbc-sha1, aes128-gcm, 3des-sha256.
func (l *Layer) cipher(suite string, align int) error {
	parts := strings.Split(suite, "-")
	tags := map[string]int{"sha1": 12, "md5": 12, "sha256": 16, "sha384": 24, "sha512": 32, "gcm": 16, "poly1305": 16}
	tag, known := tags[parts[len(parts)-1]]
	switch {
	case !known:
		return fmt.Errorf("%q is no suite: aes256-cbc-sha1, aes256-gcm, chacha20-poly1305 or 3des-sha1", suite)
	case strings.HasPrefix(suite, "aes") && len(parts) == 3 && parts[1] == "cbc": // RFC 3602; RFC 2404, 4868
		l.Around = l.Around + 16 + tag
		l.Block = 16
	case strings.HasPrefix(suite, "3des"): // RFC 2451
		l.Around = l.Around + 8 + tag
		l.Block = 8
	case strings.HasPrefix(suite, "aes") && parts[len(parts)-1] == "gcm", suite == "chacha20-poly1305": // RFC 4106, 7634
		l.Around = l.Around + 8 + tag
		l.Block = align
	default:
		return fmt.Errorf("%q is no suite: aes256-cbc-sha1, aes256-gcm, chacha20-poly1305 or 3des-sha1", suite)
	}
	return nil
}
