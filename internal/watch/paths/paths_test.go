package paths

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"
)

const every = 5 * time.Minute

// raced says that the race detector makes everything ten times as slow.
var raced bool

var begin = time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)

// network is a simulated network whose path only changes on a test's request.
type network struct {
	rng     *rand.Rand
	rtt     float64 // seconds
	noise   float64 // of the least round trip, as a ratio
	swing   float64 // by which a busy evening lengthens it
	outlier float64 // how often a window has only connections that waited
	rate    float64
	slow    float64 // a standard normal process that resembles itself over an hour
	loss    float64
	mtu     int
	mixed   float64 // part of its hosts with ECN; 0 and 1: all alike
}

func newNetwork(seed uint64) *network {
	rng := rand.New(rand.NewPCG(seed, 15))
	n := &network{rng: rng, rtt: 0.005 * math.Pow(40, rng.Float64()), noise: 0.005 + 0.025*rng.Float64(),
		rate: 1e7 * math.Pow(100, rng.Float64()), mtu: 1500}
	switch seed % 10 {
	case 0, 1:
		n.swing = 0.3 * rng.Float64()
	case 2:
		n.noise = 0.15
	case 3, 4:
		n.outlier = 0.02
	case 5:
		n.mixed = 0.5 + rng.Float64()/2
	}
	n.loss = []float64{0, 1e-5, 1e-4, 1e-3, 5e-3}[rng.IntN(5)]
	return n
}

func (n *network) window(at time.Time) Window {
	const alike = 0.92 // from window to window: an hour
	n.slow = alike*n.slow + math.Sqrt(1-alike*alike)*n.rng.NormFloat64()
	evening := math.Max(0, math.Sin(2*math.Pi*float64(at.Unix()%86400)/86400))
	w := Window{RTT: n.rtt * (1 + n.swing*evening) * math.Exp(n.noise*math.Abs(n.rng.NormFloat64())),
		Rate: n.rate * math.Exp(0.2*n.slow-n.swing*evening), MTU: n.mtu, ECN: "none"}
	if n.rng.Float64() < n.outlier {
		w.RTT *= 1.3 + 3*n.rng.Float64()
	}
	if n.mixed > 0 {
		all, none := true, true
		for range 4 {
			has := n.rng.Float64() < n.mixed
			all, none = all && has, none && !has
		}
		w.ECN = map[bool]string{all: "all", none: "none"}[true]
		if !all && !none {
			w.ECN = "some"
		}
	}
	w.Segments = int64(500 * math.Pow(100, n.rng.Float64()))
	burst := math.Exp(n.rng.NormFloat64()) // losses come together
	w.Retransmitted = n.events(w.Segments, n.loss*burst*(1+3*n.swing*evening))
	w.Reordered = n.events(w.Segments, n.loss*burst/4)
	return w
}

// events is about Poisson's.
func (n *network) events(segments int64, p float64) int64 {
	mean := float64(segments) * p
	return int64(math.Max(0, math.Round(mean+math.Sqrt(mean)*n.rng.NormFloat64())))
}

func prefix(i int) netip.Prefix {
	return netip.MustParsePrefix(fmt.Sprintf("10.%d.%d.0/24", i>>8, i&255))
}

// simulate calls each with the events of every window of a time span.
func simulate(networks []*network, length time.Duration, before func(at time.Time), each func(Event)) *Host {
	h := &Host{}
	for at := begin; at.Before(begin.Add(length)); at = at.Add(every) {
		if before != nil {
			before(at)
		}
		windows := map[netip.Prefix]Window{}
		for i, n := range networks {
			windows[prefix(i)] = n.window(at)
		}
		for _, e := range h.Add(at, windows) {
			each(e)
		}
	}
	return h
}

func many(n int, seed uint64) (all []*network) {
	for i := range n {
		all = append(all, newNetwork(seed+uint64(i)))
	}
	return all
}

// TestAQuietHostIsLeftInPeace: 200 networks whose paths do not change, with noise, busy
// evenings, outliers, bursts of loss and hosts that differ, over a week and a day to learn:
// at most one event in the week.
func TestAQuietHostIsLeftInPeace(t *testing.T) {
	n, days := 200, 8
	if testing.Short() || raced {
		n, days = 25, 4
	}
	learnt, events := 0, 0
	simulate(many(n, 1000), time.Duration(days)*24*time.Hour, nil, func(e Event) {
		for _, s := range e.Shifts {
			if e.At.Sub(begin) < 24*time.Hour {
				learnt++
				continue
			}
			t.Logf("%s %s: %+v", e.At, e.Network, s)
		}
		if e.At.Sub(begin) >= 24*time.Hour && !e.Shifts[0].Back { // its end is no further one
			events++
		}
	})
	t.Logf("%d false alarms in %d days of %d networks, and %d on the first day", events, days-1, n, learnt)
	if events > 1 || learnt > n/5 {
		t.Error("too many")
	}
}

// TestAStepIsFound: after a day, one network's round trip is a fifth longer.
func TestAStepIsFound(t *testing.T) {
	trials, found, late := 100, 0, 0
	for i := range trials {
		n := newNetwork(uint64(7000 + i*10 + 6)) // plain ones: noise of 0.5 to 3 %
		n.rtt = math.Max(n.rtt, 0.010)
		step := begin.Add(26*time.Hour + time.Duration(i)*every)
		was := n.rtt
		seen := false
		simulate([]*network{n}, step.Add(10*every).Sub(begin), func(at time.Time) {
			if at.Equal(step) {
				n.rtt = 1.2 * was
			}
		}, func(e Event) {
			for _, s := range e.Shifts {
				if s.Metric == RTT && (seen || e.At.Before(step)) {
					t.Errorf("trial %d: %s, %+v", i, e.At.Sub(step), s)
					continue
				}
				if s.Metric != RTT {
					continue
				}
				seen = true
				if e.At.Sub(step) > 4*every { // the fifth window ends then
					late++
				} else {
					found++
				}
				if math.Abs(s.After/s.Before-1.2) > 0.05 {
					t.Errorf("trial %d: %v instead of %v", i, s.After, s.Before)
				}
			}
		})
	}
	if found < 95 {
		t.Errorf("found in %d of %d trials within five windows, later in %d", found, trials, late)
	}
}

// TestOtherShifts reports each metric's change once, with the values before and after, and once when it is over.
func TestOtherShifts(t *testing.T) {
	for name, c := range map[string]struct {
		change func(n *network, on bool)
		within int
		shift  func(s Shift) bool
	}{
		"loss": {func(n *network, on bool) { n.loss = map[bool]float64{true: 0.03, false: 1e-4}[on] }, 11,
			func(s Shift) bool { return s.Metric == Loss && s.After > 0.01 && s.Before < 0.001 }},
		"a tunnel": {func(n *network, on bool) { n.mtu = map[bool]int{true: 1420, false: 1500}[on] }, 4,
			func(s Shift) bool { return s.Metric == MTU && s.Before == 1500 && s.After == 1420 }},
		"a slower path": {func(n *network, on bool) { n.rate = map[bool]float64{true: 2e7, false: 1e8}[on] }, 13,
			func(s Shift) bool { return s.Metric == Rate && s.After < s.Before/2 }},
		"a shorter path": {func(n *network, on bool) { n.rtt = map[bool]float64{true: 0.02, false: 0.05}[on] }, 4,
			func(s Shift) bool { return s.Metric == RTT && s.After < s.Before }},
		"ECN": {func(n *network, on bool) { n.mixed = map[bool]float64{true: 1, false: 0}[on] }, 4,
			func(s Shift) bool { return s.Metric == ECN && s.BeforeWord == "none" && s.AfterWord == "all" }},
	} {
		t.Run(name, func(t *testing.T) {
			n := newNetwork(6)
			n.rtt = 0.05
			n.loss = 1e-4
			from, until := begin.Add(30*time.Hour), begin.Add(33*time.Hour)
			var reported []Shift
			simulate([]*network{n}, 36*time.Hour, func(at time.Time) { c.change(n, !at.Before(from) && at.Before(until)) },
				func(e Event) {
					if len(reported) == 0 && e.At.Sub(from) > time.Duration(c.within)*every {
						t.Errorf("reported only after %s", e.At.Sub(from))
					}
					reported = append(reported, e.Shifts...)
				})
			own, back := 0, 0
			for _, s := range reported {
				switch {
				case s.Back:
					back++
				case c.shift(s):
					own++
				case s.Metric == Reordering && name == "loss": // comes with it here
				default:
					t.Errorf("%+v", s)
				}
			}
			if own != 1 || back < 1 {
				t.Errorf("reported: %+v", reported)
			}
		})
	}
}

// TestAllAtOnceIsOneWarning: the host's own uplink gets longer.
func TestAllAtOnceIsOneWarning(t *testing.T) {
	networks := many(40, 300)
	step := begin.Add(25 * time.Hour)
	var reported []Event
	simulate(networks, 28*time.Hour, func(at time.Time) {
		if at.Equal(step) {
			for _, n := range networks {
				n.rtt += 0.1
			}
		}
	}, func(e Event) {
		if !e.At.Before(step) {
			reported = append(reported, e)
		}
	})
	if len(reported) != 1 || reported[0].Network.IsValid() || reported[0].Networks < 30 || reported[0].Judged != 40 ||
		reported[0].Shifts[0].Metric != RTT {
		t.Errorf("%d events: %+v", len(reported), reported)
	}
}

// TestEveningsAreReportedOnce reports a change that comes each evening on the first one only.
func TestEveningsAreReportedOnce(t *testing.T) {
	n := newNetwork(6)
	n.swing = 0.8
	shifts := 0
	simulate([]*network{n}, 8*24*time.Hour, nil, func(e Event) {
		for _, s := range e.Shifts {
			if s.Metric == RTT && !s.Back && e.At.Sub(begin) > 48*time.Hour {
				shifts++
				t.Logf("%s: %+v", e.At.Sub(begin), s)
			}
		}
	})
	if shifts > 0 {
		t.Errorf("reported %d times after two days", shifts)
	}
}

// TestStoredAndRestored: a host that was stored goes on as if it had never been.
func TestStoredAndRestored(t *testing.T) {
	step := begin.Add(26 * time.Hour)
	run := func(restart bool) (all []Event) {
		networks := many(6, 60)
		h := &Host{}
		for at := begin; at.Before(begin.Add(28 * time.Hour)); at = at.Add(every) {
			if at.Equal(step) {
				networks[3].rtt *= 2
			}
			if restart && at.Equal(step.Add(2*every)) {
				stored, err := json.Marshal(h)
				if err != nil {
					t.Fatal(err)
				}
				h = &Host{}
				if err := json.Unmarshal(stored, h); err != nil {
					t.Fatal(err)
				}
				h.Restore()
				if len(stored) > 8<<10*len(networks) {
					t.Errorf("%d bytes for %d networks", len(stored), len(networks))
				}
			}
			windows := map[netip.Prefix]Window{}
			for i, n := range networks {
				windows[prefix(i)] = n.window(at)
			}
			all = append(all, h.Add(at, windows)...)
		}
		return all
	}
	whole, again := run(false), run(true)
	if len(whole) != 1 || len(again) != 1 || whole[0].Network != prefix(3) || again[0].Network != prefix(3) ||
		!whole[0].At.Equal(again[0].At) {
		t.Errorf("%+v\n%+v", whole, again)
	}
}

// TestNetworks_StrangersDisplaceNothingOfOurs: networks that come to this host take neither the places of those that it
// connects to, nor keep new ones of those out.
func TestNetworks_StrangersDisplaceNothingOfOurs(t *testing.T) {
	const ours = 50
	h, at := &Host{}, begin
	add := func(first, count int, own bool) {
		windows := map[netip.Prefix]Window{}
		for i := range count {
			windows[prefix(first+i)] = Window{RTT: 0.1, Own: own}
		}
		h.Add(at, windows)
		at = at.Add(every)
	}
	kept := func(count int) (n int) {
		for i := range count {
			if h.Networks[prefix(i)] != nil {
				n++
			}
		}
		return n
	}
	add(1000, maxNetworks, false)
	add(0, ours, true)
	for day := range 14 {
		at = begin.AddDate(0, 0, day)
		add(1000, 2*maxNetworks, false)
		add(10_000+day*maxNetworks, maxNetworks, false)
		if day == 7 {
			add(ours, ours, true)
		}
	}
	if n := kept(2 * ours); n != 2*ours || len(h.Networks) != maxNetworks {
		t.Errorf("%d of %d networks of our own are kept, %d in all", n, 2*ours, len(h.Networks))
	}
	add(0, maxNetworks+1, true)
	if n := kept(maxNetworks + 1); n != maxNetworks {
		t.Errorf("%d of our own are kept where there are places for %d", n, maxNetworks)
	}
}

// TestMostNetworks: the number of networks is bounded, and the one that was silent longest is dropped.
func TestMostNetworks(t *testing.T) {
	h := &Host{}
	for i := range 2 * maxNetworks {
		h.Add(begin.Add(time.Duration(i)*time.Second), map[netip.Prefix]Window{prefix(i): {RTT: 0.1}})
	}
	if len(h.Networks) != maxNetworks || h.Networks[prefix(0)] == nil {
		t.Fatalf("%d", len(h.Networks))
	}
	h.Add(begin.Add(26*time.Hour), map[netip.Prefix]Window{prefix(9999): {RTT: 0.1}})
	if len(h.Networks) != maxNetworks || h.Networks[prefix(9999)] == nil || h.Networks[prefix(0)] != nil {
		t.Errorf("%d", len(h.Networks))
	}
}
