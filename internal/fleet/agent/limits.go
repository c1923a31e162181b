package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
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

// refusal returns why the limits do not allow an order, "" where they do. spent is of today.
func (l Limits) refusal(o *bus.Order, spent recheck.Cost, now time.Time) (mesh.Reason, string) {
	switch {
	case l.Quiet.Quiet(now):
		return mesh.QuietHours, "of this host"
	case l.Time > 0 && o.Spec.Time > l.Time:
		return mesh.Rate, fmt.Sprintf("a transfer of %s; this host allows %s", units.Time(o.Spec.Time), units.Time(l.Time))
	case l.Rate > 0 && (o.Spec.Bps == 0 || o.Spec.Bps > float64(l.Rate)):
		return mesh.Rate, fmt.Sprintf("this host allows %s", l.Rate)
	case l.Budget.Bytes > 0 && o.Spec.Bytes == 0:
		return mesh.BytesBudget, "the order has no size"
	case l.Budget.Bytes > 0 && o.Spec.Bytes > (l.Budget.Bytes-spent.Bytes)/2:
		return mesh.BytesBudget, fmt.Sprintf("%s of %s a day are used", units.Size(spent.Bytes), units.Size(l.Budget.Bytes))
	case l.Budget.Time > 0 && spent.Time+2*o.Spec.Time > l.Budget.Time:
		return mesh.TimeBudget, fmt.Sprintf("%s of %s a day are used", units.Time(spent.Time), units.Time(l.Budget.Time))
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

// ledger counts the bytes and time of a day's runs, also over restarts.
type ledger struct {
	path string
	mu   sync.Mutex
	day  time.Time
	cost recheck.Cost
}

// ledgerFile is the ledger's file.
type ledgerFile struct {
	Day    time.Time     `json:"day"`
	Bytes  int64         `json:"bytes"`
	TimeNs time.Duration `json:"time_ns"`
}

func openLedger(ctx context.Context, dir string) (*ledger, error) {
	l := &ledger{path: filepath.Join(dir, "spent.json")}
	text, err := os.ReadFile(l.path)
	if errors.Is(err, fs.ErrNotExist) {
		// A directory that cannot be written to would let every restart begin with an empty ledger.
		return l, atomicfile.WritePrivate(ctx, l.path, encodeLedger(ledgerFile{}))
	}
	if err != nil {
		return nil, err
	}
	var file ledgerFile
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: %w; remove it to begin the day's budgets anew", l.path, err)
	}
	l.day = file.Day
	l.cost = recheck.Cost{Bytes: file.Bytes, Time: file.TimeNs}
	return l, nil
}

func encodeLedger(file ledgerFile) []byte {
	text, _ := json.Marshal(file) // numbers and a time
	return append(text, '\n')
}

// today returns the bytes and time of this day's runs, by the clock of the limits' zone.
func (l *ledger) today(now time.Time, limits Limits) recheck.Cost {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(limits.Quiet.Day(now))
	return l.cost
}

// turn begins a new day. A clock that was set back does not begin one.
func (l *ledger) turn(day time.Time) {
	if day.After(l.day) {
		l.day = day
		l.cost = recheck.Cost{}
	}
}

// add counts a transfer. A file that cannot be written is found by the next order, which needs disk space.
func (l *ledger) add(now time.Time, limits Limits, moved int64, took time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn(limits.Quiet.Day(now))
	l.cost = l.cost.Plus(recheck.Cost{Bytes: moved, Time: took})
	_ = atomicfile.WritePrivate(context.Background(), l.path, encodeLedger(ledgerFile{l.day, l.cost.Bytes, l.cost.Time}))
}
