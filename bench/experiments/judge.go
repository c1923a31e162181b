package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/model"
)

func where(cells []*cell, keep func(*cell) bool) (kept []*cell) {
	for _, c := range cells {
		if keep(c) {
			kept = append(kept, c)
		}
	}
	return kept
}

func isDefault(c *cell) bool { return strings.HasSuffix(c.column, "default") }
func isTuned(c *cell) bool   { return strings.HasSuffix(c.column, "tuned") }

// agreement compares two figures over many cells: do they rise and fall together, and is
// one typically as large as the other?
func agreement(cells []*cell, of, against func(*cell) float64) (rank, typical float64, n int) {
	var xs, ys []float64
	for _, c := range cells {
		if a, b := of(c), against(c); a > 0 && b > 0 {
			xs, ys = append(xs, a), append(ys, b)
		}
	}
	return rankCorrelation(xs, ys), median(ratios(cells, of, against)), len(xs)
}

// judgePool judges the default columns of all the note's tables together.
func judgePool(tables []*experiment) []finding {
	var pool []*cell
	for _, e := range tables {
		pool = append(pool, where(e.cells, isDefault)...)
	}
	rank, typical, n := agreement(pool, expected, published)
	const asked = "(asked: rank correlation 0.93 or more, median ratio within 15 %)"
	all := []finding{{fmt.Sprintf("Default settings, network and VPN, all tables (%d cells): the least of line, "+
		"gateways and outstanding/RTT "+
		"against the published figures has rank correlation %.3f and median ratio %.2f %s.", n, rank, typical, asked),
		exactly(rank).judge(func(r float64) bool { return r >= 0.93 && within(typical, 0.15) })}}
	ranks := over(func(of func(*cell) float64) float64 { r, _, _ := agreement(pool, of, published); return r })
	ratio := over(func(of func(*cell) float64) float64 { _, m, _ := agreement(pool, of, published); return m })
	return append(all,
		finding{fmt.Sprintf("The lab's real TCP in the same cells has rank correlation %.3f (%.3f to %.3f; asked: 0.93 or "+
			"more).",
			ranks.mid, ranks.low, ranks.high), ranks.judge(atLeast(0.93))},
		finding{fmt.Sprintf("Its median ratio is %v (within 15 %%).", ratio), ratio.judge(near(0.15))})
}

// judgeGateways judges the tuned columns of one table and the best possible gain from windows there. It also reports
// the gateways' cost for the small windows.
func judgeGateways(e *experiment) (all []finding) {
	theirs, ours := addedDelay(e, published), addedDelay(e, measured)
	all = append(all, finding{text: fmt.Sprintf("With default settings a round trip through the gateways takes %.1f ms "+
		"longer in the published "+
		"figures (median, from outstanding/rate) and %.1f ms here.", 1e3*theirs, 1e3*ours)})
	for _, side := range []string{"network", "vpn"} {
		tuned := where(e.cells, func(c *cell) bool { return isTuned(c) && strings.HasPrefix(c.column, side) })
		reached := over(func(of func(*cell) float64) float64 { return median(ratios(tuned, of, expected)) })
		all = append(all, finding{fmt.Sprintf("Tuned, %s: the lab reaches %v of what line, gateways and windows allow "+
			"(median; asked: 0.95 or more).",
			side, reached), reached.judge(atLeast(0.95))})
		if side == "network" {
			all = append(all, spared(e, reached))
		}
		theirs := median(ratios(tuned, published, expected))
		if theirs >= 0.9 {
			continue
		}
		all = append(all, finding{text: fmt.Sprintf("The published tuned figures (%s) are %.0f %% of that. No window "+
			"explains it, as the windows asked for "+
			"hold a full path: something else limited those transfers. %s", side, 100*theirs, lossThatExplains(tuned))})
	}
	return all
}

// spared reports the share of the possible rate that twice the buffers reach, given the line and the windows. The
// arithmetic uses the empty path's round trip, which includes the hosts' own time and the serialization of a burst of
// writes on the line.
func spared(e *experiment, tuned span) finding {
	double := where(e.cells, func(c *cell) bool { return c.column == twice })
	reached := over(func(of func(*cell) float64) float64 { return median(ratios(double, of, expected)) })
	why := "so buffers are not what is missing to 1"
	if reached.mid > tuned.mid {
		why = fmt.Sprintf("so %.2f of what is missing is due to buffers that just hold the empty path: bursts of writes "+
			"wait for themselves on the line, and hosts take time", reached.mid-tuned.mid)
	}
	return finding{text: fmt.Sprintf("With twice those buffers the lab reaches %v, %s.", reached, why)}
}

// addedDelay is the increase of the round trip through the gateways, in seconds, where the bytes in flight limit the
// rate: the same bytes at a smaller rate.
func addedDelay(e *experiment, of func(*cell) float64) float64 {
	var all []float64
	for _, row := range e.lines() {
		network, vpn := e.at(row, "network, default"), e.at(row, "vpn, default")
		bits := network.expected * network.rtt.Seconds()
		all = append(all, bits/of(vpn)-bits/of(network))
	}
	return median(all)
}

// lossThatExplains inverts Mathis' formula: it returns the loss at which Reno would have had the published rate.
func lossThatExplains(cells []*cell) string {
	var losses []float64
	for _, c := range cells {
		root := model.Mathis(mss, c.rtt, 1) / c.published // the root of the loss
		losses = append(losses, 1/(root*root))
	}
	slices.Sort(losses)
	return fmt.Sprintf("One packet lost in %.0f to %.0f would do it (Mathis, every packet acknowledged), or transfers "+
		"of so few megabytes "+
		"that they ended while the window still grew; the note says of neither.", math.Round(losses[0]),
		math.Round(losses[len(losses)-1]))
}

// judgeSweep judges the send-buffer table where the line is not yet full.
func judgeSweep(e *experiment) (all []finding) {
	ceiling := setting{}.ceiling()
	free := where(e.cells, func(c *cell) bool { return c.expected < 0.9*ceiling })
	asked := fmt.Sprintf("of the published figures in the %d cells that do not fill the line (median; within 15 %%)",
		len(free))
	ours := over(func(of func(*cell) float64) float64 { return median(ratios(free, of, published)) })
	theory := median(ratios(free, expected, published))
	all = append(all, finding{fmt.Sprintf("Arithmetic has %.2f %s.", theory, asked), exactly(theory).judge(near(0.15))},
		finding{fmt.Sprintf("The lab has %v %s.", ours, asked), ours.judge(near(0.15))})
	full := where(e.cells, func(c *cell) bool { return c.expected >= 0.9*ceiling })
	small := where(full, func(c *cell) bool { return c.row == kib(1024) || c.row == kib(2048) })
	all = append(all, finding{text: fmt.Sprintf("Where the line is full the note has %.0f %% of what it carries in the "+
		"median and the lab %.0f %%; with "+
		"writes of 1 and 2 KB the note has %.0f %%, as a call cost more on hosts of that time, the lab %.0f %%.",
		100*median(ratios(full, published, expected)), 100*median(ratios(full, measured, expected)),
		100*median(ratios(small, published, expected)), 100*median(ratios(small, measured, expected)))})
	return all
}

// judgeSurface judges the words about the surface.
func judgeSurface(e *experiment) []finding {
	share := func(a, b *cell) span {
		return over(func(of func(*cell) float64) float64 { return of(a) / of(b) })
	}
	beyond := share(e.at("65535", kib(303104)), e.at("65535", kib(65536)))
	larger := over(func(of func(*cell) float64) float64 {
		best := 0.0
		for _, c := range e.cells {
			best = max(best, of(c))
		}
		return best / of(e.at("151840", kib(151552)))
	})
	return []finding{
		{fmt.Sprintf("With a window of 65535 a send buffer of 296 KiB carries %v times what 64 KiB do (asked: 1.1 at "+
			"most): it stops growing there.", beyond),
			beyond.judge(atMost(1.1))},
		{fmt.Sprintf("The best cell of all carries %v times what both at the bandwidth-delay product do (asked: 1.1 at "+
			"most): larger adds nothing.", larger),
			larger.judge(atMost(1.1))},
	}
}

func judgeWindows95(e *experiment) []finding {
	ratio := func(a, b *cell) span {
		return over(func(of func(*cell) float64) float64 { return of(a) / of(b) })
	}
	edge := ratio(e.at("2944", "LAN 10M"), e.at("2144", "LAN 10M"))
	flat := ratio(e.at("24576", "modem 14.4k"), e.at("2944", "modem 14.4k"))
	modem := ratio(e.at("24576", "modem 28.8k"), e.at("8192", "modem 28.8k"))
	isdn := over(func(of func(*cell) float64) float64 { return of(e.at("24576", "ISDN 64k")) / 61.7e3 })
	return []finding{
		{fmt.Sprintf("The edge at two segments: 2944 bytes carry %v times what 2144 do (asked: 1.5 or more), because a "+
			"lone segment is acknowledged late.", edge),
			edge.judge(atLeast(1.5))},
		{fmt.Sprintf("ISDN at 24576: %v of the published 61.7 kbit/s (within 5 %%).", isdn), isdn.judge(near(0.05))},
		{fmt.Sprintf("At 14.4 kbit/s the window does not matter: %v times from 2944 to 24576 (within 10 %%).", flat),
			flat.judge(near(0.1))},
		{text: fmt.Sprintf("The article's +14 %% from 8192 to 24576 at 28.8 kbit/s cannot be had on this path (%v times "+
			"here): 8192 bytes are "+
			"more than the line carries. Its 19.2 and 22.4 kbit/s, and 8 of 14.4, are lines that ran below their names: start "+
			"and "+
			"stop bits, retrains and the provider's side.", modem)},
		{text: "The 23 % less at 8192 on the LAN came of collisions on a cable that both ends shared. The lab's half " +
			"duplex is a medium " +
			"that takes turns without collisions, so there a larger window costs nothing. And its receiver acknowledges a lone " +
			"segment after " +
			"Linux's 40 ms at most, not Windows 95's 200: the edge is lower than *abysmal*."},
	}
}

// judgeFactor compares the steps between the published figures with what their windows
// can explain.
func judgeFactor(e *experiment) (all []finding) {
	first := e.cells[0]
	for _, c := range e.cells {
		off := over(func(of func(*cell) float64) float64 { return of(c) / c.expected })
		all = append(all, finding{fmt.Sprintf("%s: the lab has %v of what its window and the line allow (within 15 %%).",
			c.row, off), off.judge(near(0.15))})
		if c == first || c.published == 0 {
			continue
		}
		possible, theirs := c.expected/first.expected, c.published/first.published
		text := fmt.Sprintf("%s against %s: published × %.1f, by their windows at most × %.1f, here × %.1f.", c.row,
			first.row, theirs, possible, c.median()/first.median())
		if theirs > 1.15*possible {
			text += " The rest is not the window's: something else changed between the two measurements."
		}
		all = append(all, finding{text: text})
	}
	return all
}
