// Package paths detects changes of the paths from a host to the networks that it communicates with, from windows of
// some minutes for each network. It is arithmetic: no clock, no I/O.
//
// A shift is reported once, and once more when it is over. The thresholds are chosen so that a host of 200 networks
// reports at most one false shift a week (TestAQuietHostIsLeftInPeace), and a shift of 20 % of the round trip within
// five windows (TestAStepIsFound).
package paths

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Metric is what of a path moved.
type Metric string

// The closed list.
const (
	RTT        Metric = "rtt"        // the least round trip of connections begun in a window, seconds
	Rate       Metric = "rate"       // of delivery where the program was not the limit, bit/s
	Loss       Metric = "loss"       // retransmitted segments by sent ones
	Reordering Metric = "reordering" // events by sent segments
	MTU        Metric = "mtu"        // bytes
	ECN        Metric = "ecn"        // how many new connections have it: none, some or all
)

// Window has the metrics of a network over some minutes. A zero field is not known.
type Window struct {
	RTT  float64 // seconds
	Rate float64 // bit/s
	// Segments were sent. Of them some were retransmitted or arrived late.
	Segments, Retransmitted, Reordered int64
	MTU                                int
	ECN                                string
	Own                                bool // this host began a connection to it
}

// Shift is one metric's change.
type Shift struct {
	Metric        Metric
	Before, After float64 // medians, or ratios
	// BeforeWord and AfterWord are of ECN.
	BeforeWord, AfterWord string
	Since                 time.Time // the first window of it
	Back                  bool      // the shift is over
}

// rises reports whether the metric grew.
func (s *Shift) rises() bool { return s.After > s.Before }

// Event is a report: the shifts of one network, or of all networks of the host or its uplink.
type Event struct {
	At time.Time
	// Network is the shifted one. It is the zero value where Networks of Judged networks shifted.
	Network          netip.Prefix
	Networks, Judged int
	Shifts           []Shift
}

const (
	// maxNetworks are followed. A new one takes the place of the one that was silent longest,
	// if that was a day. Networks that only came to this host make room at once for one that
	// this host connects to, and never displace such a one.
	maxNetworks = 256
	silent      = 24 * time.Hour
	// forgotten is when a network that was not seen is removed.
	forgotten = 30 * 24 * time.Hour
	// holdOff is the least time between two events of a network: shifts found meanwhile are reported then. Within
	// atOnce a shift of the whole host is not reported twice.
	holdOff = 15 * time.Minute
	atOnce  = time.Hour
)

// Host follows the networks of a host. Its zero value knows none. It can be stored as JSON;
// call Restore after reading it back.
type Host struct {
	Networks map[netip.Prefix]*Network `json:"networks"`
	// HostWide is the time of the last reported shift of the whole host, by metric and sense.
	HostWide map[string]time.Time `json:"whole,omitempty"`
}

// Network is the state of one network.
type Network struct {
	Last       time.Time `json:"last"`          // the newest window
	Own        bool      `json:"own,omitempty"` // this host connected to it
	RTT        trip      `json:"rtt"`
	Rate       rate      `json:"rate"`
	Loss       counts    `json:"loss"`
	Reordering counts    `json:"reordering"`
	MTU        number    `json:"mtu"`
	ECN        word      `json:"ecn"`
	Reported   time.Time `json:"told"`              // the newest event
	Waiting    []Shift   `json:"waiting,omitempty"` // for holdOff to end
}

// Restore rebuilds the state that is not stored, and drops impossible values.
func (h *Host) Restore() {
	for p, n := range h.Networks {
		if n == nil {
			delete(h.Networks, p)
			continue
		}
		n.RTT.restore()
		n.Rate.Results = possibleOnes(n.Rate.Results)
		n.Loss.Windows = possibleOnes(n.Loss.Windows)
		n.Reordering.Windows = possibleOnes(n.Reordering.Windows)
	}
}

// Add adds the windows that ended at one time and returns the events to report.
func (h *Host) Add(at time.Time, windows map[netip.Prefix]Window) (events []Event) {
	if h.Networks == nil {
		h.Networks = map[netip.Prefix]*Network{}
	}
	found := map[netip.Prefix][]Shift{}
	order := slices.SortedFunc(keys(windows), func(a, b netip.Prefix) int {
		return cmp.Or(a.Addr().Compare(b.Addr()), cmp.Compare(a.Bits(), b.Bits()))
	})
	for _, own := range []bool{true, false} { // those of our own are not displaced by what comes with them
		for _, p := range order {
			if w := windows[p]; w.Own == own {
				if n := h.network(p, at, own); n != nil {
					n.Last = at
					n.Own = n.Own || own
					found[p] = n.add(at, w)
				}
			}
		}
	}
	events = h.hostWide(at, windows, found)
	for _, p := range order {
		n := h.Networks[p]
		if n == nil {
			continue
		}
		n.Waiting = append(n.Waiting, found[p]...)
		if len(n.Waiting) > 0 && at.Sub(n.Reported) >= holdOff {
			events = append(events, Event{At: at, Network: p, Networks: 1, Judged: 1, Shifts: n.Waiting})
			n.Reported = at
			n.Waiting = nil
		}
	}
	return events
}

func keys[V any](m map[netip.Prefix]V) func(func(netip.Prefix) bool) {
	return func(yield func(netip.Prefix) bool) {
		for p := range m {
			if !yield(p) {
				return
			}
		}
	}
}

// network returns a network and creates it where there is room; nil: there is none.
func (h *Host) network(p netip.Prefix, at time.Time, own bool) *Network {
	if n := h.Networks[p]; n != nil {
		return n
	}
	maps.DeleteFunc(h.Networks, func(_ netip.Prefix, n *Network) bool { return at.Sub(n.Last) > forgotten })
	if len(h.Networks) >= maxNetworks {
		victim := h.victim(at, own)
		if !victim.IsValid() {
			return nil
		}
		delete(h.Networks, victim)
	}
	n := &Network{}
	h.Networks[p] = n
	return n
}

// victim returns the network that makes room for a new one; the zero value: none does.
func (h *Host) victim(at time.Time, forOwn bool) (victim netip.Prefix) {
	var found *Network
	for p, n := range h.Networks {
		switch {
		case n.Own && !forOwn, found != nil && n.Own && !found.Own:
		case found == nil, found.Own && !n.Own, cmp.Or(n.Last.Compare(found.Last), p.Addr().Compare(victim.Addr())) < 0:
			victim = p
			found = n
		}
	}
	if found == nil || at.Sub(found.Last) < silent && (found.Own || !forOwn) {
		return netip.Prefix{}
	}
	return victim
}

func (n *Network) add(at time.Time, w Window) (shifts []Shift) {
	for _, one := range []struct {
		metric Metric
		shift  *Shift
	}{
		{RTT, n.RTT.add(at, w.RTT)},
		{Rate, n.Rate.add(at, w.Rate)},
		{Loss, n.Loss.add(at, w.Segments, w.Retransmitted, lossRule)},
		{Reordering, n.Reordering.add(at, w.Segments, w.Reordered, reorderingRule)},
		{MTU, n.MTU.add(at, w.MTU)},
		{ECN, n.ECN.add(at, w.ECN)},
	} {
		if one.shift != nil {
			one.shift.Metric = one.metric
			shifts = append(shifts, *one.shift)
		}
	}
	return shifts
}

// hostWide removes shifts from found that enough networks share for the host itself to have shifted.
func (h *Host) hostWide(at time.Time, windows map[netip.Prefix]Window,
	found map[netip.Prefix][]Shift) (events []Event) {
	for _, s := range firsts(found) {
		key := sense(&s)
		moved, judged := h.shared(&s, windows, found)
		reported := h.HostWide[key]
		recent := !reported.IsZero() && at.Sub(reported) < atOnce
		if !recent && (moved < threshold.HostNetworks || float64(moved) < threshold.HostShare*float64(judged)) {
			continue
		}
		for p, shifts := range found {
			found[p] = slices.DeleteFunc(shifts, func(f Shift) bool { return sense(&f) == key })
		}
		if recent {
			continue
		}
		if h.HostWide == nil {
			h.HostWide = map[string]time.Time{}
		}
		h.HostWide[key] = at
		events = append(events, Event{At: at, Networks: moved, Judged: judged, Shifts: []Shift{s}})
	}
	return events
}

// firsts returns the earliest shift of each sense, in a fixed order.
func firsts(found map[netip.Prefix][]Shift) (all []Shift) {
	for _, shifts := range found {
		for _, s := range shifts {
			i := slices.IndexFunc(all, func(f Shift) bool { return sense(&f) == sense(&s) })
			switch {
			case i < 0:
				all = append(all, s)
			case s.Since.Before(all[i].Since) || s.Since.Equal(all[i].Since) && s.Before < all[i].Before:
				all[i] = s
			}
		}
	}
	slices.SortFunc(all, func(a, b Shift) int { return cmp.Compare(sense(&a), sense(&b)) })
	return all
}

// shared counts the networks that shifted so or seem to, and those that can be judged.
func (h *Host) shared(s *Shift, windows map[netip.Prefix]Window, found map[netip.Prefix][]Shift) (moved, judged int) {
	key := sense(s)
	for p := range windows {
		n := h.Networks[p]
		if n == nil || !n.known(s.Metric) {
			continue
		}
		judged++
		if slices.ContainsFunc(found[p], func(f Shift) bool { return sense(&f) == key }) || n.leans(s) {
			moved++
		}
	}
	return moved, judged
}

// sense returns the key under which shifts of several networks are the same.
func sense(s *Shift) string {
	switch {
	case s.Back:
		return string(s.Metric) + " back"
	case s.AfterWord != "":
		return string(s.Metric) + " " + s.AfterWord
	case s.rises():
		return string(s.Metric) + " up"
	}
	return string(s.Metric) + " down"
}

// known reports whether the metric's past suffices for a judgement.
func (n *Network) known(m Metric) bool {
	switch m {
	case RTT:
		return n.RTT.known()
	case Rate:
		return n.Rate.known()
	case Loss:
		return n.Loss.known()
	case Reordering:
		return n.Reordering.known()
	case MTU:
		return n.MTU.known()
	}
	return n.ECN.known()
}

// leans reports whether the metric seems to shift in the same sense, without certainty.
func (n *Network) leans(s *Shift) bool { return s.Metric == RTT && n.RTT.leans(s) }
