package httpserver

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
)

// In TestListener_Eviction each step is a connection that enters ("a1"), is used while busy ("a1 busy") or idle
// ("a1 idle"), is kept ("a1 kept"), or leaves ("-a1"). The letter is its host. "a1>b2": a1 evicts b2. "a1!": a1
// gets no slot. Each step takes one second.
func TestListener_Eviction(t *testing.T) {
	for name, c := range map[string]struct {
		max, perHost int64
		steps        string
		open         string
	}{
		"room for all":                         {3, 0, "a1, a2, b1", "a1 a2 b1"},
		"the oldest of the busiest host":       {3, 0, "a1, b1, a2, c1>a1", "a2 b1 c1"},
		"the newcomer's own host":              {3, 0, "a1, a2, b1, a3>a1, a4>a2", "a3 a4 b1"},
		"one each: the least recently used":    {3, 0, "a1, b1, c1, a1 idle, d1>b1", "a1 c1 d1"},
		"one each, all busy":                   {3, 0, "a1, b1, c1, a1 busy, b1 busy, c1 busy, d1>a1", "b1 c1 d1"},
		"used connections stay longer":         {3, 0, "a1, a2, a3, a1 idle, b1>a2", "a1 a3 b1"},
		"idle before busy":                     {3, 0, "a1, a1 busy, a2, a3, b1>a2, b2>a3", "a1 b1 b2"},
		"busy where the host has no idle one":  {2, 0, "a1, a2, a1 busy, a2 busy, b1>a1", "a2 b1"},
		"the busiest host, not an idle one":    {3, 0, "b1, a1, a2, a1 busy, a2 busy, c1>a1", "a2 b1 c1"},
		"the least recently used of busy ones": {2, 0, "a1, a2, a1 busy, a2 busy, a1 busy, b1>a2", "a1 b1"},
		"idle again":                           {2, 0, "a1, a2, a1 busy, a2 busy, a1 idle, b1>a1", "a2 b1"},
		"kept connections never":               {3, 0, "a1, a2, a1 kept, a2 kept, b1, b2>b1, b2 kept, c1!", "a1 a2 b2"},
		"a host's own bound":                   {9, 2, "a1, a2, b1, a3>a1, a3 kept, a4>a2, a4 kept, a5!", "a3 a4 b1"},
		"places that were given back":          {2, 0, "a1, a2, -a1, -a1, b1, c1>a2", "b1 c1"},
		"a connection that was evicted leaves": {2, 0, "a1, a2, a3>a1, -a1, b1>a2", "a3 b1"},
	} {
		table := admission.Table{Limits: admission.Limits{Total: admission.Load{c.max}, PerHost: admission.Load{c.perHost}}}
		now, evicted := time.Now(), ""
		places, open := map[string]*admission.Entry{}, map[string]bool{}
		for step := range strings.SplitSeq(c.steps, ", ") {
			now = now.Add(time.Second)
			conn, use, used := strings.Cut(step, " ")
			conn, leaves := strings.CutPrefix(conn, "-")
			conn, want, _ := strings.Cut(conn, ">")
			conn, refused := strings.CutSuffix(conn, "!")
			switch {
			case use == "kept":
				table.Pin(places[conn], true)
			case used:
				table.Extend(places[conn], lastUse(now, use == "busy"))
			case leaves:
				table.Release(places[conn])
				delete(open, conn)
			default:
				evicted = ""
				place := newEntry(netip.AddrFrom4([4]byte{192, 0, 2, conn[0]}), now)
				place.Evict = func() { evicted = conn; delete(open, conn) }
				places[conn], open[conn] = place, true
				err := table.Admit(place, now)
				if err != nil {
					delete(open, conn)
				}
				if refused != (err != nil) || evicted != want {
					t.Errorf("%s: %s: evicted %q, %v", name, step, evicted, err)
				}
			}
		}
		var left []string
		for conn := range open {
			left = append(left, conn)
		}
		slices.Sort(left)
		if strings.Join(left, " ") != c.open {
			t.Errorf("%s: open %v, want %s", name, left, c.open)
		}
	}
}
