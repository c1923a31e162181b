package tui

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// row is one line of the table: a direction of a connection, or a group of them.
type row struct {
	key         string // the same from period to period
	name, where string
	way         transfer.Direction
	bps, resent float64 // bit/s of payload; its retransmitted share
	rtt, least  float64 // s; 0: not known
	followed    float64 // s
	shares      verdict.Shares
	limited     string // by what, in words
	connections int
	fars        []string                  // different far ends, of a group
	connection  *record.WatchedConnection // nil for a group
	direction   *record.WatchedDirection
}

// text is what a filter looks through.
func (r *row) text() string {
	all := r.name + " " + r.where + " " + r.limited
	if c := r.connection; c != nil {
		all += " " + c.Local + " " + c.Unit + " " + c.Container
	}
	return all
}

// sorting is by what rows are sorted, the largest first.
type sorting int

const (
	byGoodput sorting = iota
	byLoss
	byRoundTrip
	byAge
	sortings
)

func (s sorting) String() string {
	return [...]string{"goodput", "retransmissions", "round trip", "age"}[s]
}

func (s sorting) compare(a, b row) int {
	value := func(r row) float64 { return [...]float64{r.bps, r.resent, r.rtt, r.followed}[s] }
	return cmp.Compare(value(b), value(a))
}

// grouping is the kind of group that rows represent.
type grouping int

const (
	byConnection grouping = iota
	byProgram
	byUnit // systemd unit or container
	byNetwork
	byPort
	groupings
)

func (g grouping) String() string {
	return [...]string{"connection", "program", "unit", "network", "port"}[g]
}

// of is the group that a connection belongs to.
func (g grouping) of(c *record.WatchedConnection) string {
	switch g {
	case byProgram:
		return cmp.Or(c.Program, "?")
	case byUnit:
		return cmp.Or(c.Unit, c.Container, "?")
	case byNetwork:
		return network(c.Remote)
	case byPort:
		return servicePort(c)
	}
	return c.Local + " " + c.Remote
}

// network is the far end's /24 or /48.
func network(remote string) string {
	at, err := netip.ParseAddrPort(remote)
	if err != nil {
		return remote
	}
	bits := 24
	if at.Addr().Is6() {
		bits = 48
	}
	p, err := at.Addr().WithZone("").Prefix(bits)
	if err != nil {
		return remote
	}
	return p.String()
}

// servicePort is the smaller port of a connection: clients take theirs from above.
func servicePort(c *record.WatchedConnection) string {
	local, _ := netip.ParseAddrPort(c.Local)
	remote, _ := netip.ParseAddrPort(c.Remote)
	return fmt.Sprintf(":%d", min(local.Port(), remote.Port()))
}

// rows are a document's rows, grouped.
func rows(d *record.Watch, g grouping) (all []row) {
	groups := map[string]int{}
	for i := range d.Connections {
		c := &d.Connections[i]
		for j := range c.Directions {
			if text.IsWayBack(c, j) {
				continue
			}
			r := single(c, j)
			if g == byConnection {
				all = append(all, r)
				continue
			}
			r.name = g.of(c)
			r.fars = []string{c.Remote}
			r.key = text.DirectionWord(r.way) + " " + r.name
			r.connection = nil
			r.direction = nil
			at, ok := groups[r.key]
			if !ok {
				groups[r.key] = len(all)
				all = append(all, r)
				continue
			}
			all[at] = all[at].with(r)
		}
	}
	return all
}

func single(c *record.WatchedConnection, direction int) row {
	d := &c.Directions[direction]
	r := row{name: text.Owner(c), way: d.Direction, bps: d.GoodputBps, shares: d.Shares,
		limited: text.LimitedCell(c, direction), connections: 1, connection: c, direction: d, followed: c.FollowedS}
	r.where = text.DirectionWord(r.way) + " " + c.Remote
	r.key = r.where + " " + c.Local
	if d.Bytes > 0 {
		r.resent = float64(d.RetransmittedBytes) / float64(d.Bytes)
	}
	r.rtt = d.RTT.Seconds()
	r.least = d.RTTMin.Seconds()
	return r
}

// with returns the sum of two rows. Shares and losses are weighted by payload.
func (r row) with(o row) row {
	sum := r
	sum.bps += o.bps
	sum.connections += o.connections
	for _, far := range o.fars {
		if !slices.Contains(sum.fars, far) {
			sum.fars = append(sum.fars, far)
		}
	}
	if len(sum.fars) > 1 {
		sum.where = fmt.Sprintf("%s %d far ends", text.DirectionWord(r.way), len(sum.fars))
	}
	weight := func(a, b float64) float64 {
		if sum.bps == 0 {
			return 0
		}
		return (a*r.bps + b*o.bps) / sum.bps
	}
	sum.resent = weight(r.resent, o.resent)
	sum.rtt = max(r.rtt, o.rtt)
	sum.followed = max(r.followed, o.followed)
	if sum.least == 0 || o.least > 0 && o.least < sum.least {
		sum.least = o.least
	}
	sum.shares = verdict.Shares{}
	for name, share := range r.shares {
		sum.shares[name] += weight(share, 0)
	}
	for name, share := range o.shares {
		sum.shares[name] += weight(0, share)
	}
	var most []string
	for _, name := range sum.shares.Top() {
		most = append(most, string(name))
	}
	sum.limited = strings.Join(most[:min(2, len(most))], ", ")
	return sum
}
