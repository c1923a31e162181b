package agent

import (
	"bytes"
	"fmt"
	"net/netip"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/config"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Limits are a host's own limits, which no hub can change. The zero value is DefaultLimits without budgets.
type Limits struct {
	Budget recheck.Budget // of all runs in a day, as near and as far end; 0 is no limit
	Time   time.Duration  // of one transfer; 0 is no limit
	Rate   units.Rate     // of one transfer; 0 is no limit
	Quiet  recheck.Hours
	Peers  []netip.Prefix // other agents; none: all
}

// DefaultLimits are those of a host without a limits file.
func DefaultLimits() Limits {
	return Limits{Budget: recheck.Budget{Bytes: 10e9, Time: 10 * time.Minute}}
}

// ParseLimits parses /etc/fullpipe/agent.toml.
func ParseLimits(text []byte) (Limits, error) {
	var file struct {
		DayBytes   string   `toml:"day-bytes"`
		DayTime    string   `toml:"day-time"`
		MostTime   string   `toml:"most-time"`
		MostRate   string   `toml:"most-rate"`
		QuietHours string   `toml:"quiet-hours"`
		Zone       string   `toml:"zone"`
		Peers      []string `toml:"peers"`
	}
	l := DefaultLimits()
	err := config.Decode(bytes.NewReader(text), &file, []string{"day-bytes", "day-time", "most-time", "most-rate",
		"quiet-hours", "zone", "peers"})
	if err != nil {
		return l, err
	}
	zone := time.Local
	for _, field := range []struct {
		key, text string
		set       func(string) error
	}{
		{"day-bytes", file.DayBytes, func(s string) error {
			size, err := units.ParseSize(s)
			l.Budget.Bytes = int64(size)
			return err
		}},
		{"day-time", file.DayTime, func(s string) (err error) { l.Budget.Time, err = units.ParseTime(s); return err }},
		{"most-time", file.MostTime, func(s string) (err error) { l.Time, err = units.ParseTime(s); return err }},
		{"most-rate", file.MostRate, func(s string) (err error) { l.Rate, err = units.ParseRate(s); return err }},
		{"zone", file.Zone, func(s string) (err error) { zone, err = time.LoadLocation(s); return err }},
		{"quiet-hours", file.QuietHours, func(s string) (err error) {
			l.Quiet, err = recheck.ParseHours(s, zone)
			return err
		}},
	} {
		if field.text == "" {
			continue
		}
		if err := field.set(field.text); err != nil {
			return l, fmt.Errorf("%s: %w", field.key, err)
		}
	}
	for _, text := range file.Peers {
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return l, fmt.Errorf("peers: %q is not a network such as 10.0.0.0/8", text)
		}
		l.Peers = append(l.Peers, p.Masked())
	}
	return l, nil
}

// forHub returns the limits for the hub's plan.
func (l Limits) forHub(broken error) bus.Limits {
	out := bus.Limits{DayBytes: l.Budget.Bytes, DayTimeNs: l.Budget.Time, TimeNs: l.Time, RateBps: float64(l.Rate)}
	if broken != nil {
		out.Broken = broken.Error()
	}
	return out
}

// rateSlack is the time by which a transfer at the order's rate may be longer than ordered.
const rateSlack = time.Second

// costOf returns the maximum that one transfer of an order uses: its bytes, or its rate times its time. 0 bytes
// are no limit.
func costOf(s bus.Spec) recheck.Cost {
	c := recheck.Cost{Bytes: s.Bytes, Time: s.Time}
	if s.Bps > 0 {
		moves := min(s.Bps/8*(s.Time+rateSlack).Seconds(), maxBytes)
		if c.Bytes == 0 || moves < float64(c.Bytes) {
			c.Bytes = max(int64(moves), 1)
		}
	}
	return c
}

// left returns what of a day's budget is left besides spent, at least 0. It is 0 too where there is no budget.
func (l Limits) left(spent Use) recheck.Cost {
	return recheck.Cost{Bytes: max(l.Budget.Bytes-spent.Bytes, 0), Time: max(l.Budget.Time-spent.Time, 0)}
}

// refusal returns why the limits do not allow an order, "" where they do. spent is of today.
func (l Limits) refusal(o *bus.Order, spent Use, now time.Time) (mesh.Reason, string) {
	cost := costOf(o.Spec)
	left := l.left(spent)
	switch {
	case l.Quiet.Quiet(now):
		return mesh.QuietHours, "of this host"
	case l.Time > 0 && o.Spec.Time > l.Time:
		return mesh.Rate, fmt.Sprintf("a transfer of %s; this host allows %s", units.Time(o.Spec.Time), units.Time(l.Time))
	case l.Rate > 0 && (o.Spec.Bps == 0 || o.Spec.Bps > float64(l.Rate)):
		return mesh.Rate, fmt.Sprintf("this host allows %s", l.Rate)
	case l.Budget.Bytes > 0 && o.Spec.Bytes == 0:
		return mesh.BytesBudget, "the order has no size"
	case l.Budget.Bytes > 0 && o.Spec.Bytes > l.Budget.Bytes/2: // a run is two transfers
		return mesh.BytesBudget, fmt.Sprintf("two transfers of %s are more than %s a day", units.Size(o.Spec.Bytes),
			units.Size(l.Budget.Bytes))
	case l.Budget.Bytes > 0 && cost.Bytes > left.Bytes/2:
		return mesh.BytesBudget, fmt.Sprintf("%s of %s a day are used", units.Size(spent.Bytes), units.Size(l.Budget.Bytes))
	case l.Budget.Time > 0 && 2*cost.Time > left.Time:
		return mesh.TimeBudget, fmt.Sprintf("%s of %s a day are used", units.Time(spent.Time), units.Time(l.Budget.Time))
	case o.Role == bus.RoleTest && spent.Connections+connectionsOf(o) > maxFailedConnections:
		return mesh.Connections, fmt.Sprintf("%d connections of failed runs today; the limit is %d", spent.Connections,
			maxFailedConnections)
	}
	for _, p := range o.Peers {
		if addr := p.Addr().Unmap(); !addr.IsValid() || !l.allowsPeers(netip.PrefixFrom(addr, addr.BitLen())) {
			return mesh.Peer, p.Addr().String()
		}
	}
	for _, p := range o.From {
		if !l.allowsPeers(p) {
			return mesh.Peer, p.String()
		}
	}
	if o.Role == bus.RoleServe && len(o.From) == 0 {
		return mesh.Peer, "the order does not say from which addresses"
	}
	return "", ""
}

// allowsPeers reports whether all addresses of a network are of allowed peers.
func (l Limits) allowsPeers(network netip.Prefix) bool {
	return network.IsValid() && (len(l.Peers) == 0 || slices.ContainsFunc(l.Peers, func(p netip.Prefix) bool {
		return network.Bits() >= p.Bits() && p.Contains(network.Addr())
	}))
}
