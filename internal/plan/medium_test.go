package plan

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// TestNewForAll_LeastWindow checks that one window gives every path 95 % of its rate and that two segments less do not,
// and that with a bound on the delay every path keeps it or a warning names the paths.
func TestNewForAll_LeastWindow(t *testing.T) {
	lan := Path{RateBps: 100 * mbit, RTT: 300 * time.Microsecond}
	slowLAN := Path{RateBps: 10 * mbit, RTT: 2 * ms}
	wan := Path{RateBps: 1 * mbit, RTT: 250 * ms}
	leased := Path{RateBps: 2 * mbit, RTT: 80 * ms}
	modem := Path{RateBps: 33.6e3, RTT: 150 * ms}
	adsl := Path{RateBps: 0.5 * mbit, BackBps: 8 * mbit, RTT: 45 * ms}
	for name, c := range map[string]struct {
		paths    []Path
		maxDelay time.Duration
		window   int
		choose   bool
	}{
		"a LAN and a WAN":                    {[]Path{lan, wan}, 0, 32120, false},
		"a LAN, a WAN and a modem":           {[]Path{lan, wan, modem}, 0, 32120, false},
		"a slow LAN, a leased line, a modem": {[]Path{slowLAN, leased, modem}, 0, 23360, false},
		"a LAN and a line of two rates":      {[]Path{lan, adsl}, 0, 46720, false},
		"three paths from 20 to 900 ms": {[]Path{{RateBps: 10 * mbit, RTT: 20 * ms},
			{RateBps: 64e3, RTT: 400 * ms}, {RateBps: 28.8e3, RTT: 900 * ms}}, 0, 26280, false},
		"a delay that the LAN keeps":           {[]Path{lan, wan}, 15 * ms, 32120, false},
		"a delay that the modem cannot keep":   {[]Path{lan, wan, modem}, 500 * ms, 2920, true},
		"a delay that the leased line exceeds": {[]Path{leased, {RateBps: 10 * mbit, RTT: 80 * ms}}, 100 * ms, 40880, true},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := NewForAll(c.paths, mustTarget(t, "windows-2000"), Options{MaxDelay: c.maxDelay})
			if err != nil {
				t.Fatal(err)
			}
			if p.SharedWindow != c.window {
				t.Errorf("window %d, want %d", p.SharedWindow, c.window)
			}
			choose := slices.ContainsFunc(p.Warnings, func(s Statement) bool { return s.Code == RateOrDelay })
			if choose != c.choose {
				t.Errorf("warnings %v, want a choice: %v", p.Warnings, c.choose)
			}
			unbounded := slices.ContainsFunc(p.Warnings, func(s Statement) bool { return s.Code == DelayUnbounded })
			if unbounded {
				t.Errorf("fixed windows are said to keep no bound: %v", p.Warnings)
			}
			less := 1.0
			for i, s := range p.Shared {
				if !c.choose && s.Goodput < 0.95 {
					t.Errorf("%s has %.3f of its rate", c.paths[i], s.Goodput)
				}
				if c.maxDelay > 0 && s.Delay.Seconds() > c.maxDelay.Seconds() && p.SharedWindow > 2*DefaultMSS {
					t.Errorf("%s gets %s more", c.paths[i], s.Delay)
				}
				less = min(less, shares(c.paths[i:i+1], Both, c.window-2920, c.window-2920)[0].Goodput)
			}
			if !c.choose && less >= 0.95 {
				t.Errorf("%d bytes suffice", c.window-2920)
			}
		})
	}
	for target, want := range map[string]Code{"linux": CeilingsFollowLargest, "aix": LeastWindowForAll,
		"solaris": PresentWindowLarger} {
		p, err := NewForAll([]Path{lan, wan}, mustTarget(t, target), Options{})
		if err != nil || !slices.ContainsFunc(p.Notes, func(s Statement) bool { return s.Code == want }) {
			t.Errorf("%s: no note %s: %v, %v", target, want, p.Notes, err)
		}
	}
	automatic, err := NewForAll([]Path{lan, wan}, mustTarget(t, "linux"), Options{MaxDelay: ms})
	if err != nil || !slices.ContainsFunc(automatic.Warnings, func(s Statement) bool { return s.Code == DelayUnbounded }) {
		t.Errorf("the ceilings keep no bound, and no warning says so: %v, %v", automatic.Warnings, err)
	}
	if _, err := NewForAll([]Path{lan, {RateBps: -1, RTT: ms}}, mustTarget(t, "linux"), Options{}); err == nil {
		t.Error("an impossible second path was taken")
	}
}

// TestNewForAll_DelayIsTheQueuesOfAllInFlight checks the added delay against the window's time at the path's rate, and
// that a bound which even two segments exceed is named with the path.
func TestNewForAll_DelayIsTheQueuesOfAllInFlight(t *testing.T) {
	modem := Path{RateBps: 28.8e3, RTT: 180 * ms}
	dsl := Path{RateBps: 6 * mbit, RTT: 35 * ms}
	for _, c := range []struct {
		maxDelay time.Duration
		exceeded bool
		delay    float64 // of the modem
	}{
		{0, false, 20*1500*8/28.8e3 - 0.18}, {2 * time.Second, false, 4*1500*8/28.8e3 - 0.18},
		{660 * ms, false, 2*1500*8/28.8e3 - 0.18}, {650 * ms, true, 2*1500*8/28.8e3 - 0.18},
	} {
		p, err := NewForAll([]Path{dsl, modem}, mustTarget(t, "windows-2000"), Options{MaxDelay: c.maxDelay})
		if err != nil {
			t.Fatal(err)
		}
		got := p.Shared[1].Delay.Seconds()
		long := slices.ContainsFunc(p.Warnings, func(s Statement) bool { return s.Code == LongQueue })
		if long != (c.maxDelay == 0) {
			t.Errorf("at most %s: a delay of %.3f s warned about: %v", c.maxDelay, got, long)
		}
		exceeded := slices.ContainsFunc(p.Warnings, func(s Statement) bool { return s.Code == LeastWindowDelays })
		if math.Abs(got-c.delay) > 0.001 || exceeded != c.exceeded {
			t.Errorf("at most %s: a window of %d adds %.3f s, want %.3f; two segments exceed the bound: %v", c.maxDelay,
				p.SharedWindow, got, c.delay, exceeded)
		}
	}
}

// TestNewForAll_CountsTimestamps checks that the one window consists of segments without the bytes of timestamps.
func TestNewForAll_CountsTimestamps(t *testing.T) {
	paths := []Path{{RateBps: 2 * mbit, RTT: 90 * ms}, {RateBps: 100 * mbit, RTT: ms}}
	for timestamps, segment := range map[bool]int{false: 1460, true: 1448} {
		p, err := NewForAll(paths, mustTarget(t, "windows-2000"), Options{Timestamps: timestamps})
		if err != nil {
			t.Fatal(err)
		}
		if p.SharedWindow != 18*segment || p.WindowBytes != 18*segment || p.Shared[0].Goodput < 0.95 {
			t.Errorf("timestamps %v: a window of %d, %d in the plan, fills %.3f", timestamps, p.SharedWindow, p.WindowBytes,
				p.Shared[0].Goodput)
		}
	}
}

// TestNewForAll_NotesTheLeastWindowWhereItSuffices checks that a window below the least one, which the target's lack of
// window scaling or the memory bounds, is not called sufficient.
func TestNewForAll_NotesTheLeastWindowWhereItSuffices(t *testing.T) {
	lan := Path{RateBps: 100 * mbit, RTT: 300 * time.Microsecond}
	wan := Path{RateBps: 24 * mbit, RTT: 118 * ms}
	crowded := lan
	crowded.Connections = 300
	crowded.MemoryBytes = 64 << 20
	for name, c := range map[string]struct {
		target string
		paths  []Path
		noted  bool
	}{
		"a window that suffices":   {"windows-2000", []Path{lan, wan}, true},
		"no window scaling":        {"windows-95", []Path{lan, wan}, false},
		"memory bounds the window": {"windows-2000", []Path{crowded, wan}, false},
	} {
		p := must.Get(NewForAll(c.paths, mustTarget(t, c.target), Options{}))(t)
		noted := slices.ContainsFunc(p.Notes, func(s Statement) bool { return s.Code == LeastWindowForAll })
		if noted != c.noted || noted != (p.Shared[1].Goodput >= 0.95) {
			t.Errorf("%s: a window of %d gives %.3f, noted as sufficient: %v", name, p.SharedWindow, p.Shared[1].Goodput, noted)
		}
	}
}

// TestNewForAll_CountsSendBuffers checks that the table of Windows XP has the send buffer that the plan sets. Its
// window of 65,535 bytes is larger than the plan's and stays.
func TestNewForAll_CountsSendBuffers(t *testing.T) {
	paths := []Path{{RateBps: 1 * mbit, RTT: 250 * ms}, {RateBps: 56e3, RTT: 120 * ms}}
	for role, want := range map[Role]float64{Both: 0.96, Sender: 0.96, Receiver: 1} {
		p := must.Get(NewForAll(paths, mustTarget(t, "windows-xp"), Options{Role: role}))(t)
		wan := paths[0]
		wan.MSS = DefaultMSS
		got := p.Shared[0].Goodput
		if role != Receiver && math.Abs(got-wan.Fills(p.SharedSend)) > 1e-9 || math.Abs(got-want) > 0.01 {
			t.Errorf("%s: %.3f of the rate with a send buffer of %d and a window of %d", role, got, p.SharedSend,
				p.SharedWindow)
		}
	}
	low, err := NewForAll(paths, mustTarget(t, "windows-xp"), Options{MaxDelay: 200 * ms})
	if err != nil || low.SharedWindow > 2*2920 || len(low.Settings) == 0 {
		t.Errorf("a window that adds too much delay is lowered: %d, %v, %v", low.SharedWindow, low.Settings, err)
	}
}

// The article's Ethernet, ISDN and modem: two segments fill only 83 % of the Ethernet, since a segment takes longer
// than its round trip. The present window is larger than the least sufficient one and stays.
func TestTheArticlesPaths(t *testing.T) {
	lan := Path{RateBps: 10 * mbit, RTT: ms, Overhead: 38, HalfDuplex: true}
	isdn := Path{RateBps: 64e3, RTT: 30 * ms}
	modem := Path{RateBps: 28.8e3, RTT: 130 * ms}
	paths := []Path{lan, isdn, modem}
	two := shares(paths, Both, 2920, 2920)
	if got := two[0].Goodput; math.Abs(got-0.835) > 0.005 {
		t.Errorf("two segments fill %.3f of the Ethernet", got)
	}
	p := must.Get(NewForAll(paths, mustTarget(t, "windows-95"), Options{}))(t)
	if len(p.Settings) != 0 || p.SharedWindow != 8760 || p.Shared[0].Goodput != 1 || p.Shared[2].Delay.Seconds() < 1 ||
		!strings.Contains(fmt.Sprint(p.Notes), string(PresentWindowLarger)) {
		t.Errorf("window %d, settings %v, %+v\n%v", p.SharedWindow, p.Settings, p.Shared, p.Notes)
	}
}
