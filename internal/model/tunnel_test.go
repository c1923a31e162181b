package model

import "testing"

func TestTunnels(t *testing.T) {
	for text, want := range map[string]int{ // of 1500 bytes
		"ipsec:aes256-cbc-sha1": 1438, "ipsec:aes128-cbc-sha1": 1438, "ipsec:aes256-cbc-sha1,natt": 1422,
		"ipsec:aes256-cbc-sha256": 1438,
		"ipsec:aes256-gcm":        1446, "ipsec:aes256-gcm,natt": 1438, "ipsec:3des-sha1": 1446,
		"ipsec:aes256-gcm,ipv6": 1426,
		"wireguard":             1440, "wireguard,ipv6": 1420, "openvpn": 1448, "openvpn,tcp": 1422, "gre": 1476,
		"gre,key": 1472,
		"ipip":    1480,
		"vxlan":   1450, "vxlan,ipv6": 1430, "geneve": 1450, "pppoe": 1492, "pppoe,wireguard,ipv6": 1412,
		"pppoe,ipsec:aes256-cbc-sha1,natt":               1422,
		"custom:header=28,iv=8,block=4,trailer=2,tag=16": 1446, "ipsec:aes256-gcm,gre": 1422, "openvpn:aes256-cbc-sha1": 1419,
	} {
		tunnel, err := ParseTunnel(text)
		if err != nil || tunnel.MTU(1500) != want || tunnel.String() != text {
			t.Errorf("%s: %d (%v), %v; want %d", text, tunnel.MTU(1500), tunnel, err, want)
			continue
		}
		for path := 1280; path < 9100; path += 7 {
			mtu := tunnel.MTU(path)
			if tunnel.Carry(mtu, path) > path || tunnel.Carry(mtu+1, path) <= path {
				t.Fatalf("%s on %d bytes carries %d in %d", text, path, mtu, tunnel.Carry(mtu, path))
			}
		}
	}
	for text, want := range map[string]int{"ipsec:aes256-cbc-sha1": 15, "ipsec:aes256-gcm": 3, "wireguard": 15, "gre": 0} {
		tunnel, _ := ParseTunnel(text)
		if got := tunnel.WorstPadding(1500); got != want {
			t.Errorf("%s pads by %d, want %d", text, got, want)
		}
	}
	for _, text := range []string{"", "ipsec", "ipsec:rot13", "natt", "gre,natt", "custom:", "custom:header=-1",
		"custom:colour=3", "wireguard,",
		"ipsec:aes256-gcm-sha1-x", "custom:header=512,header=512"} {
		if tunnel, err := ParseTunnel(text); err == nil {
			t.Errorf("%q was taken: %+v", text, tunnel)
		}
	}
}

func FuzzTunnel(f *testing.F) {
	for _, name := range TunnelNames() {
		f.Add(name, 1400)
	}
	f.Fuzz(func(t *testing.T, text string, packet int) {
		tunnel, err := ParseTunnel(text)
		if err != nil || packet < 1 || packet > 1500 {
			return
		}
		if got := tunnel.Carry(packet, 1500); got < packet {
			t.Errorf("%q carries %d bytes in %d", text, packet, got)
		}
	})
}
