package tune

import (
	"errors"
	"net/netip"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// HostChanges returns what this host needs for a direction, in the narrowest scope that serves: a smaller window or the
// initial window of a short file, on the route to far; larger buffers on the host; another congestion control on the
// route, else the host; pacing as a shaper. A *host.UnsettableError says that the device's queue is to be left alone.
func (d *Direction) HostChanges(far netip.Addr, target plan.Target, now *audit.Snapshot) ([]host.Change, error) {
	prefix, err := host.RouteTo(far)
	routed := err == nil && prefix != "default" && prefix != "::/0"
	chosen := Chosen{}
	if d.Chosen != nil {
		chosen = *d.Chosen
	}
	switch {
	case routed && d.shortFile() > 0:
		return []host.Change{host.Set(host.Route, prefix+" initcwnd", strconv.Itoa(d.File.InitialWindow))}, nil
	case chosen.MSS > 0:
		return d.smaller(prefix, routed, far), nil
	}
	if d.Delay != nil && d.Direction == transfer.Up && chosen.Window > 0 {
		// A route's cwnd limits connections only after one has ended (net/ipv4/tcp_metrics.c takes its
		// lock into the cache then); a shaper keeps the queue as short at once.
		if shaper, err := d.shaper(far, belowTheLine*d.Path.BottleneckBps); err == nil {
			return shaper, nil
		}
	}
	changes, err := d.windowChanges(prefix, routed, target, now)
	if err != nil {
		return nil, err
	}
	if chosen.PacingBps > 0 && d.Direction == transfer.Up {
		shaper, err := d.shaper(far, chosen.PacingBps*d.Path.BottleneckBps/d.Path.CapacityBps)
		if err != nil {
			return nil, err
		}
		changes = append(changes, shaper...)
	}
	congestion := d.betterCongestion()
	switch {
	case congestion == "" || len(changes) > 0 && chosen.Congestion == "":
	case routed:
		changes = append(changes, host.Set(host.Route, prefix+" congctl", congestion))
	default:
		changes = append(changes, host.Set(host.Sysctl, "net.ipv4.tcp_congestion_control", congestion))
	}
	if len(changes) == 0 {
		return d.marks(now), nil
	}
	return changes, nil
}

// windowChanges narrow this host's window or enlarge its buffers, unless the chosen setup changes something else only.
func (d *Direction) windowChanges(prefix string, routed bool, target plan.Target, now *audit.Snapshot) ([]host.Change,
	error) {
	switch narrower := d.narrower(prefix); {
	case routed && len(narrower) > 0:
		return narrower, nil
	case len(narrower) > 0:
		return nil, &host.UnsettableError{Setting: "a smaller window",
			Why: "it belongs to the route to the far host, which has none of its own here"}
	}
	if d.Delay != nil { // larger buffers only lengthen a queue
		return nil, nil
	}
	if c := d.Chosen; c != nil && d.Direction == transfer.Up && c.Window == 0 && (c.Congestion != "" || c.PacingBps > 0) {
		return nil, nil // it was shown to help with the buffers that there are
	}
	p, err := d.hostPlan(target, d.Direction == transfer.Up, now)
	if err != nil {
		return nil, err
	}
	return host.Changes(p.Settings, "")
}

// shortFile returns the size of the file where slow start limits it and this host sends it; else 0.
func (d *Direction) shortFile() int64 {
	if d.File == nil || d.File.InitialWindow == 0 || d.Direction != transfer.Up {
		return 0
	}
	return d.File.Bytes
}

// shaper limits the rate at which this host sends to the far end, in bit/s at the IP layer.
func (d *Direction) shaper(far netip.Addr, bps float64) ([]host.Change, error) {
	name, err := host.ShaperTo(far)
	if err != nil {
		return nil, &host.UnsettableError{Setting: "a shaper", Why: err.Error()}
	}
	changes := []host.Change{host.Set(host.Qdisc, name, strconv.FormatInt(int64(bps)/8*8, 10))}
	if _, err := host.Preview(host.Config{}, changes); err != nil {
		return nil, &host.UnsettableError{Setting: "a shaper", Why: err.Error()}
	}
	return changes, nil
}

// marks asks for ECN where loss limits and nothing else of this host helps. The far end agrees by default
// (net.ipv4.tcp_ecn = 2). Only a queue that marks makes a difference; the proof takes it back on any other path.
func (d *Direction) marks(now *audit.Snapshot) []host.Change {
	v := d.Before.Verdict
	elsewhere := d.Chosen == nil || d.Direction == transfer.Down && d.Chosen.Window == 0 // nothing of it is this host's
	// Neither a policer's losses nor segments that overtook each other go away by marks; a queue that drops
	// what it cannot mark looks like a policer, with low confidence.
	unmarked := v.Subtype != "" && v.Confidence != verdict.Low
	if v.Limiter != verdict.Congestion || unmarked || !elsewhere || now.Values[ecnSetting] == "1" {
		return nil
	}
	return []host.Change{host.Set(host.Sysctl, ecnSetting, "1")}
}

// ecnSetting is 1 where connections ask for ECN, 2 where they agree to it only (tcp(7)).
const ecnSetting = "net.ipv4.tcp_ecn"

// hostPlan raises the buffers' maxima to what fills the path within the host's memory; to twice what the fastest
// transfer needed where windows still limited it.
func (d *Direction) hostPlan(target plan.Target, sends bool, now *audit.Snapshot) (*plan.Plan, error) {
	if d.Path.BottleneckBps <= 0 || d.Path.RTT <= 0 {
		return nil, errors.New("too little was measured to plan")
	}
	window := float64(d.Path.Window)
	if d.Chosen != nil {
		window = max(window, float64(d.Chosen.Window))
	}
	if d.Path.AtLeast {
		window *= 2
	}
	path := plan.Path{RateBps: d.Path.BottleneckBps, RTT: d.Path.RTT, Jitter: d.Path.Jitter, MSS: d.Path.MSS,
		ReceiveWindow: model.Window(window, d.Path.MSS), MemoryBytes: now.MemoryBytes}
	if now.LimitBytes > 0 {
		path.MemoryBytes = min(path.MemoryBytes, now.LimitBytes)
	}
	role := plan.Receiver
	if sends {
		role = plan.Sender
	}
	return plan.New(path, target, plan.Options{Role: role, Values: now.Values})
}

// Narrows reports that the chosen window is smaller than the one that automatic sizing takes.
func (d *Direction) Narrows() bool {
	automatic := 0
	for _, t := range d.Trials {
		if t.Automatic && t.Remedy == "" {
			automatic = max(automatic, t.Effective)
		}
	}
	return d.Chosen != nil && d.Chosen.Window > 0 && d.Chosen.Window < automatic
}

// narrower returns the attributes of the route to the far end that limit this host to the chosen
// window, where automatic sizing takes a larger one.
func (d *Direction) narrower(prefix string) []host.Change {
	if !d.Narrows() {
		return nil
	}
	if d.Direction == transfer.Up {
		return []host.Change{host.Set(host.Route, prefix+" cwnd", strconv.Itoa(max(2, d.Chosen.Window/d.Path.MSS)))}
	}
	return []host.Change{host.Set(host.Route, prefix+" window", strconv.Itoa(d.Chosen.Window))}
}

// betterCongestion returns the congestion control that helped this host's sending by a tenth by itself; "" if none did.
func (d *Direction) betterCongestion() string {
	if d.Direction != transfer.Up {
		return ""
	}
	if d.Chosen != nil && d.Chosen.Congestion != "" {
		return d.Chosen.Congestion
	}
	name := ""
	best := 1.1
	for _, r := range d.Remedies {
		alone := r.Setup == (Setup{Congestion: r.Setup.Congestion}) && r.Base == Setup{}
		if alone && r.Setup.Congestion != "" && r.Gain.Low > 1 && r.Gain.Mid > best {
			name = r.Setup.Congestion
			best = r.Gain.Mid
		}
	}
	return name
}

// smaller has the route to the far end, or else the host, send segments that pass: the route's MTU
// where this host sends, the MSS that it asks for where it receives.
func (d *Direction) smaller(prefix string, routed bool, far netip.Addr) []host.Change {
	headers := model.HeadersTo(far)
	switch {
	case routed && d.Direction == transfer.Up:
		return []host.Change{host.Set(host.Route, prefix+" mtu", strconv.Itoa(d.Chosen.MSS+headers))}
	case routed:
		return []host.Change{host.Set(host.Route, prefix+" advmss", strconv.Itoa(d.Chosen.MSS))}
	case d.Direction == transfer.Up:
		return []host.Change{host.Set(host.Sysctl, "net.ipv4.tcp_mtu_probing", "1")} // RFC 4821
	}
	return nil
}
