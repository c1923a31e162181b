package plan

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
)

// A plan never makes a system's own values smaller.
func TestNothingIsLowered(t *testing.T) {
	small := []Path{
		{RateBps: 100 * mbit, RTT: 200 * time.Microsecond}, {RateBps: 10 * mbit, RTT: ms}, {RateBps: 28.8e3, RTT: 20 * ms},
		{RateBps: 50 * mbit, RTT: 900 * time.Microsecond}, {RateBps: 2e6, RTT: 5 * ms, MSS: 536},
	}
	for _, path := range small {
		for _, name := range Targets() {
			p := mustPlan(t, path, name, Options{})
			values := present{target: mustTarget(t, name)}
			for _, s := range p.Settings {
				was, err := strconv.Atoi(values.value(s.Name))
				if now, bad := strconv.Atoi(s.Value); err == nil && bad == nil && now < was {
					t.Errorf("%s, %v: %s %d becomes %d", name, path, s.Name, was, now)
				}
			}
		}
	}
	p := mustPlan(t, small[0], "windows-2000", Options{})
	if p.setting("DefaultSendWindow") != "" || p.ExpectedBps < 0.95*p.CapacityBps {
		t.Errorf("8192 bytes are enough for %v: %v, expected %v of %v", small[0], p.Settings, p.ExpectedBps, p.CapacityBps)
	}
	has := Options{Values: map[string]string{"TcpWindowSize": "256960", "DefaultSendWindow": "131072"}}
	if p := mustPlan(t, Path{RateBps: 10 * mbit, RTT: 40 * ms}, "windows-2000", has); len(p.Settings) != 0 {
		t.Errorf("the present values suffice: %v", p.Settings)
	}
	has = Options{Values: map[string]string{"AutoTuningLevelLocal": "Experimental"}}
	if p := mustPlan(t, Path{RateBps: 10 * mbit, RTT: 40 * ms}, "windows-10",
		has); p.setting("AutoTuningLevelLocal") != "" {
		t.Errorf("Experimental allows more than Normal: %v", p.Settings)
	}
}

func TestMemoryBoundsTheBuffers(t *testing.T) {
	wan := Path{RateBps: 1000 * mbit, RTT: 100 * ms, Connections: 20, MemoryBytes: 1 << 30}
	// One connection's automatic buffers fit into a share of 32 MiB, or are bounded by it.
	for target, want := range map[string]int{"freebsd": 12500520, "openbsd": 2 << 20, "macos": 12500520,
		"linux-6.1": 8 << 20, "server-2016": 12500520} {
		p := mustPlan(t, wan, target, Options{})
		if p.WindowBytes != want/2920*2920 || len(p.Warnings) == 0 || (p.Warnings[0].Code == MemoryShort) !=
			(target != "linux-6.1") {
			t.Errorf("%s: window %d, %v, warnings %v", target, p.WindowBytes, p.Settings, p.Warnings)
		}
	}
	// No ceiling of automatic buffers is lowered: a plan that changes nothing expects what the present settings give.
	wan.MemoryBytes = 128 << 20
	p := mustPlan(t, wan, "linux-6.1", Options{})
	if len(p.Warnings) != 1 || len(p.Settings) != 0 || math.Abs(p.ExpectedBps/p.Now.GoodputBps-1) > 0.01 {
		t.Errorf("%v, %v: expected %g, now %g", p.Warnings, p.Settings, p.ExpectedBps, p.Now.GoodputBps)
	}
	// Connections of one link share its bandwidth-delay product: 20 need no more than 2.
	for _, c := range []Path{{RateBps: 10e9, RTT: 70 * ms, Connections: 20, MemoryBytes: 64 << 30},
		{RateBps: 1e9, RTT: 100 * ms, Connections: 500, MemoryBytes: 16 << 30}} {
		for _, name := range []string{"linux-6.1", "freebsd", "server-2022"} {
			alone := c
			alone.Connections = 1
			many, one := mustPlan(t, c, name, Options{}), mustPlan(t, alone, name, Options{})
			memory := many.memory(many.neededWindow, many.neededSend) // more connections fit where autotuning ends below the BDP
			if many.WindowBytes != one.WindowBytes || many.bounded || many.MemoryBytes > memory ||
				many.MemoryBytes < 2*one.MemoryBytes {
				t.Errorf("%s: %d connections get %d, one %d: %v", name, c.Connections, many.WindowBytes, one.WindowBytes,
					many.Warnings)
			}
		}
	}
}

// The note's hosts have windows of one size: 300 connections of 17,520 bytes are 5.26 MB,
// and a host of 128 MiB has 4 MiB for them.
func TestMemory_LowersPresentWindows(t *testing.T) {
	for _, c := range []struct {
		connections int
		memory      int64
		role        Role
	}{{300, 128 << 20, Receiver}, {300, 128 << 20, Both}, {1000, 256 << 20, Receiver}, {700, 64 << 20, Both}} {
		path := Path{RateBps: 1e6, RTT: 60 * ms, Connections: c.connections, MemoryBytes: c.memory}
		p := mustPlan(t, path, "windows-2000", Options{Role: c.role})
		window, err := strconv.Atoi(p.setting("TcpWindowSize"))
		each := window
		if c.role == Both {
			each += p.SendBytes
		}
		warned := fmt.Sprint(p.Warnings)
		if err != nil || window >= 17520 || int64(each*c.connections) != p.MemoryBytes || !strings.Contains(warned,
			string(MemoryLowers)) {
			t.Errorf("%+v: %v, memory %d, %q", c, p.Settings, p.MemoryBytes, warned)
		}
		if bound := c.memory / 32; p.MemoryBytes > bound && !strings.Contains(warned, string(MemoryTooSmall)) {
			t.Errorf("%+v: %d bytes against a bound of %d without a word: %q", c, p.MemoryBytes, bound, warned)
		}
	}
	p := mustPlan(t, Path{RateBps: 10e6, RTT: 85 * ms, Connections: 300, MemoryBytes: 128 << 20}, "windows-2000",
		Options{})
	if len(p.Warnings) != 1 || p.Warnings[0].Code != MemoryLowersBelowPath {
		t.Errorf("the lost rate is not stated: %v", p.Warnings)
	}
}

// TestMemory_MoreMemoryIsNoSlower checks on every system that less memory costs a connection its rate by degrees, that
// nothing becomes smaller without a setting, and that the warning agrees with the settings and the rate.
func TestMemory_MoreMemoryIsNoSlower(t *testing.T) {
	rng := rand.New(rand.NewPCG(34, 1))
	for range 25 {
		path := Path{RateBps: math.Pow(10, 5+5*rng.Float64()), RTT: time.Duration(math.Pow(10, 5.5+3*rng.Float64())),
			Connections: 1 + rng.IntN(1000)}
		if rng.IntN(3) == 0 {
			path.BackBps = path.RateBps * (0.1 + rng.Float64())
		}
		for _, name := range append(Targets(), "linux-6.1", "linux-6.12", "freebsd-14") {
			free := mustPlan(t, path, name, Options{})
			family := mustTarget(t, name).Family
			expected := 0.0
			for memory := float64(int64(32 << 20)); memory < 1<<42; memory *= 1.6 {
				bounded := path
				bounded.MemoryBytes = int64(memory)
				p := mustPlan(t, bounded, name, Options{})
				if p.ExpectedBps < 0.999*expected || p.ExpectedBps > 1.001*free.ExpectedBps {
					t.Fatalf("%s %+v: expected %g, with less memory %g, without a bound %g", name, bounded, p.ExpectedBps, expected,
						free.ExpectedBps)
				}
				one := memory / 1.6 * memoryShare / 2 / p.bufferPayload // the window of one connection with less memory
				if pair := float64(2 * p.Path.MSS); !p.fixed && expected > 0 && one > 20*pair && p.ExpectedBps > 2.3*expected {
					t.Errorf("%s %+v: %g becomes %g at 60 %% more memory", name, bounded, expected, p.ExpectedBps)
				}
				expected = p.ExpectedBps
				lowers := false
				values := present{target: mustTarget(t, name)}
				for _, s := range p.Settings {
					was, err := strconv.Atoi(values.value(s.Name))
					now, bad := strconv.Atoi(s.Value)
					lowers = lowers || err == nil && bad == nil && now < was && s.Name != "Tcp1323Opts"
				}
				said := ""
				for _, s := range p.Warnings {
					if strings.HasPrefix(string(s.Code), "memory-") && s.Code != MemoryTooSmall {
						said = string(s.Code)
					}
				}
				if strings.HasPrefix(said, string(MemoryLowers)) && !lowers && family != catalog.Windows9x {
					t.Errorf("%s %+v: %s, settings %v", name, bounded, said, p.Settings)
				}
				if lowers && said == "" || said == string(MemoryShort) && p.fixed && lowers {
					t.Errorf("%s %+v: %q, settings %v", name, bounded, said, p.Settings)
				}
				if loses := p.ExpectedBps < 0.99*free.ExpectedBps; loses && !strings.HasSuffix(said, string(belowPath)) {
					t.Errorf("%s %+v: %q, expected %g of %g", name, bounded, said, p.ExpectedBps, free.ExpectedBps)
				}
			}
		}
	}
}

// The warning about memory says "lowered" only where the present window is larger, and states a lost rate only where
// there is one.
func TestMemory_WarningNamesTheChange(t *testing.T) {
	for _, c := range []struct {
		target string
		path   Path
		code   Code
		sizes  string
	}{
		{"windows-2000", Path{RateBps: 20 * mbit, RTT: 50 * ms, Connections: 90, MemoryBytes: 256 << 20},
			MemoryBoundsBelowPath, "43,800 bytes"},
		{"windows-2000", Path{RateBps: 0.5 * mbit, RTT: 30 * ms, Connections: 250, MemoryBytes: 96 << 20},
			MemoryLowers, "5,840 bytes17,520 bytes"},
		{"linux-6.1", Path{RateBps: 800 * mbit, RTT: 90 * ms, Connections: 40, MemoryBytes: 512 << 20},
			MemoryBoundsBelowPath, ""},
	} {
		all := mustPlan(t, c.path, c.target, Options{}).Warnings
		if len(all) != 1 || all[0].Code != c.code || !strings.Contains(fmt.Sprint(all[0].Args...), c.sizes) {
			t.Errorf("%s %+v: want %s with %s: %v", c.target, c.path, c.code, c.sizes, all)
		}
	}
}

// tcp_rmem and tcp_wmem are ints.
func TestNoMaximumPassesAnInt(t *testing.T) {
	for _, path := range []Path{{RateBps: 100e9, RTT: 80 * ms}, {RateBps: 400e9, RTT: 300 * ms},
		{RateBps: 85.8e9, RTT: 100 * ms}} {
		p := mustPlan(t, path, "linux-6.1", Options{})
		for _, name := range []string{"net.ipv4.tcp_rmem", "net.ipv4.tcp_wmem"} {
			var n [3]int64
			if _, err := fmt.Sscan(p.setting(name), &n[0], &n[1], &n[2]); err != nil || n[2] > math.MaxInt32 || n[2] < 1<<30 {
				t.Errorf("%v: %s = %q", path, name, p.setting(name))
			}
		}
	}
}

func TestTimestampsTakeTheirBytes(t *testing.T) {
	for _, c := range []struct {
		mss, window, segments int
		rtt                   time.Duration
	}{{0, 104 * 1448, 104, 12 * ms}, {1460, 346 * 1448, 346, 40 * ms}, {1398, 362 * 1386, 362, 40 * ms}} {
		p := mustPlan(t, Path{RateBps: 100 * mbit, RTT: c.rtt, MSS: c.mss}, "windows-2000", Options{Timestamps: true})
		if p.WindowBytes != c.window || p.Segments != c.segments || p.setting("Tcp1323Opts") != "3" {
			t.Errorf("%+v: window %d, %d segments of %d", c, p.WindowBytes, p.Segments, p.Path.MSS)
		}
	}
}

// Between the largest unscaled window of whole segments and 65,535 bytes nothing needs to
// be scaled.
func TestTheEdgeOfScaling(t *testing.T) {
	for _, bdp := range []float64{64000, 64241, 65000, 65535} {
		p := mustPlan(t, Path{RateBps: 100 * mbit, RTT: time.Duration(bdp * 80)}, "windows-2000", Options{})
		if p.LargeWindows || p.WindowBytes != 64240 || p.setting("Tcp1323Opts") != "" ||
			p.ExpectedBps < enough*p.CapacityBps {
			t.Errorf("%.0f bytes: window %d, %v", bdp, p.WindowBytes, p.Settings)
		}
	}
	if p := mustPlan(t, Path{RateBps: 100 * mbit, RTT: 5300 * time.Microsecond}, "windows-2000",
		Options{}); !p.LargeWindows {
		t.Errorf("66,250 bytes without scaling: %d", p.WindowBytes)
	}
	// Three pairs of jumbo segments are all that fits without scaling: four fifths.
	jumbo := mustPlan(t, Path{RateBps: 1000 * mbit, RTT: 520 * time.Microsecond, MSS: 8960}, "linux", Options{})
	if !jumbo.LargeWindows || jumbo.WindowBytes <= 65535 {
		t.Errorf("jumbo: %d", jumbo.WindowBytes)
	}
}

// A host sends at one rate and receives at another: its send buffer follows the one, its
// window the other.
func TestWaysThatDiffer(t *testing.T) {
	satellite := Path{RateBps: 4 * mbit, BackBps: 20 * mbit, RTT: 600 * ms}
	for _, name := range []string{"linux-6.1", "windows-2000", "freebsd"} {
		near := mustPlan(t, satellite, name, Options{})
		if near.SendBytes != 300760 || near.WindowBytes != 1500440 && near.WindowBytes != 1500880 {
			t.Errorf("%s: send buffer %d, window %d", name, near.SendBytes, near.WindowBytes)
		}
		far := mustPlan(t, satellite.received(), name, Options{})
		if far.SendBytes != near.WindowBytes || far.WindowBytes != near.SendBytes || len(far.Directions) != 2 {
			t.Errorf("%s: the other end is no mirror: %d, %d", name, far.SendBytes, far.WindowBytes)
		}
		for _, d := range near.Directions {
			if d.Fills < enough || d.ExpectedBps > d.RateBps {
				t.Errorf("%s: %+v", name, d)
			}
		}
	}
	sender := mustPlan(t, Path{RateBps: 1 * mbit, BackBps: 50 * mbit, RTT: 40 * ms}, "windows-2000", Options{Role: Sender})
	receiver := mustPlan(t, Path{RateBps: 1 * mbit, BackBps: 50 * mbit, RTT: 40 * ms}, "windows-2000",
		Options{Role: Receiver})
	if sender.LargeWindows || !receiver.LargeWindows || sender.setting("Tcp1323Opts") != "" ||
		receiver.setting("Tcp1323Opts") != "1" {
		t.Errorf("only what is received needs a scale: %v, %v", sender.Settings, receiver.Settings)
	}
}

// A cloud's bound on one flow is what a window has to fill, and connections the rest.
func TestOneFlowIsBounded(t *testing.T) {
	for _, c := range []struct {
		rate, cap float64
		window    int
		least     float64 // connections; 0: no warning
	}{{25e9, 5e9, 43750360, 5}, {10e9, 3e9, 26250800, 4}, {1e9, 5e9, 8751240, 0}} {
		p := mustPlan(t, Path{RateBps: c.rate, RTT: 70 * ms, FlowCapBps: c.cap}, "linux-6.1", Options{})
		if p.WindowBytes != c.window || (c.least == 0) != (len(p.Warnings) == 0) ||
			c.least > 0 && (p.Warnings[0].Code != FlowCapped || p.Warnings[0].Args[2] != c.least) {
			t.Errorf("%v: window %d, %v", c, p.WindowBytes, p.Warnings)
		}
	}
}

// TestNow_CountsSegmentsInService checks that a small send buffer's rate includes the time that a segment and its
// acknowledgement take on the line, as predict's does.
func TestNow_CountsSegmentsInService(t *testing.T) {
	p := mustPlan(t, Path{RateBps: 2.608 * mbit, RTT: 43500 * time.Microsecond}, "windows-2000", Options{})
	round := 43.5e-3 + (1500+40)*8/(2.608*mbit)
	if want := 8192 * 8 / round; math.Abs(p.Now.GoodputBps/want-1) > 1e-3 {
		t.Errorf("now %g, want %g", p.Now.GoodputBps, want)
	}
}

// TestTotal_SumAndOne checks that many connections with small windows fill a line that one of them does not.
func TestTotal_SumAndOne(t *testing.T) {
	for _, c := range []struct {
		connections int
		sum, one    float64 // shares of the line
	}{{1, 0.027, 0.027}, {25, 0.67, 0.027}, {300, 1, 0.027}} {
		p, err := New(Path{RateBps: 60 * mbit, RTT: 80 * ms, ReceiveWindow: 16060, Connections: c.connections},
			mustTarget(t, "windows-2000"), Options{Role: Receiver})
		if err != nil {
			t.Fatal(err)
		}
		sum, fills := p.Total(p.ExpectedBps)
		one := p.ExpectedBps / p.CapacityBps
		if math.Abs(fills-c.sum) > 0.03 || math.Abs(one-c.one) > 0.005 || math.Abs(sum-fills*p.CapacityBps) > 1 {
			t.Errorf("%d connections fill %.3f, one %.3f; want %.3f, %.3f", c.connections, fills, one, c.sum, c.one)
		}
	}
	p, err := New(Path{RateBps: 10 * 1e3 * mbit, RTT: 20 * ms, FlowCapBps: 4 * 1e3 * mbit, Connections: 2},
		mustTarget(t, "linux-6.12"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, fills := p.Total(p.ExpectedBps); math.Abs(fills-0.8) > 0.01 {
		t.Errorf("two connections of 4 Gbit/s fill %.3f of 10 Gbit/s", fills)
	}
}

// TestAFD_SmallHosts checks the default of DefaultSendWindow on hosts with less than 19 MB of memory.
func TestAFD_SmallHosts(t *testing.T) {
	for memory, quota := range map[int64]float64{0: 8192, 12 << 20: 4096, 18 << 20: 4096, 19 << 20: 8192, 1 << 30: 8192} {
		p, err := New(Path{RateBps: 20 * mbit, RTT: 70 * ms, MemoryBytes: memory}, mustTarget(t, "windows-2000"), Options{})
		if err != nil {
			t.Fatal(err)
		}
		if got := p.Now.GoodputBps * 0.0706 / 8; math.Abs(got/quota-1) > 0.01 {
			t.Errorf("%d bytes of memory: %.0f bytes in flight, want %.0f", memory, got, quota)
		}
	}
}

// TestKeepSizes checks that a fixed size which costs less than a tenth is not changed where that needs a restart.
func TestKeepSizes(t *testing.T) {
	for name, c := range map[string]struct {
		target  string
		rtt     time.Duration
		values  map[string]string
		changed string
	}{
		"a few percent": {"windows-xp", 26 * ms, map[string]string{"TcpWindowSize": "65535",
			"DefaultSendWindow": "65536"}, ""},
		"a send buffer of half the path": {"windows-xp", 26 * ms, map[string]string{"TcpWindowSize": "65535",
			"DefaultSendWindow": "32768"}, "DefaultSendWindow"},
		"a window of two thirds": {"server-2003", 40 * ms, map[string]string{"TcpWindowSize": "65535",
			"DefaultSendWindow": "131072"}, "Tcp1323Opts TcpWindowSize GlobalMaxTcpWindowSize"},
		"windows 95": {"windows-95", 19 * ms, map[string]string{"DefaultRcvWindow": "46720"}, ""},
	} {
		p := mustPlan(t, Path{RateBps: 20 * mbit, RTT: c.rtt}, c.target, Options{Values: c.values})
		var names []string
		for _, s := range p.Settings {
			names = append(names, s.Name)
		}
		if got := strings.Join(names, " "); got != c.changed || c.changed == "" && p.ExpectedBps < 0.9*p.CapacityBps {
			t.Errorf("%s: changes %q, want %q; expected %.3f of the line", name, got, c.changed, p.ExpectedBps/p.CapacityBps)
		}
	}
}

// TestNew_ExpectedIsAtLeastNow checks that settings that nothing changes give the goodput of now, and that changed ones
// give no less.
func TestNew_ExpectedIsAtLeastNow(t *testing.T) {
	unchanged := 0
	for _, target := range []string{"windows-2000", "windows-xp", "server-2003", "windows-10", "linux-6.1"} {
		for _, rate := range []float64{0.2, 1, 2, 3, 5, 9, 30, 200} {
			for _, rtt := range []time.Duration{2, 7, 13, 19, 31, 90} {
				p, err := New(Path{RateBps: rate * mbit, RTT: rtt * ms}, mustTarget(t, target), Options{})
				if err != nil {
					t.Fatal(err)
				}
				if p.Now == nil {
					t.Fatalf("%s: no goodput of now", target)
				}
				if len(p.Settings) == 0 {
					unchanged++
				}
				if p.ExpectedBps < 0.999*p.Now.GoodputBps ||
					len(p.Settings) == 0 && p.ExpectedBps > 1.001*p.Now.GoodputBps {
					t.Errorf("%s, %v Mbit/s x %d ms: now %.0f, expected %.0f, settings %v", target, rate, rtt,
						p.Now.GoodputBps, p.ExpectedBps, p.Settings)
				}
			}
		}
	}
	if unchanged < 20 {
		t.Errorf("%d plans change nothing", unchanged)
	}
}
