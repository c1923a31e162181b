//go:build linux

package lab

import (
	"fmt"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
)

// A packet through a VPN has exactly the size on the line that the protocol says; one
// past it is as it was.
func TestPacketsInATunnel(t *testing.T) {
	t.Parallel()
	const packet = 1300
	for path, carried := range map[string]int{
		"rate=20mbit,rtt=2ms,vpn=wireguard":            link.WireGuardBytes(packet, 1420),
		"rate=20mbit,rtt=2ms,vpn=wireguard,mtu=1380":   link.WireGuardBytes(packet, 1300),
		"rate=20mbit,rtt=2ms,vpn=gateway,crypto=5mbit": link.ESPBytes(packet),
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			l := startLab(t, path)
			ping := func(to string) {
				out, err := l.Near.Output("sh", "-c", "ping -n -c 1 -s 1272 -M do "+to)
				if err != nil || !strings.Contains(string(out), " 0% packet loss") {
					t.Errorf("ping %s: %v\n%s", to, err, out)
				}
			}
			ping("$FULLPIPE_FAR") // WireGuard shakes hands first
			for _, way := range []struct {
				to   string
				want int
			}{{"$FULLPIPE_FAR", carried}, {"$FULLPIPE_FAR_OUTSIDE", packet}} {
				before, _, err := l.Counters()
				if err != nil {
					t.Fatal(err)
				}
				ping(way.to)
				after, _, err := l.Counters()
				if err != nil {
					t.Fatal(err)
				}
				if n, bytes := after.Carried-before.Carried, after.CarriedBytes-before.CarriedBytes; n != 1 ||
					bytes != int64(way.want) {
					t.Errorf("%d bytes to %s travelled in %d packets of %d bytes, want one of %d", packet, way.to, n, bytes, way.want)
				}
			}
		})
	}
}

// What plan --vpn computes is what travels: packets of many sizes through the lab's gateways,
// a real WireGuard and, where the kernel has it, its own VXLAN, one by one by the link's
// counters. Other tunnels are not in the kernels that this was tried on.
func TestPlannedTunnelsPacketByPacket(t *testing.T) {
	for _, test := range []struct{ path, tunnel, near, far string }{
		{"vpn=wireguard/1440", "wireguard", "", ""}, // over IPv4, which leaves 20 bytes more than wg-quick's
		{"vpn=gateway,crypto=10mbit", "ipsec:aes256-cbc-sha1", "", ""},
		{"", "vxlan", vxlan("FAR", 1), vxlan("NEAR", 2)},
	} {
		t.Run(test.tunnel, func(t *testing.T) {
			t.Parallel()
			tunnel, err := model.ParseTunnel(test.tunnel)
			if err != nil {
				t.Fatal(err)
			}
			const path = 1500
			inner := tunnel.MTU(path)
			l := startLab(t, strings.TrimSuffix("rate=20mbit,rtt=1ms,"+test.path, ","))
			to := "$FULLPIPE_FAR"
			if test.near != "" {
				for end, script := range map[*End]string{l.Near: test.near, l.Far: test.far} {
					if out, err := end.Output("sh", "-c", fmt.Sprintf(script, inner)); err != nil {
						t.Skipf("this kernel has no %s: %v %s", test.tunnel, err, out)
					}
				}
				to = "10.9.0.2"
			}
			ping := func(packet int) error {
				out, err := l.Near.Output("sh", "-c", fmt.Sprintf("ping -n -c 1 -W 5 -s %d -M do %s", packet-28, to))
				if err == nil && !strings.Contains(string(out), " 0% packet loss") {
					err = fmt.Errorf("%s", out)
				}
				return err
			}
			if err := ping(100); err != nil { // neighbours and keys are found first
				t.Fatal(err)
			}
			for _, packet := range []int{28, 29, 41, 63, 64, 65, 100, 576, 1000, 1279, 1337, inner - 17, inner - 1, inner} {
				before, _, err := l.Counters()
				if err != nil {
					t.Fatal(err)
				}
				if err := ping(packet); err != nil {
					t.Errorf("a packet of %d bytes: %v", packet, err)
					continue
				}
				after, _, err := l.Counters()
				if err != nil {
					t.Fatal(err)
				}
				n, bytes := after.Carried-before.Carried, after.CarriedBytes-before.CarriedBytes
				if want := tunnel.Carry(packet, path); n != 1 || bytes != int64(want) {
					t.Errorf("%d bytes travelled in %d packets of %d bytes, want one of %d", packet, n, bytes, want)
				}
			}
			if ping(inner+1) == nil {
				t.Errorf("%d bytes got through, %d are planned", inner+1, inner)
			}
		})
	}
}

// vxlan makes a host's end of a VXLAN to its peer, with neighbours that need not be asked
// for; what is left open is the MTU.
func vxlan(peer string, own int) string {
	other := 3 - own
	return fmt.Sprintf("ip link add v0 mtu %%d address 02:00:00:00:00:0%d type vxlan id 7 remote $FULLPIPE_%s "+
		"dstport 4789 noudpcsum && ip addr add 10.9.0.%d/24 dev v0 && sysctl -qw net.ipv6.conf.v0.disable_ipv6=1 && ip link set v0 up && "+
		"ip neigh replace 10.9.0.%d lladdr 02:00:00:00:00:0%d dev v0 nud permanent", own, peer, own, other, other)
}
