package watch

import (
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
	"github.com/fullpipe-net/fullpipe/internal/watch/paths"
)

const (
	// windowLength is what paths are judged by.
	windowLength = 5 * time.Minute
	mostRates    = 1000 // readings of a window
	mostWindows  = 4096 // networks in a window
)

// Signs are what a period tells of the path that a connection takes.
type Signs struct {
	Segments, Resent, Reordered int64 // sent in the period; full segments
	// Rate is what was delivered last, in bit/s, where neither the program nor the receiver
	// held it back; else 0.
	Rate float64
}

// signs reads them off the kernel's counters.
func (c *Connection) signs() (s Signs) {
	sent := c.Sample.Sent - c.mark.Sent
	if sent <= 0 || c.ByReadings { // which do not tell what was lost
		return s
	}
	mss := int64(1448)
	if c.Handshake != nil && c.Handshake.MSS > 0 {
		mss = int64(c.Handshake.MSS)
	}
	s.Segments = (sent + mss - 1) / mss
	s.Resent = min(max(c.Sample.Retransmitted-c.mark.Retransmitted, 0), s.Segments)
	s.Reordered = min(int64(c.Reordered-c.mark.Reordered), s.Segments)
	busy := c.Sample.Busy - c.mark.Busy
	held := c.Sample.RwndLimited - c.mark.ReceiveLimited
	if sent >= threshold.RatedBytes && c.Sample.Have&transfer.HaveRate != 0 && !c.Sample.AppLimited &&
		held.Seconds() <= threshold.HeldShare*busy.Seconds() {
		s.Rate = c.Sample.DeliveryBps
	}
	return s
}

// Windows gathers from the views of a watch what five minutes show of the path to each
// network. Its zero value has gathered nothing; it is pure and not safe for use by several
// goroutines.
type Windows struct {
	began time.Duration
	open  map[netip.Prefix]*window
}

type window struct {
	sums  paths.Window
	trips int // connections that began in it
	told  int // those of them of which it is known whether they have ECN
	ecn   int // those of them with ECN
	rates []float64
}

// Add takes a view and answers the windows that end with it; nil: none does.
func (w *Windows) Add(v *View) map[netip.Prefix]paths.Window {
	if w.open == nil {
		w.open = map[netip.Prefix]*window{}
		w.began = v.At - v.Length
	}
	for i := range v.Seen {
		s := &v.Seen[i]
		network := networkOf(s.Remote.Addr())
		one := w.open[network]
		if one == nil {
			if !network.IsValid() || len(w.open) >= mostWindows && !w.makeRoom(s) {
				continue
			}
			one = &window{}
			w.open[network] = one
		}
		one.add(s, w.began, v.At-v.Span(s))
	}
	if v.At-w.began < windowLength {
		return nil
	}
	out := map[netip.Prefix]paths.Window{}
	for network, one := range w.open {
		out[network] = one.end()
	}
	w.open = map[netip.Prefix]*window{}
	w.began = v.At
	return out
}

// makeRoom drops a network that only came to this host for a connection that this host began.
func (w *Windows) makeRoom(s *Seen) bool {
	if !s.began() {
		return false
	}
	for network, one := range w.open {
		if !one.sums.Own {
			delete(w.open, network)
			return true
		}
	}
	return false
}

// add takes a connection's period, which began at a time, as its window did.
func (w *window) add(s *Seen, windowBegan, periodBegan time.Duration) {
	w.sums.Segments += s.Signs.Segments
	w.sums.Resent += s.Signs.Resent
	w.sums.Reordered += s.Signs.Reordered
	w.sums.Own = w.sums.Own || s.began()
	if s.Signs.Rate > 0 && len(w.rates) < mostRates {
		w.rates = append(w.rates, s.Signs.Rate)
	}
	if !s.Born || s.Connection.Seen < windowBegan || s.Sample.MinRTT <= 0 {
		return
	}
	if trip := s.Sample.MinRTT.Seconds(); w.sums.RTT == 0 || trip < w.sums.RTT {
		w.sums.RTT = trip
	}
	if s.Connection.Seen < periodBegan || s.Handshake == nil {
		return
	}
	w.trips++
	if !s.ByReadings {
		w.told++
	}
	if s.Handshake.ECN {
		w.ecn++
	}
	if mtu := packetOf(s.Handshake, s.Remote.Addr().Is6()); mtu > 0 && (w.sums.MTU == 0 || mtu < w.sums.MTU) {
		w.sums.MTU = mtu
	}
}

// packetOf is how large an IP packet the connection may send: by the path's MTU, and by the
// peer's MSS, which a middlebox may have lowered.
func packetOf(h *transfer.Handshake, v6 bool) int {
	size := h.MSS + 40
	if v6 {
		size += 20
	}
	if h.Timestamps {
		size += 12
	}
	if h.MSS == 0 || h.PathMTU > 0 && h.PathMTU < size {
		size = h.PathMTU
	}
	return size
}

func (w *window) end() paths.Window {
	out := w.sums
	if w.trips < threshold.WindowTrips {
		out.RTT = 0
		out.MTU = 0
	}
	if w.told >= threshold.WindowTrips {
		out.ECN = "some"
		switch w.ecn {
		case 0:
			out.ECN = "none"
		case w.told:
			out.ECN = "all"
		}
	}
	if len(w.rates) >= threshold.WindowRates {
		slices.Sort(w.rates)
		out.Rate = w.rates[len(w.rates)*9/10]
	}
	return out
}
