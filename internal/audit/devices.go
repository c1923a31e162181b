package audit

import (
	"fmt"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// shapers are qdiscs whose purpose is a rate.
var shapers = map[string]bool{"tbf": true, "htb": true, "hfsc": true, "cbq": true}

// interfaces judges what is the same on every system: speed, duplex, errors, offloads.
func (j *judge) interfaces() {
	for _, f := range j.Interfaces {
		rate := j.path.RateBps
		finding := func(grade Grade, value, text, fix string) {
			j.add(Finding{Grade: grade, Parameter: f.Name, Value: value, Text: text, Fix: fix, Confirmed: true, Source: "the interface's own counters and settings"})
		}
		if f.Default && f.SpeedBps > 0 && float64(f.SpeedBps) < rate {
			j.add(Finding{Grade: Limits, Parameter: f.Name, Value: units.Rate(f.SpeedBps).String(), CapBps: float64(f.SpeedBps), CostBps: rate - float64(f.SpeedBps),
				Text: fmt.Sprintf("the link runs at %s: that caps %s", units.Rate(f.SpeedBps), j.path), Fix: "cable, port or negotiation", Confirmed: true, Source: "the interface's own settings"})
		}
		if f.Default && f.ShapeBps > 0 && float64(f.ShapeBps) < rate {
			j.add(Finding{Grade: Limits, Parameter: f.Name, Value: f.Qdisc + " " + units.Rate(f.ShapeBps).String(), CapBps: float64(f.ShapeBps), CostBps: rate - float64(f.ShapeBps),
				Text: fmt.Sprintf("this host's own shaper lets out %s: that caps %s", units.Rate(f.ShapeBps), j.path), Fix: "tc qdisc show dev " + f.Name, Confirmed: true, Source: "the interface's own settings"})
		} else if shapers[f.Qdisc] {
			finding(Risk, f.Qdisc, "this host shapes what it sends: a rate set here looks like a slow path", "tc -s qdisc show dev "+f.Name)
		}
		if f.Duplex == "half" {
			finding(Harmful, "half duplex", "acknowledgements and data collide: often a port whose other end does not negotiate", "let both ends negotiate")
		}
		for _, c := range []struct{ name, packets, what string }{
			{"rx_errors", "rx_packets", "were damaged on the cable"}, {"rx_missed_errors", "rx_packets", "found no free descriptor"},
			{"rx_fifo_errors", "rx_packets", "overran the card's memory"}, {"tx_errors", "tx_packets", "could not be sent"},
			{"tx_dropped", "tx_packets", "were dropped by the driver"}, {"qdisc_dropped", "qdisc_packets", "were dropped by this host's own queue"}, {"collisions", "tx_packets", "collided"},
		} {
			n, total := f.Counters[c.name], f.Counters[c.packets]
			if n <= 0 {
				continue
			}
			text := fmt.Sprintf("%d packets %s", n, c.what)
			if total > 0 {
				text += fmt.Sprintf(", %.2g %% of %d", 100*float64(n)/float64(total), total)
			}
			if total > 0 && float64(n)/float64(total) < 1e-6 {
				continue
			}
			fix := ""
			if c.name == "rx_missed_errors" && f.Ring != nil && f.Ring.RX < f.Ring.RXMax {
				fix = fmt.Sprintf("ethtool -G %s rx %d (it has %d)", f.Name, f.Ring.RXMax, f.Ring.RX)
			}
			finding(Risk, c.name+" "+strconv.FormatInt(n, 10), text, fix)
		}
		for _, o := range []struct{ name, what string }{{"tso", "the CPU cuts every segment"}, {"gro", "the CPU handles every packet by itself"}} {
			if on, known := f.Offloads[o.name]; known && !on && (rate >= 1e9 || f.SpeedBps >= 1e9) {
				finding(Risk, o.name+" off", o.what+": at a gigabit and more a core may be too slow", "switch it on unless a capture or a broken card needs it off")
			}
		}
		if f.MTUBytes > 0 && f.MTUBytes < 1280 {
			finding(Risk, fmt.Sprintf("MTU %d", f.MTUBytes), fmt.Sprintf("%.0f %% of every packet is headers", 4000/float64(f.MTUBytes)), "raise it to the link's MTU")
		}
		if (f.Qdisc == "pfifo_fast" || f.Qdisc == "pfifo") && f.TxQueueLen > 0 && f.TxQueueLen < 100 {
			finding(Risk, fmt.Sprintf("txqueuelen %d", f.TxQueueLen), "bursts of a large window are dropped in this host", fmt.Sprintf("ip link set %s txqueuelen 1000", f.Name))
		}
	}
}
