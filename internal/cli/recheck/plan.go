package recheck

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// rootsState is the directory of root's journal, which every user may read.
const rootsState = "/var/lib/fullpipe"

// oursInForce returns the settings of this host that fullpipe changed and that are still in force.
func oursInForce() (ours []host.State) {
	for _, dir := range []string{"", rootsState} {
		states, err := host.Status(host.Config{StateDir: dir})
		if err != nil {
			continue // fullpipe status reports the error
		}
		for _, s := range states {
			if s.Is == "ours" && s.Kind != host.File && s.Kind != host.Qdisc &&
				!slices.ContainsFunc(ours, func(o host.State) bool { return o.Name == s.Name }) {
				ours = append(ours, s)
			}
		}
	}
	return ours
}

func value(v *string) string {
	if v == nil {
		return ""
	}
	return *v
}

// planFor reports whether the settings that fullpipe applied on this host still suffice for a changed path. It returns
// nil if there are none, or if that is not known.
func (k *rechecker) planFor(v *recheck.Visit, e *record.RecheckEvent) *record.RecheckPlan {
	if e.Event == changepoint.Back || e.Metric == recheck.FarKernel {
		return nil
	}
	ours := oursInForce()
	if len(ours) == 0 {
		return nil
	}
	s, err := host.Snapshot()
	if err != nil {
		return nil
	}
	for _, now := range v.Path.Standings() {
		if e.Direction == "" || now.Direction == e.Direction {
			path := pathNow(&now, e)
			path.MemoryBytes = s.MemoryBytes
			if s.LimitBytes > 0 {
				path.MemoryBytes = min(path.MemoryBytes, s.LimitBytes)
			}
			return planNow(path, host.Target(s.Version), transfer.Direction(now.Direction), s.Values, ours)
		}
	}
	return nil
}

// pathNow returns the path to plan for: the rate of the newest test at the IP layer, or the new level if that is
// higher. If a window limits the rate, the path may carry more: twice the rate.
func pathNow(now *record.RecheckDirection, e *record.RecheckEvent) plan.Path {
	bps := max(record.OrZero(now.GoodputBps), record.OrZero(e.AfterBps))
	rtt := units.Seconds(record.OrZero(cmp.Or(e.AfterRTTMinS, now.RTTMinS)))
	switch now.Limiter {
	case string(verdict.ReceiverWindow), string(verdict.SendBuffer):
		bps *= 2
	}
	const mss = plan.DefaultMSS - model.TimestampBytes
	return plan.Path{RateBps: bps * (mss + model.IPHeaders + model.TimestampBytes) / mss, RTT: rtt, MSS: mss}
}

// planNow compares the settings that a path needs on this host with those in force.
func planNow(path plan.Path, target plan.Target, d transfer.Direction, values map[string]string,
	ours []host.State) *record.RecheckPlan {
	role := plan.Sender
	if d == transfer.Down {
		role = plan.Receiver
	}
	p, err := plan.New(path, target, plan.Options{Role: role, Values: values})
	if err != nil {
		return nil
	}
	window := p.SendBytes
	if role == plan.Receiver {
		window = p.WindowBytes
	}
	fit := &record.RecheckPlan{Applied: []string{}, RateBps: path.RateBps, RTTMinS: path.RTT.Seconds(),
		WindowBytes: window, Settings: p.Settings}
	for _, s := range ours {
		fit.Applied = append(fit.Applied, s.Name)
		limit, err := strconv.Atoi(value(s.New)) // a route that limits the window to fewer bytes
		if s.Kind == host.Route && strings.HasSuffix(s.Name, " window") && err == nil && limit < window {
			fit.Settings = append(fit.Settings, plan.Setting{Role: role, Name: s.Name, Where: "ip route",
				Value: strconv.Itoa(window), Before: value(s.New)})
		}
	}
	fit.Fits = len(fit.Settings) == 0
	return fit
}
