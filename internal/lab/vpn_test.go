//go:build linux

package lab

import (
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/link"
)

// Packets through a VPN have the size that the protocol gives; packets past it are unchanged.
func TestLab_VPNPacketSizes(t *testing.T) {
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
