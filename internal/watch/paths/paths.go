// Package paths says whether the paths from a host to the networks that it talks to have
// changed, from what windows of some minutes showed of each. It is arithmetic: no clock, no
// I/O.
//
// A shift is told once, and once more when it is over. What it takes is chosen so that a
// host of 200 networks is told of at most one shift a week that is none
// (TestAQuietHostIsLeftInPeace), and that one of 20 % of the round trip is told within five
// windows (TestAStepIsFound).
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

// Window is what some minutes showed of a network. A zero field is not known.
type Window struct {
	RTT  float64 // seconds
	Rate float64 // bit/s
	// Segments were sent; of them so many were sent again, and so often one arrived late.
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
	Back                  bool      // what had shifted is as before
}

// rises says which way the metric went.
func (s *Shift) rises() bool { return s.After > s.Before }

// Event is what is told: the shifts of one network, or of so many that they are the host's
// or its uplink's.
type Event struct {
	At time.Time
	// Network is the one; the zero value stands for Networks of them, of Judged.
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
	// holdOff is the least time between two events of a network: what is found meanwhile is
	// told then. Within atOnce a shift that was told of the whole host is not told again.
	holdOff = 15 * time.Minute
	atOnce  = time.Hour
)

// Host follows the networks of a host. Its zero value knows none. It can be stored as JSON;
// Restore has to be called after that was read.
type Host struct {
	Networks map[netip.Prefix]*Network `json:"networks"`
	// Whole is when a shift of the whole host was told last, by metric and sense.
	HostWide map[string]time.Time `json:"whole,omitempty"`
}

// Network is what is known of one.
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

// Restore rebuilds what is not stored, and drops what cannot have been.
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

// Add takes the windows that ended at one time and answers what is to be told.
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

// network finds one, or makes it where there is room; nil: there is none.
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

// whole takes out of found what so many networks share that it is the host's own.
func (h *Host) hostWide(at time.Time, windows map[netip.Prefix]Window, found map[netip.Prefix][]Shift) (events []Event) {
	for _, s := range firsts(found) {
		key := sense(&s)
		moved, judged := h.shared(&s, windows, found)
		told := h.HostWide[key]
		recent := !told.IsZero() && at.Sub(told) < atOnce
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

// firsts is the earliest shift of each sense, in a fixed order.
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

// sense is what makes shifts of several networks one.
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

// known says whether the metric's past suffices to judge by.
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

// leans says whether the metric seems to go the same way, though that is not sure yet.
func (n *Network) leans(s *Shift) bool { return s.Metric == RTT && n.RTT.leans(s) }
