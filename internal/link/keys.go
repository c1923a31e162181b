package link

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// key is one keyword of a path description.
type key struct {
	example string
	about   string
	scope   scope
	set     func(d *draft, side int, value string) error
}

// scope says where a key applies.
type scope int

const (
	ofLane scope = iota // both directions, or one with up. or down.
	ofPath              // the whole path
	ofHost              // both hosts, or one with near. or far.
)

var keys = map[string]key{
	"rate": {"rate=100mbit", "bits a second at the IP layer; or unlimited", ofLane, func(d *draft, i int, v string) error {
		return rateOrUnlimited(v, &d.lane(i).Rate)
	}},
	"overhead": {"overhead=38", "bytes that each packet takes on the line besides (38: Ethernet)", ofLane,
		func(d *draft, i int, v string) error {
			return whole(v, 0, 1000, &d.lane(i).Overhead)
		}},
	"rtt": {"rtt=40ms", "round trip, half in each direction", ofPath, func(d *draft, _ int, v string) error {
		return span(v, 2*maxDelay, &d.result.RTT)
	}},
	"jitter": {"jitter=5ms", "spread of the delay, without overtaking", ofLane, func(d *draft, i int, v string) error {
		return span(v, maxDelay, &d.lane(i).Jitter)
	}},
	"loss": {"loss=0.01% or loss=1%/8", "share lost; with /N in bursts of N on average", ofLane,
		func(d *draft, i int, v string) error {
			share, burst, bursty := strings.Cut(v, "/")
			c := d.lane(i)
			c.LossBurst = 0
			if err := probability(share, &c.Loss); err != nil || !bursty {
				return err
			}
			b, err := strconv.ParseFloat(strings.TrimSpace(burst), 64)
			if err != nil || !(b >= 1 && b <= 1e6) {
				return fmt.Errorf("a burst of %q packets", burst)
			}
			if c.Loss/(1-c.Loss)/b > 1 {
				return fmt.Errorf("bursts of %v packets cannot lose %v of all", b, c.Loss)
			}
			c.LossBurst = b
			return nil
		}},
	"reorder": {"reorder=1% or reorder=1%/5ms", "share of packets with an extra delay (/TIME)", ofLane,
		func(d *draft, i int, v string) error {
			share, hold, timed := strings.Cut(v, "/")
			c := d.lane(i)
			c.HoldBack = 0
			if err := probability(share, &c.Reorder); err != nil || !timed {
				return err
			}
			return span(hold, maxDelay, &c.HoldBack)
		}},
	"duplicate": {"duplicate=0.1%", "share that arrives twice", ofLane, func(d *draft, i int, v string) error {
		return probability(v, &d.lane(i).Duplicate)
	}},
	"queue": {"queue=1bdp, queue=150kB or queue=100packets", "queue size: BDPs (at least 10 packets), " +
		"bytes or packets", ofLane, func(d *draft, i int, v string) (err error) {
		d.queue[i], err = parseQueue(v)
		return err
	}},
	"ecn": {"ecn=20kB, ecn=10packets or ecn=0.2bdp",
		"queue from which on packets are marked (ECN) where both ends agreed " +
			"to it (sysctl net.ipv4.tcp_ecn=1), and dropped otherwise; packets of 1500 bytes", ofLane,
		func(d *draft, i int, v string) (err error) {
			d.mark[i], err = parseQueue(v)
			return err
		}},
	"mtu": {"mtu=1400", "the largest packet that gets through", ofLane, func(d *draft, i int, v string) error {
		return whole(v, 576, 65535, &d.lane(i).MTU)
	}},
	"icmp": {"icmp=send or icmp=drop", "ICMP packet-too-big messages; drop makes a black hole", ofLane,
		func(d *draft, i int, v string) error {
			return choice(v, &d.lane(i).Silent, "send", "drop")
		}},
	"police": {"police=50mbit/200kB", "rate and burst beyond which packets are dropped at once", ofLane,
		func(d *draft, i int, v string) error {
			r, burst, found := strings.Cut(v, "/")
			if !found {
				return fmt.Errorf("no burst")
			}
			// The slash may also be that of "mbit/s".
			if rest, ok := strings.CutPrefix(burst, "s/"); ok {
				burst = rest
			}
			c := d.lane(i)
			var err error
			c.PoliceRate, err = rate(r)
			if err != nil {
				return err
			}
			size, err := units.ParseSize(burst)
			if err != nil {
				return err
			}
			if size < defaultMTU || size > 1<<30 {
				return fmt.Errorf("a burst of %d bytes is not between 1500 bytes and 1 GiB", int64(size))
			}
			c.PoliceBurst = int64(size)
			return nil
		}},
	"flow": {"flow=200mbit", "rate limit of each connection, as clouds have: packets above it wait in a " +
		"queue of its own, as long as the line's; or unlimited", ofLane, func(d *draft, i int, v string) error {
		return rateOrUnlimited(v, &d.lane(i).FlowRate)
	}},
	"aggregate": {"aggregate=5ms", "packets are handed over together, once each such time", ofLane,
		func(d *draft, i int, v string) error {
			return span(v, time.Second, &d.lane(i).Aggregate)
		}},
	"duplex": {"duplex=half or duplex=full", "half: one medium for both directions", ofPath,
		func(d *draft, _ int, v string) error {
			return choice(v, &d.result.HalfDuplex, "full", "half")
		}},
	"strip": {"strip=wscale or strip=sack+timestamps", "options that a middlebox takes out of handshakes; joined by +",
		ofLane, func(d *draft, i int, v string) error {
			var all Options
			for name := range strings.SplitSeq(v, "+") {
				o, ok := optionNames[strings.TrimSpace(name)]
				if !ok {
					return fmt.Errorf("unknown option %q", name)
				}
				all |= o
			}
			d.lane(i).Strip = all
			return nil
		}},
	"seed": {"seed=1", "chooses the packets that are lost", ofPath, func(d *draft, _ int, v string) error {
		n, err := strconv.ParseUint(v, 10, 63)
		if err != nil {
			return fmt.Errorf("not a whole number")
		}
		d.result.Up.Seed = n
		d.result.Down.Seed = n
		return nil
	}},
	"vpn": {"vpn=gateway, vpn=wireguard or vpn=wireguard/1420", "gateway: two IPsec gateways (1438 of 1500 bytes pass) " +
		"with a budget (crypto); wireguard: a tunnel between the hosts (1420 of 1500, or /MTU)", ofPath,
		func(d *draft, _ int, v string) error {
			kind, mtu, stated := strings.Cut(v, "/")
			p := &d.result.VPN
			p.MTU = 0
			if stated && kind == WireGuard {
				if err := whole(mtu, minWireGuardMTU, wireGuardLargest, &p.MTU); err != nil {
					return err
				}
			} else if stated || kind != "none" && kind != Gateway && kind != WireGuard {
				return fmt.Errorf("neither none, %s nor %s", Gateway, WireGuard)
			}
			p.Kind = kind
			return nil
		}},
	"crypto": {"crypto=30mbit or crypto=30mbit/100packets", "encryption rate of the gateways, both directions together, " +
		"acknowledgements included; and how many packets wait for it in each", ofPath, func(d *draft, _ int, v string) error {
		budget, depth, stated := strings.Cut(v, "/")
		if rest, ok := strings.CutPrefix(depth, "s/"); ok || depth == "s" { // of "mbit/s"
			depth = rest
			stated = ok
		}
		p := &d.result.VPN
		var err error
		p.Crypto, err = rate(budget)
		if err != nil || !stated {
			return err
		}
		q, err := parseQueue(depth)
		if err != nil || q.unit != "packets" {
			return fmt.Errorf("%q is no number of packets", depth)
		}
		p.Depth = int(q.amount)
		return nil
	}},
	"stack": {"stack=windows-2000", "how a host's TCP behaves", ofHost, func(d *draft, i int, v string) error {
		if _, err := FindStack(v); err != nil {
			return err
		}
		d.stacks[i] = v
		return nil
	}},
	"app": {"far.app=cygwin", "the buffers that this program sets on every socket: " + strings.Join(fixedBuffers(), ", "),
		ofHost, func(d *draft, i int, v string) error {
			program, ok := catalog.FindProgram(v)
			if !ok || !program.FixesBuffers() {
				return fmt.Errorf("not one of the programs that fix their buffers: %s", strings.Join(fixedBuffers(), ", "))
			}
			d.change(i, func(s *Stack) { s.fix(program) })
			return nil
		}},
	"afd": {"near.afd=32KiB or afd=off", "fullpipe sends as Windows 2000's AFD did with this quota, or not; " +
		"--send-buffer replaces it", ofHost, func(d *draft, i int, v string) error {
		if v == "off" {
			d.change(i, func(s *Stack) { s.SenderRule = "" })
			return nil
		}
		quota, err := size(v, 1, 1<<30)
		d.change(i, func(s *Stack) { s.SenderRule = fmt.Sprintf("afd:%d", quota) })
		return err
	}},
	"window": {"far.window=64KiB or window=auto", "the stack's receive window where a program asks for none", ofHost,
		func(d *draft, i int, v string) error {
			if v == "auto" {
				d.change(i, func(s *Stack) { s.Window = 0; s.state("ipv4.tcp_moderate_rcvbuf", "1") })
				return nil
			}
			window, err := size(v, 2048, 512<<20)
			d.change(i, func(s *Stack) { s.Window = window; s.state("ipv4.tcp_moderate_rcvbuf", "0") })
			return err
		}},
	"delack": {"far.delack=200ms or delack=off", "acknowledge every second full segment, a single one after this " +
		"time (by the system: off)", ofHost, func(d *draft, i int, v string) error {
		var wait time.Duration
		if v != "off" {
			if err := span(v, time.Second, &wait); err != nil {
				return err
			}
		}
		d.change(i, func(s *Stack) { s.DelayedAck = wait })
		return nil
	}},
	"factor": {"far.factor=0", "the host's window scale for any buffer size of a program: its receive window is at most " +
		"65,535 bytes times two to this power (0: as with a buffer fixed by policy); or auto", ofHost,
		func(d *draft, i int, v string) error {
			largest := 0
			if v != "auto" {
				var factor int
				if err := whole(v, 0, maxFactor, &factor); err != nil {
					return err
				}
				largest = 65535 << factor
			}
			d.change(i, func(s *Stack) { s.bound(largest) })
			return nil
		}},
	"scaling": {"far.scaling=off", "whether the stack scales windows: without it they end at 64 KiB", ofHost,
		onOff("ipv4.tcp_window_scaling")},
	"timestamps": {"timestamps=off", "whether the stack sends timestamps", ofHost, onOff("ipv4.tcp_timestamps")},
	"sack":       {"far.sack=off", "whether the stack acknowledges selectively", ofHost, onOff("ipv4.tcp_sack")},
}

// onOff returns the setter of a Boolean sysctl of a stack.
func onOff(sysctl string) func(*draft, int, string) error {
	return func(d *draft, i int, v string) error {
		var off bool
		err := choice(v, &off, "on", "off")
		value := "1"
		if off {
			value = "0"
		}
		d.change(i, func(s *Stack) { s.state(sysctl, value) })
		return err
	}
}

var optionNames = map[string]Options{"wscale": WindowScale, "sack": SACK, "timestamps": Timestamps}

// Setting documents one key of a path description.
type Setting struct{ Name, Example, About string }

// Settings returns the keys that Parse accepts, sorted by name.
func Settings() (all []Setting) {
	for _, name := range keyNames() {
		all = append(all, Setting{name, keys[name].example, keys[name].about})
	}
	return all
}

func keyNames() []string {
	names := make([]string, 0, len(keys))
	for name := range keys {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func example(name string) string { return keys[name].example }
