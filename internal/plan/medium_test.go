package plan

import (
	"fmt"
	"math"
	"strings"
	"testing"
)

func TestOneWindowForSeveralPaths(t *testing.T) {
	paths := []Path{{RateBps: 10 * mbit, RTT: 20 * ms}, {RateBps: 64e3, RTT: 400 * ms}, {RateBps: 28.8e3, RTT: 900 * ms}}
	window := HappyMedium(paths)
	// A round of two segments and an acknowledgement takes 22.4, 780 and 1744 ms: 27.3, 6.08
	// and 6.11 kB fill them. The medium is sqrt(27.3 x 6.08) kB.
	if window != 4*2920 {
		t.Errorf("window %d", window)
	}
	all := shares(paths, window)
	if math.Abs(all[0].Goodput-0.428) > 0.002 || all[1].Goodput != 1 || all[0].Delay != 0 ||
		math.Abs(all[1].Delay.Seconds()-0.72) > 0.01 || all[1].Memory != window-all[1].Window {
		t.Errorf("%+v", all)
	}
	worst := func(window float64) (factor float64) {
		for _, p := range paths {
			factor = max(factor, p.fit()/window, window/p.fit())
		}
		return factor
	}
	for other := 2920; other < 60000; other += 2920 {
		if worst(float64(other)) < worst(float64(window))*0.99 {
			t.Errorf("%d is better than %d: %v, %v", other, window, worst(float64(other)), worst(float64(window)))
		}
	}
	for target, want := range map[string]int{"windows-95": 4 * 2920, "windows-2000": 4 * 2920, "linux": 9 * 2920} {
		p, err := NewForAll(paths, mustTarget(t, target), Options{})
		if err != nil || p.WindowBytes != want || len(p.Shared) != 3 {
			t.Errorf("%s: window %d, %v, %+v", target, p.WindowBytes, err, p.Shared)
		}
	}
	if _, err := NewForAll([]Path{paths[0], {RateBps: -1, RTT: ms}}, mustTarget(t, "linux"), Options{}); err == nil {
		t.Error("an impossible second path was taken")
	}
}

// The article's Ethernet, ISDN and modem: two segments fill only 83 % of the Ethernet, whose
// segments take longer than its round trip. What the system has is more than the medium, and
// stays.
func TestTheArticlesPaths(t *testing.T) {
	lan := Path{RateBps: 10 * mbit, RTT: ms, Overhead: 38, HalfDuplex: true}
	isdn := Path{RateBps: 64e3, RTT: 30 * ms}
	modem := Path{RateBps: 28.8e3, RTT: 130 * ms}
	paths := []Path{lan, isdn, modem}
	two := shares(paths, 2920)
	if got := two[0].Goodput; math.Abs(got-0.835) > 0.005 {
		t.Errorf("two segments fill %.3f of the Ethernet", got)
	}
	p, err := NewForAll(paths, mustTarget(t, "windows-95"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Settings) != 0 || p.SharedWindow != 8760 || p.Shared[0].Goodput != 1 || p.Shared[2].Delay.Seconds() < 1 ||
		!strings.Contains(fmt.Sprint(p.Notes), string(PresentWindowLarger)) {
		t.Errorf("window %d, settings %v, %+v\n%v", p.SharedWindow, p.Settings, p.Shared, p.Notes)
	}
}
