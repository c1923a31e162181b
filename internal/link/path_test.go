package link

import (
	"errors"
	"strings"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	tests := []struct {
		text string
		ok   func(Path) bool
	}{
		{"wan-40ms", func(p Path) bool {
			return p.Profile == "wan-40ms" && p.RTT == 40*time.Millisecond && p.Up.Rate == 1e8 && p.Down.Rate == 1e8
		}},
		{"lab:WAN-40ms", func(p Path) bool { return p.Profile == "wan-40ms" }},
		{"lab:rate=100mbit,rtt=40ms,loss=0.01%,queue=1bdp", func(p Path) bool {
			return p.Up.Loss == 0.0001 && p.Up.QueueBytes == 500_000 && p.Up.Delay == 20*time.Millisecond &&
				p.Down.Delay == 20*time.Millisecond
		}},
		{" rate = 28.8 kbit/s , rtt=0.5s ", func(p Path) bool { return p.Up.Rate == 28800 && p.RTT == 500*time.Millisecond }},
		{"wan-40ms,rate=1gbit,down.rate=10mbit", func(p Path) bool { return p.Up.Rate == 1e9 && p.Down.Rate == 1e7 }},
		{"rate=1gbit,rtt=8ms,queue=2bdp", func(p Path) bool { return p.Up.QueueBytes == 2e6 }},
		{"rate=1gbit,queue=2bdp,rtt=8ms", func(p Path) bool { return p.Up.QueueBytes == 2e6 }},
		{"rate=1mbit,rtt=8ms", func(p Path) bool { return p.Up.QueueBytes == 15000 }},
		{"rate=1mbit,rtt=8ms,queue=0.01bdp", func(p Path) bool { return p.Up.QueueBytes == 15000 }},
		{"rate=1mbit,queue=3000B", func(p Path) bool { return p.Up.QueueBytes == 3000 && p.Up.QueuePackets == 0 }},
		{"rate=1mbit,queue=64KiB,down.queue=12packets", func(p Path) bool {
			return p.Up.QueueBytes == 65536 && p.Down.QueueBytes == 0 && p.Down.QueuePackets == 12
		}},
		{"rtt=3ns", func(p Path) bool { return p.Up.Delay+p.Down.Delay == 3 }},
		{"rate=unlimited", func(p Path) bool { return p.Up.Rate == 0 }},
		{"loss=1%/8,rtt=1ms", func(p Path) bool { return p.Up.Loss == 0.01 && p.Up.LossBurst == 8 }},
		{"loss=1%/8,down.loss=0", func(p Path) bool { return p.Down.Loss == 0 && p.Down.LossBurst == 0 }},
		{"reorder=1%,rate=100kbit", func(p Path) bool { return p.Up.HoldBack == 360*time.Millisecond }},
		{"reorder=1%/5ms,duplicate=0.5%", func(p Path) bool {
			return p.Up.HoldBack == 5*time.Millisecond &&
				p.Up.Duplicate == 0.005
		}},
		{"rate=8mbit,rtt=10ms,ecn=0.5bdp,down.ecn=3packets", func(p Path) bool {
			return p.Up.MarkBytes == 5000 && p.Down.MarkBytes == 4500
		}},
		{"police=50mbit/200kB", func(p Path) bool { return p.Up.PoliceRate == 5e7 && p.Up.PoliceBurst == 200_000 }},
		{"up.police=50mbit/s/200kB", func(p Path) bool { return p.Up.PoliceRate == 5e7 && p.Down.PoliceRate == 0 }},
		{"mtu=1400,icmp=drop,overhead=38,aggregate=5ms,duplex=half,seed=9", func(p Path) bool {
			return p.Up.MTU == 1400 && p.Down.Silent && p.Up.Overhead == 38 && p.Up.Aggregate == 5*time.Millisecond &&
				p.HalfDuplex && p.Down.Seed == 9
		}},
		{"strip=wscale+timestamps,down.strip=sack", func(p Path) bool {
			return p.Up.Strip == WindowScale|Timestamps &&
				p.Down.Strip == SACK
		}},
		{"near.stack=windows-2000", func(p Path) bool { return p.Near.Name == "windows-2000" && p.Far.Name == defaultStack }},
		{"stack=windows-xp,far.stack=linux-6.1", func(p Path) bool {
			return p.Near.Name == "windows-xp" &&
				p.Far.Name == "linux-6.1"
		}},
		{"rate=100mbit,rtt=2ms,vpn=gateway", func(p Path) bool {
			return p.VPN == VPN{Gateway, 30e6, 100, 0} && p.Up.Largest(false) == 1438 && p.Down.Largest(true) == 1500 &&
				p.Up.Tunnelled && p.Down.Tunnelled && p.Up.Rate == 1e8
		}},
		{"vpn=gateway,crypto=5mbit/s/20packets,mtu=1400", func(p Path) bool {
			return p.VPN == VPN{Gateway, 5e6, 20, 0} &&
				p.Up.Largest(false) == 1342
		}},
		{"crypto=5mbit/s,vpn=gateway", func(p Path) bool { return p.VPN == VPN{Gateway, 5e6, 100, 0} }},
		{"wan-40ms,vpn=wireguard", func(p Path) bool {
			return p.VPN == VPN{Kind: WireGuard, MTU: 1420} && !p.Up.Tunnelled &&
				!p.Share()
		}},
		{"down.mtu=1400,vpn=wireguard", func(p Path) bool { return p.VPN.MTU == 1320 }},
		{"mtu=9000,vpn=wireguard", func(p Path) bool { return p.VPN.MTU == 8920 }},
		{"mtu=1300,vpn=wireguard", func(p Path) bool { return p.VPN.MTU == 1280 }},
		{"mtu=1300,vpn=wireguard/1420", func(p Path) bool { return p.VPN.MTU == 1420 }},
		{"wan-40ms,vpn=none", func(p Path) bool { return p.VPN == VPN{} && !p.Up.Tunnelled && p.Up.MTU == 0 }},
		{"near.afd=32KiB,far.afd=off,stack=windows-xp", func(p Path) bool {
			return p.Near.SenderRule == "afd:32768" &&
				p.Far.SenderRule == ""
		}},
		{"far.scaling=off,sack=off,near.timestamps=off,near.sack=on", func(p Path) bool {
			return value(p.Far, "tcp_window_scaling") == "0" && value(p.Near, "tcp_window_scaling") == "1" &&
				value(p.Far, "tcp_sack") == "0" &&
				value(p.Near, "tcp_sack") == "1" && value(p.Near, "tcp_timestamps") == "0" && value(p.Far, "tcp_timestamps") == "1"
		}},
		{"far.window=64KiB,near.window=auto,near.stack=windows-2000", func(p Path) bool {
			return p.Far.Window == 65536 && value(p.Far, "tcp_moderate_rcvbuf") == "0" && p.Near.Window == 0 &&
				value(p.Near, "tcp_moderate_rcvbuf") == "1"
		}},
		{"flow=200mbit,down.flow=unlimited", func(p Path) bool { return p.Up.FlowRate == 200e6 && p.Down.FlowRate == 0 }},
		{"far.factor=0,near.factor=11,near.stack=windows-xp", func(p Path) bool {
			return p.Far.LargestWindow == 65535 && p.Near.LargestWindow == 65535<<11 &&
				value(p.Near, "tcp_rmem") == "4096 131072 134215680" && value(p.Far, "tcp_rmem") == "4096 131072 33554432"
		}},
		{"stack=server-2022,far.factor=auto", func(p Path) bool {
			return p.Near.LargestWindow == 16776960 && p.Far.LargestWindow == 0 && p.Near.InitialWindow == 10 && p.Near.Foreign()
		}},
		{"jitter=20ms,rtt=85ms", func(p Path) bool { return p.Up.Jitter == 20*time.Millisecond }},
	}
	for _, test := range tests {
		p, err := Parse(test.text)
		if err != nil || !test.ok(p) {
			t.Errorf("%s: %+v, %v", test.text, p, err)
		}
	}
}

// value returns a stack's setting below net.ipv4.
func value(s Stack, name string) string {
	for _, c := range s.Sysctls {
		if c.Name == "ipv4."+name {
			return c.Value
		}
	}
	return ""
}

func TestParse_NamesTheFaultyArgument(t *testing.T) {
	tests := []struct{ text, argument, message, hint string }{
		{"wan-40mz", "profile", `no profile is called "wan-40mz"`, "wan-40ms"},
		{"", "profile", `no profile is called ""`, "fullpipe lab list"},
		{"lab:", "profile", "no profile", "fullpipe lab list"},
		{"satelite-600ms", "profile", "no profile", "satellite-600ms"},
		{"wan-40ms,lte", "lte", "not of the form key=value", "comes first"},
		{"rtt=40", "rtt", "not a time", "rtt=40ms"},
		{"far.factor=15", "far.factor", "not a whole number between 0 and 14", "far.factor=0"},
		{"flow=5mbit,duplex=half", "flow", "bounds no single connections", "rate=5 Mbit/s"},
		{"flow=5mbit,vpn=gateway", "flow", "one flow of all", "rate="},
		{"rtt=-1ms", "rtt", "not a time", "rtt=40ms"},
		{"rtt=1h", "rtt", "more than 2m0s", "rtt=40ms"},
		{"rate=0", "rate", "not between 100 bit/s and 1 Tbit/s", "rate=100mbit"},
		{"rate=10mbyte", "rate", `unknown unit "mbyte"`, "rate=100mbit"},
		{"rate=NaN", "rate", "not a number", "rate=100mbit"},
		{"rate=", "rate", "no value", "rate=100mbit"},
		{"rat=1mbit", "rat", "unknown key", "did you mean rate?"},
		{"loss=101%", "loss", "not a share", "loss=0.01%"},
		{"loss=NaN", "loss", "not a share", "loss=0.01%"},
		{"loss=90%/2", "loss", "cannot lose", "loss=0.01%"},
		{"loss=1%/0", "loss", `a burst of "0" packets`, "loss=1%/8"},
		{"queue=3.5packets", "queue", "not a number of packets", "queue=1bdp"},
		{"queue=xbdp", "queue", "not a number of bdp", "queue=1bdp"},
		{"queue=1PB", "queue", "more than 64 GiB", "queue=1bdp"},
		{"police=50mbit", "police", "no burst", "police=50mbit/200kB"},
		{"police=50mbit/10B", "police", "1500 bytes and 1 GiB", "police=50mbit/200kB"},
		{"mtu=100", "mtu", "not a whole number between 576 and 65535", "mtu=1400"},
		{"icmp=maybe", "icmp", "neither send nor drop", "icmp=send"},
		{"strip=wscale+mss", "strip", `unknown option "mss"`, "strip=wscale"},
		{"stack=windows-2001", "stack", "did you mean windows-2000?", "stack=windows-2000"},
		{"up.rtt=3ms", "up.rtt", "belongs to the path as a whole", "rtt=40ms"},
		{"near.rate=1mbit", "near.rate", "does not go with near.", "up. and down."},
		{"up.stack=linux-6.1", "up.stack", "does not go with up.", "near. and far."},
		{"left.rate=1mbit", "left.rate", `unknown side "left"`, "up. and down."},
		{"rtt=10ms,jitter=11ms", "jitter", "more than the RTT", "at most the rtt"},
		{"aggregate=2s", "aggregate", "more than 1s", "aggregate=5ms"},
		{"afd=0", "afd", "not between", "near.afd=32KiB"},
		{"far.window=1KiB", "far.window", "not between 2048 B and 512 MiB", "far.window=64KiB"},
		{"far.sack=maybe", "far.sack", "neither on nor off", "far.sack=off"},
		{"up.sack=off", "up.sack", "does not go with up.", "near. and far."},
		{"vpn=ipsec", "vpn", "neither none, gateway nor wireguard", "vpn=gateway"},
		{"vpn=gateway/1420", "vpn", "neither none, gateway nor wireguard", "vpn=wireguard/1420"},
		{"vpn=wireguard/1000", "vpn", "between 1280 and", "vpn=wireguard/1420"},
		{"vpn=wireguard,crypto=1mbit", "crypto", "no gateways", "vpn=gateway"},
		{"crypto=30mbit", "crypto", "no gateways", "vpn=gateway"},
		{"vpn=gateway,crypto=30mbit/64KiB", "crypto", "no number of packets", "crypto=30mbit/100packets"},
		{"vpn=gateway,crypto=0", "crypto", "not between", "crypto=30mbit"},
		{"vpn=gateway,mtu=600", "mtu", "leaves 542 bytes", "616 or more"},
		{"up.vpn=gateway", "up.vpn", "belongs to the path as a whole", "vpn=gateway"},
		{"seed=-1", "seed", "not a whole number", "seed=1"},
		{"rate=1mbit,,rtt=3ms", "", "not of the form", "key=value"},
	}
	for _, test := range tests {
		_, err := Parse(test.text)
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%s: %v", test.text, err)
			continue
		}
		if e.Argument != test.argument || !strings.Contains(e.Message, test.message) || !strings.Contains(e.Hint+" key=value",
			test.hint) {
			t.Errorf("%s: %q: %q, try %q", test.text, e.Argument, e.Message, e.Hint)
		}
	}
}

func TestProfilesParse(t *testing.T) {
	for _, p := range Profiles() {
		got, err := Parse("lab:" + p.Name)
		if err != nil || got.Profile != p.Name || got.Up.Rate == 0 || got.RTT == 0 {
			t.Errorf("%s: %+v, %v", p.Name, got, err)
		}
	}
}

func TestStacksStateTheSameThings(t *testing.T) {
	want := len(Stacks()[0].Sysctls)
	for _, s := range Stacks() {
		if len(s.Sysctls) != want {
			t.Errorf("%s states %d settings, %s %d", s.Name, len(s.Sysctls), Stacks()[0].Name, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, p := range Profiles() {
		f.Add(p.Name)
		f.Add(p.Text)
	}
	f.Add("lab:wan-40ms,loss=1%/8,reorder=1%/5ms,police=1mbit/2kB,queue=3packets,strip=sack+wscale,up.mtu=600," +
		"near.stack=windows-95")
	f.Add("rate=1mbit,vpn=gateway,crypto=2mbit/3packets,duplex=half,duplicate=9%,police=1mbit/2kB")
	f.Fuzz(func(t *testing.T, text string) {
		p, err := Parse(text)
		if err != nil {
			return
		}
		for _, c := range []Config{p.Up, p.Down} {
			if c.Rate < 0 || c.Delay < 0 || c.Jitter > 2*c.Delay || c.QueueBytes < 0 || c.QueuePackets < 0 ||
				!(c.Loss >= 0 && c.Loss <= 1) {
				t.Fatalf("%q: %+v", text, c)
			}
		}
		up, _ := p.Lanes()
		now, kept := int64(0), 0
		for i := range int32(50) {
			now += 1e6
			n, _ := up.Offer(now, Batch{ID: i, Segments: 3, Bytes: 1500, Last: 40})
			kept += n
		}
		runs, times := drain(up)
		for i, r := range runs {
			kept -= r.Count
			if i > 0 && times[i] < times[i-1] {
				t.Fatalf("%q: time runs backwards", text)
			}
		}
		if kept != 0 {
			t.Fatalf("%q: %d segments never came back", text, kept)
		}
	})
}
