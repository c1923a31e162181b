package link

import (
	"fmt"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
)

// Profile is a named path.
type Profile struct{ Name, About, Text string }

// Profiles returns all named paths.
func Profiles() []Profile {
	return []Profile{
		{"lan-10m", "10 Mbit/s Ethernet of 1997, half duplex",
			"rate=10mbit,rtt=1ms,overhead=38,duplex=half,queue=40packets,stack=windows-95"},
		{"isdn-64k", "one ISDN channel", "rate=64kbit,rtt=30ms,queue=20packets,stack=windows-95"},
		{"modem-28.8k", "V.34 modem", "rate=28.8kbit,rtt=130ms,queue=20packets,stack=windows-95"},
		{"modem-14.4k", "V.32bis modem", "rate=14.4kbit,rtt=180ms,queue=20packets,stack=windows-95"},
		{"t1-70ms", "T1 to a distant server, 2001", "rate=1.544mbit,rtt=70ms,stack=windows-2000"},
		{"wan-10m-85ms", "10 Mbit/s whose delay varies by 20 ms", "rate=10mbit,rtt=85ms,jitter=20ms,stack=windows-2000"},
		{"lan-100m", "100 Mbit/s at 2.5 ms", "rate=100mbit,rtt=2.5ms,overhead=38,queue=100packets"},
		{"wan-12ms", "100 Mbit/s at 12 ms", "rate=100mbit,rtt=12ms"},
		{"wan-20ms", "100 Mbit/s at 20 ms", "rate=100mbit,rtt=20ms"},
		{"wan-40ms", "100 Mbit/s at 40 ms", "rate=100mbit,rtt=40ms"},
		{"wan-80ms", "100 Mbit/s at 80 ms to Cygwin on Server 2012: window stuck (up), 64 KB in flight (down)",
			"rate=100mbit,rtt=80ms,far.stack=server-2012,far.app=cygwin"},
		{"ds3-30ms", "DS3 between laboratories, 2000", "rate=45mbit,rtt=30ms"},
		{"wan-1g-100ms", "1 Gbit/s between continents", "rate=1gbit,rtt=100ms"},
		{"cloud-10g-70ms", "10 Gbit/s between cloud regions", "rate=10gbit,rtt=70ms,queue=0.2bdp"},
		{"satellite-600ms", "geostationary satellite", "rate=20mbit,up.rate=4mbit,rtt=600ms,loss=0.001%"},
		{"lte", "mobile network", "rate=40mbit,up.rate=15mbit,rtt=50ms,jitter=15ms,queue=300kB,aggregate=1ms"},
		{"wifi", "Wi-Fi in one room", "rate=200mbit,rtt=3ms,duplex=half,aggregate=3ms,queue=300packets"},
		{"policed", "1 Gbit/s line, policed to 50 Mbit/s", "rate=1gbit,rtt=30ms,police=50mbit/250kB"},
		{"cloud-allowance", "a small cloud instance at 5 ms whose allowance is spent: 1 Gbit/s, policed to 256 Mbit/s",
			"rate=1gbit,rtt=5ms,police=256mbit/2MB"},
		{"cloud-flow", "a cloud's 1 Gbit/s at 20 ms; each connection gets 200 Mbit/s",
			"rate=1gbit,rtt=20ms,flow=200mbit"},
		{"vpn-30m", "100 Mbit/s through VPN gateways that encrypt 30 Mbit/s, both directions together",
			"rate=100mbit,rtt=12ms,vpn=gateway,crypto=30mbit"},
	}
}

func findProfile(name string) (Profile, error) {
	var names []string
	for _, p := range Profiles() {
		if p.Name == strings.ToLower(name) {
			return p, nil
		}
		names = append(names, p.Name)
	}
	hint := "fullpipe lab list shows the profiles; or write it out: rate=100mbit,rtt=40ms"
	if c := didyoumean.Nearest(strings.ToLower(name), names); c != "" {
		hint = c + " (" + hint + ")"
	}
	return Profile{}, &Error{"profile", fmt.Sprintf("no profile is called %q", name), hint}
}
