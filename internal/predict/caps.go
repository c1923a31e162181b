package predict

import (
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// caps returns the formulas' finite bounds, the smallest first.
func (r *scenario) caps() (all []Cap) {
	n := float64(r.connections)
	mss := int(r.mss)
	rtt := units.Seconds(r.rtt)
	add := func(name verdict.Name, bps float64, format string, args ...any) {
		if !math.IsInf(bps, 1) && bps > 0 {
			all = append(all, Cap{name, bps, fmt.Sprintf(format, args...)})
		}
	}
	narrow := "%s less headers"
	if r.capped {
		narrow = fmt.Sprintf("%d x the bound of one connection: %%s less headers", r.connections)
	}
	add(r.narrowest(), r.capacity(), narrow+": %d of %d bytes", units.Rate(r.rate), mss,
		int(math.Round(r.segment*r.rate/8)))
	if !math.IsInf(r.window, 1) {
		add(verdict.ReceiverWindow, n*model.Rate(int(r.window), rtt), "window / round trip: %s / %s",
			units.Size(r.window).Exact(), units.Time(rtt))
	}
	if !math.IsInf(r.send, 1) {
		add(verdict.SendBuffer, n*model.Rate(int(r.send), rtt), "in flight / round trip: %s / %s", units.Size(r.send).Exact(),
			units.Time(rtt))
	}
	if r.loss > 0 {
		p := r.loss / r.burst // events
		switch r.congestion {
		case "bbr":
			add(verdict.Congestion, model.BBR(r.capacity(), r.loss), "BBR under %.3g %% of loss", 100*r.loss)
		case "cubic":
			add(verdict.Congestion, n*model.Cubic(mss, rtt, p), "CUBIC at %.3g %% of loss events (RFC 9438 section 5.1)", 100*p)
		case "reno":
			most := int(math.Min(math.Min(r.window, r.send), model.MaxWindow))
			add(verdict.Congestion, n*model.PFTK(mss, rtt, rtt+leastRTO, p, most), "Reno at %.3g %% of loss events (Padhye et "+
				"al. 1998)", 100*p)
		}
	}
	if !math.IsInf(r.bytes, 1) {
		each := r.bytes / n
		rounds := model.SlowStartRounds(each, mss)
		if bps := r.bytes * 8 / (float64(rounds-1) * r.rtt); rounds > 1 && bps < r.capacity() {
			add(verdict.SlowStart, bps, "%s in %d round trips of slow start", units.Size(each), rounds)
		}
	}
	slices.SortStableFunc(all, func(a, b Cap) int { return int(math.Copysign(1, a.Bps-b.Bps)) })
	return all
}

// leastRTO is Linux's least retransmission timeout beyond the round trip (TCP_RTO_MIN).
const leastRTO = 200 * time.Millisecond
