package audit

import (
	"fmt"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/units"
)

// shapers are qdiscs whose purpose is a rate.
var shapers = map[string]bool{"tbf": true, "htb": true, "hfsc": true, "cbq": true}

// fast is the rate in bit/s from which on segmentation by the CPU may be what is slow.
const fast = 1e9

// rare is the share of packets below which an error counter is luck.
const rare = 1e-6

// interfaces judges what is the same on every system: speed, duplex, errors, offloads.
func (j *judge) interfaces() {
	for i := range j.Interfaces {
		f := &j.Interfaces[i]
		j.interfaceRate(f)
		j.interfaceErrors(f)
		j.interfaceSettings(f)
	}
}

// onInterface adds a finding about an interface.
func (j *judge) onInterface(f *Interface, grade Grade, value, text, fix string) {
	j.add(Finding{Grade: grade, Parameter: f.Name, Value: value, Text: text, Fix: fix, Confirmed: true,
		Source: "the interface's own counters and settings"})
}

// interfaceRate judges what caps the path's rate: the link's speed, this host's shaper.
func (j *judge) interfaceRate(f *Interface) {
	rate := j.path.RateBps
	caps := func(bps float64, value, text, fix string) {
		j.add(Finding{Grade: Limits, Parameter: f.Name, Value: value, CapBps: bps, CostBps: rate - bps, Text: text, Fix: fix,
			Confirmed: true, Source: "the interface's own settings"})
	}
	if speed := float64(f.SpeedBps); f.Default && speed > 0 && speed < rate {
		caps(speed, units.Rate(speed).String(), fmt.Sprintf("the link runs at %s: that caps %s", units.Rate(speed), j.path),
			"cable, port or negotiation")
	}
	switch shape := float64(f.ShapeBps); {
	case f.Default && shape > 0 && shape < rate:
		caps(shape, f.Qdisc+" "+units.Rate(shape).String(),
			fmt.Sprintf("this host's own shaper lets out %s: that caps %s", units.Rate(shape), j.path), "tc qdisc show dev "+
				f.Name)
	case shapers[f.Qdisc]:
		j.onInterface(f, Risk, f.Qdisc, "this host shapes what it sends: a rate set here looks like a slow path",
			"tc -s qdisc show dev "+word(f.Name, "NAME"))
	}
}

// packetErrors are the counters that tell of lost packets, and what they are a share of.
var packetErrors = []struct{ name, packets, what string }{
	{"rx_errors", "rx_packets", "were damaged on the cable"},
	{"rx_missed_errors", "rx_packets", "found no free descriptor"},
	{"rx_fifo_errors", "rx_packets", "overran the card's memory"},
	{"tx_errors", "tx_packets", "could not be sent"},
	{"tx_dropped", "tx_packets", "were dropped by the driver"},
	{"qdisc_dropped", "qdisc_packets", "were dropped by this host's own queue"},
	{"collisions", "tx_packets", "collided"},
}

func (j *judge) interfaceErrors(f *Interface) {
	for _, c := range packetErrors {
		n := f.Counters[c.name]
		total := f.Counters[c.packets]
		share := float64(n) / float64(total)
		if n <= 0 || total > 0 && share < rare {
			continue
		}
		text := fmt.Sprintf("%d packets %s", n, c.what)
		if total > 0 {
			text += fmt.Sprintf(", %.2g %% of %d", 100*share, total)
		}
		fix := ""
		if c.name == "rx_missed_errors" && f.Ring != nil && f.Ring.RX < f.Ring.RXMax {
			fix = fmt.Sprintf("ethtool -G %s rx %d (it has %d)", word(f.Name, "NAME"), f.Ring.RXMax, f.Ring.RX)
		}
		j.onInterface(f, Risk, c.name+" "+strconv.FormatInt(n, 10), text, fix)
	}
}

// interfaceSettings judges duplex, offloads, MTU and the transmit queue.
func (j *judge) interfaceSettings(f *Interface) {
	if f.Duplex == "half" {
		j.onInterface(f, Harmful, "half duplex",
			"acknowledgements and data collide: often a port whose other end does not negotiate", "let both ends negotiate")
	}
	for _, o := range []struct{ name, what string }{
		{"tso", "the CPU cuts every segment"}, {"gro", "the CPU handles every packet by itself"}} {
		if on, known := f.Offloads[o.name]; known && !on && (j.path.RateBps >= fast || float64(f.SpeedBps) >= fast) {
			j.onInterface(f, Risk, o.name+" off", o.what+": at a gigabit and more a core may be too slow",
				"switch it on unless a capture or a broken card needs it off")
		}
	}
	if f.MTUBytes > 0 && f.MTUBytes < 1280 {
		j.onInterface(f, Risk, fmt.Sprintf("MTU %d", f.MTUBytes),
			fmt.Sprintf("%.0f %% of every packet is headers", 4000/float64(f.MTUBytes)), "raise it to the link's MTU")
	}
	if (f.Qdisc == "pfifo_fast" || f.Qdisc == "pfifo") && f.TxQueueLen > 0 && f.TxQueueLen < 100 {
		j.onInterface(f, Risk, fmt.Sprintf("txqueuelen %d", f.TxQueueLen),
			"bursts of a large window are dropped in this host", "ip link set "+word(f.Name, "NAME")+" txqueuelen 1000")
	}
}
