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
	maxRates     = 1000 // rates of a window
	maxWindows   = 4096 // networks in a window
)

// Symptoms are a period's signs of the state of a connection's path.
type Symptoms struct {
	Segments, Retransmitted, Reordered int64 // sent in the period; full segments
	// Rate is the last delivery rate in bit/s where neither the program nor the receiver limited it; else 0.
	Rate float64
}

// symptoms computes them from the kernel's counters.
func (c *Connection) symptoms() (s Symptoms) {
	sent := c.Sample.Sent - c.mark.Sent
	if sent <= 0 || c.Polled { // its snapshots have no counters of losses
		return s
	}
	mss := int64(1448)
	if c.Handshake != nil && c.Handshake.MSS > 0 {
		mss = int64(c.Handshake.MSS)
	}
	s.Segments = (sent + mss - 1) / mss
	s.Retransmitted = min(max(c.Sample.Retransmitted-c.mark.Retransmitted, 0), s.Segments)
	s.Reordered = min(int64(c.Reordered-c.mark.Reordered), s.Segments)
	busy := c.Sample.Busy - c.mark.Busy
	limited := c.Sample.RwndLimited - c.mark.ReceiveLimited
	if sent >= threshold.RatedBytes && c.Sample.Have&transfer.HaveRate != 0 && !c.Sample.AppLimited &&
		limited.Seconds() <= threshold.RwndLimitedShare*busy.Seconds() {
		s.Rate = c.Sample.DeliveryBps
	}
	return s
}

// Windows sums the views of a watch into windows of five minutes for each network. Its zero value is empty. It is pure
// and not safe for concurrent use.
type Windows struct {
	began time.Duration
	open  map[netip.Prefix]*window
}

// window collects the statistics of one path in the current window.
type window struct {
	sums  paths.Window
	trips int       // connections that began in the window
	known int       // new connections whose use of ECN is known
	ecn   int       // new connections with ECN
	rates []float64 // delivery rates
}

// Add adds a view and returns the windows that end with it, or nil.
func (w *Windows) Add(v *View) map[netip.Prefix]paths.Window {
	if w.open == nil {
		w.open = map[netip.Prefix]*window{}
		w.began = v.At - v.Length
	}
	for i := range v.Connections {
		s := &v.Connections[i]
		network := networkOf(s.Remote.Addr())
		one := w.open[network]
		if one == nil {
			if !network.IsValid() || len(w.open) >= maxWindows && !w.makeRoom(s) {
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

// makeRoom drops a network that only connected to this host, for a connection that this host began.
func (w *Windows) makeRoom(s *Observed) bool {
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

// add adds a connection's period. Both the period and the window have their own start.
func (w *window) add(s *Observed, windowBegan, periodBegan time.Duration) {
	w.sums.Segments += s.Symptoms.Segments
	w.sums.Retransmitted += s.Symptoms.Retransmitted
	w.sums.Reordered += s.Symptoms.Reordered
	w.sums.Own = w.sums.Own || s.began()
	if s.Symptoms.Rate > 0 && len(w.rates) < maxRates {
		w.rates = append(w.rates, s.Symptoms.Rate)
	}
	if !s.Born || s.Connection.FirstSeen < windowBegan || s.Sample.MinRTT <= 0 {
		return
	}
	if trip := s.Sample.MinRTT.Seconds(); w.sums.RTT == 0 || trip < w.sums.RTT {
		w.sums.RTT = trip
	}
	if s.Connection.FirstSeen < periodBegan || s.Handshake == nil {
		return
	}
	w.trips++
	if !s.Polled {
		w.known++
	}
	if s.Handshake.ECN {
		w.ecn++
	}
	if mtu := packetOf(s.Handshake, s.Remote.Addr().Is6()); mtu > 0 && (w.sums.MTU == 0 || mtu < w.sums.MTU) {
		w.sums.MTU = mtu
	}
}

// packetOf returns how large an IP packet the connection may send: by the path's MTU, and by the
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
	if w.known >= threshold.WindowTrips {
		out.ECN = "some"
		switch w.ecn {
		case 0:
			out.ECN = "none"
		case w.known:
			out.ECN = "all"
		}
	}
	if len(w.rates) >= threshold.WindowRates {
		slices.Sort(w.rates)
		out.Rate = w.rates[len(w.rates)*9/10]
	}
	return out
}
