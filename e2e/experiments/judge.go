package main

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/stats"
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
	return stats.RankCorrelation(xs, ys), median(ratios(cells, of, against)), len(xs)
}

// judgePool judges the default columns of all the note's tables together.
func judgePool(tables []*experiment) []finding {
	var pool []*cell
	for _, e := range tables {
		pool = append(pool, where(e.cells, isDefault)...)
	}
	var all []finding
	for _, side := range []struct {
		name string
		of   func(*cell) float64
	}{{"the least of line, gateways and outstanding/RTT", expected}, {"the lab's real TCP", measured}} {
		rank, typical, n := agreement(pool, side.of, published)
		all = append(all, finding{fmt.Sprintf("Default settings, network and VPN, all tables (%d cells): %s against the published "+
			"figures has rank correlation %.3f (asked: 0.93 or more) and median ratio %.2f (within 15 %%).", n, side.name, rank, typical),
			pass(rank >= 0.93 && within(typical, 0.15))})
	}
	return all
}

// judgeGateways judges the tuned columns of one table, what windows can give there, and
// says what the gateways cost the small windows.
func judgeGateways(e *experiment) (all []finding) {
	theirs, ours := addedDelay(e, published), addedDelay(e, measured)
	all = append(all, finding{text: fmt.Sprintf("With default settings a round trip through the gateways takes %.1f ms longer in the published "+
		"figures (median, from outstanding/rate) and %.1f ms here.", 1e3*theirs, 1e3*ours)})
	for _, side := range []string{"network", "vpn"} {
		tuned := where(e.cells, func(c *cell) bool { return isTuned(c) && strings.HasPrefix(c.column, side) })
		reached := median(ratios(tuned, measured, expected))
		all = append(all, finding{fmt.Sprintf("Tuned, %s: the lab reaches %.0f %% of what line, gateways and windows allow (median; asked: 95 or more).",
			side, 100*reached), pass(reached >= 0.95)})
		theirs := median(ratios(tuned, published, expected))
		if theirs >= 0.9 {
			continue
		}
		all = append(all, finding{text: fmt.Sprintf("The published tuned figures (%s) are %.0f %% of that. No window explains it, as the windows asked for "+
			"hold a full path: something else held those transfers. %s", side, 100*theirs, lossThatExplains(tuned))})
	}
	return all
}

// addedDelay is how much longer a round trip took through the gateways, in seconds, where
// what is outstanding bounds the rate: the same bytes at a smaller rate.
func addedDelay(e *experiment, of func(*cell) float64) float64 {
	var all []float64
	for _, row := range e.lines() {
		network, vpn := e.at(row, "network, default"), e.at(row, "vpn, default")
		bits := network.expected * network.rtt.Seconds()
		all = append(all, bits/of(vpn)-bits/of(network))
	}
	return median(all)
}

// lossThatExplains turns Mathis' formula round: the loss at which Reno would have had the
// published rate.
func lossThatExplains(cells []*cell) string {
	var losses []float64
	for _, c := range cells {
		root := model.Mathis(mss, c.rtt, 1) / c.published // the root of the loss
		losses = append(losses, 1/(root*root))
	}
	slices.Sort(losses)
	return fmt.Sprintf("One packet lost in %.0f to %.0f would do it (Mathis, every packet acknowledged), or transfers of so few megabytes "+
		"that they ended while the window still grew; the note says of neither.", math.Round(losses[0]), math.Round(losses[len(losses)-1]))
}

// judgeSweep judges the send-buffer table where the line is not yet full.
func judgeSweep(e *experiment) (all []finding) {
	ceiling := setting{}.ceiling()
	free := where(e.cells, func(c *cell) bool { return c.expected < 0.9*ceiling })
	for _, side := range []struct {
		name string
		of   func(*cell) float64
	}{{"arithmetic", expected}, {"the lab", measured}} {
		typical := median(ratios(free, side.of, published))
		all = append(all, finding{fmt.Sprintf("The %d cells that do not fill the line: %s has %.2f of the published figures in the median (within 15 %%).",
			len(free), side.name, typical), pass(within(typical, 0.15))})
	}
	full := where(e.cells, func(c *cell) bool { return c.expected >= 0.9*ceiling })
	small := where(full, func(c *cell) bool { return c.row == kib(1024) || c.row == kib(2048) })
	all = append(all, finding{text: fmt.Sprintf("Where the line is full the note has %.0f %% of what it carries in the median and the lab %.0f %%; with "+
		"writes of 1 and 2 KB the note has %.0f %%, as a call cost more on hosts of that time, the lab %.0f %%.",
		100*median(ratios(full, published, expected)), 100*median(ratios(full, measured, expected)),
		100*median(ratios(small, published, expected)), 100*median(ratios(small, measured, expected)))})
	return all
}

// judgeSurface judges the words about the surface.
func judgeSurface(e *experiment) []finding {
	rate := func(window, quota int) float64 { return e.at(fmt.Sprint(window), kib(quota)).median() }
	small := rate(65535, 303104) / rate(65535, 65536)
	best := rate(151840, 151552)
	most := 0.0
	for _, c := range e.cells {
		most = max(most, c.median())
	}
	return []finding{
		{fmt.Sprintf("With a window of 65535 a send buffer of 296 KiB has %.2f of what 64 KiB have: it stops growing there.", small), pass(within(small, 0.05))},
		{fmt.Sprintf("Both at the bandwidth-delay product reach %.0f %% of the best cell; larger windows add nothing.", 100*best/most), pass(best >= 0.95*most)},
	}
}

func judgeWindows95(e *experiment) []finding {
	rate := func(window, column string) float64 { return e.at(window, column).median() }
	edge := rate("2944", "LAN 10M") / rate("2144", "LAN 10M")
	flat := rate("24576", "modem 14.4k") / rate("2944", "modem 14.4k")
	modem := rate("24576", "modem 28.8k") / rate("8192", "modem 28.8k")
	isdn := rate("24576", "ISDN 64k") / 61.7e3
	return []finding{
		{fmt.Sprintf("The edge at two segments: 2944 bytes carry %.1f times what 2144 do, because a lone segment is acknowledged late.", edge), pass(edge >= 1.5)},
		{fmt.Sprintf("ISDN at 24576: %.2f of the published 61.7 kbit/s.", isdn), pass(within(isdn, 0.05))},
		{fmt.Sprintf("At 14.4 kbit/s the window does not matter: %.2f times from 2944 to 24576.", flat), pass(within(flat, 0.1))},
		{text: fmt.Sprintf("The article's +14 %% from 8192 to 24576 at 28.8 kbit/s cannot be had on this path (%.2f times here): 8192 bytes are "+
			"three times what the line holds. Its 19.2 and 22.4 kbit/s, and 8 of 14.4, are lines that ran below their names: start and "+
			"stop bits, retrains and the provider's side.", modem)},
		{text: "The 23 % less at 8192 on the LAN came of collisions on a cable that both ends shared. The lab's half duplex is a medium " +
			"that takes turns without collisions, so there a larger window costs nothing."},
	}
}

// judgeFactor compares the steps between the published figures with what their windows
// can explain.
func judgeFactor(e *experiment) (all []finding) {
	first := e.cells[0]
	for _, c := range e.cells {
		off := c.median() / c.expected
		all = append(all, finding{fmt.Sprintf("%s: the lab has %.2f of what its window and the line allow.", c.row, off), pass(off >= 0.85 && off <= 1.15)})
		if c == first || c.published == 0 {
			continue
		}
		possible, theirs := c.expected/first.expected, c.published/first.published
		text := fmt.Sprintf("%s against %s: published × %.1f, by their windows at most × %.1f, here × %.1f.", c.row, first.row, theirs, possible, c.median()/first.median())
		if theirs > 1.15*possible {
			text += " The rest is not the window's: something else changed between the two measurements."
		}
		all = append(all, finding{text: text})
	}
	return all
}
