package text

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// keptGroup sums a group's direction over the stored minutes.
type keptGroup struct {
	name, network string
	direction     transfer.Direction
	bytes         int64
	rtt           units.Duration
	moving        float64
	limited       map[string]float64 // seconds
}

// WatchKept prints the stored minutes of a watch: each group's sums, the heaviest first.
func WatchKept(w io.Writer, d *record.WatchKept) {
	span := units.Duration(0)
	for i := range d.Minutes {
		span += d.Minutes[i].Length
	}
	fmt.Fprintf(w, "kept %s of watching from %s\n", span, d.StartedAt.UTC().Format("2006-01-02 15:04:05"))
	groups := keptGroups(d)
	if len(groups) == 0 {
		fmt.Fprintln(w, "  nothing moved")
		return
	}
	t := newTable(2, 3)
	t.optional = []int{3} // least round trip
	t.row("program or unit", "far ends", "payload", "least round trip", "limited by")
	for i := range groups[:min(Rows, len(groups))] {
		g := &groups[i]
		trip := ""
		if g.rtt > 0 {
			trip = g.rtt.String()
		}
		t.row(g.name, DirectionWord(g.direction)+" "+g.network, units.Size(g.bytes).String(), trip, keptShares(g))
	}
	t.write(w, "  ")
	if left := len(groups) - Rows; left > 0 {
		fmt.Fprintf(w, "  and %s\n", count(left, "lighter group"))
	}
	if d.Anonymized {
		fmt.Fprintln(w, "  anonymized: the networks are invented")
	}
}

func keptGroups(d *record.WatchKept) (all []keptGroup) {
	type key struct {
		name, network string
		direction     transfer.Direction
	}
	at := map[key]int{}
	for i := range d.Minutes {
		for j := range d.Minutes[i].Groups {
			g := &d.Minutes[i].Groups[j]
			k := key{name: cmp.Or(g.Owner, "?"), network: cmp.Or(g.Network, "?")}
			if g.Port > 0 {
				k.network += fmt.Sprintf(" port %d", g.Port)
			}
			if g.Folded > 0 {
				k.name = "lighter groups"
				k.network = "all networks"
			}
			for _, f := range g.Directions {
				k.direction = f.Direction
				n, ok := at[k]
				if !ok {
					n = len(all)
					at[k] = n
					all = append(all, keptGroup{name: k.name, network: k.network, direction: k.direction,
						limited: map[string]float64{}})
				}
				all[n].add(&f)
			}
		}
	}
	slices.SortStableFunc(all, func(a, b keptGroup) int { return cmp.Compare(b.bytes, a.bytes) })
	return all
}

func (g *keptGroup) add(f *record.WatchGroupDirection) {
	g.bytes += f.Bytes
	g.moving += f.MovingS
	if f.RTTMin > 0 && (g.rtt == 0 || f.RTTMin < g.rtt) {
		g.rtt = f.RTTMin
	}
	for name, share := range f.Shares {
		g.limited[name] += share * f.MovingS
	}
}

// keptShares returns the limiters with 10 % of the time or more.
func keptShares(g *keptGroup) string {
	names := slices.Sorted(maps.Keys(g.limited))
	slices.SortStableFunc(names, func(a, b string) int { return cmp.Compare(g.limited[b], g.limited[a]) })
	var parts []string
	for i, name := range names {
		if share := g.limited[name] / g.moving; i == 0 || share >= 0.1 {
			parts = append(parts, name+" "+percent(share))
		}
	}
	return strings.Join(parts, ", ")
}
