package socket

import (
	"net/netip"
	"slices"
	"strings"
	"testing"
)

// Each step is a connection that enters ("a1"), is used as busy ("a1 busy"), idle ("a1 idle") or
// kept ("a1 kept"), or leaves ("-a1"); the letter is its host. "a1>b2" says that b2 is evicted by
// it, "a1!" that it gets no place.
func TestPlaces(t *testing.T) {
	for name, c := range map[string]struct {
		max, perHost int
		steps        string
		open         string
	}{
		"room for all":                        {3, 0, "a1, a2, b1", "a1 a2 b1"},
		"oldest of the busiest host":          {3, 0, "a1, b1, a2, c1>a1", "a2 b1 c1"},
		"the newcomer's own host":             {3, 0, "a1, a2, b1, a3>a1, a4>a2", "a3 a4 b1"},
		"one each: the least recently used":   {3, 0, "a1, b1, c1, a1 idle, d1>b1", "a1 c1 d1"},
		"what is used stays longer":           {3, 0, "a1, a2, a3, a1 idle, b1>a2", "a1 a3 b1"},
		"idle before busy":                    {3, 0, "a1, a1 busy, a2, a3, b1>a2, b2>a3", "a1 b1 b2"},
		"busy where the host has no idle one": {2, 0, "a1, a2, a1 busy, a2 busy, b1>a1", "a2 b1"},
		"idle again":                          {2, 0, "a1, a2, a1 busy, a2 busy, a1 idle, b1>a1", "a2 b1"},
		"kept never":                          {3, 0, "a1, a2, a1 kept, a2 kept, b1, b2>b1, b2 kept, c1!", "a1 a2 b2"},
		"no longer kept":                      {1, 0, "a1, a1 kept, b1!, a1 idle, b1>a1", "b1"},
		"a host's own bound":                  {9, 2, "a1, a2, b1, a3>a1, a3 kept, a4>a2, a4 kept, a5!", "a3 a4 b1"},
		"places that were given back":         {2, 0, "a1, a2, -a1, -a1, b1, c1>a2", "b1 c1"},
		"the evicted one leaves":              {2, 0, "a1, a2, a3>a1, -a1, a1 kept, b1>a2", "a3 b1"},
		"no place at all":                     {0, 0, "a1!", ""},
	} {
		p := Places[string]{Max: c.max, MaxPerHost: c.perHost}
		for step := range strings.SplitSeq(c.steps, ", ") {
			conn, use, used := strings.Cut(step, " ")
			conn, leaves := strings.CutPrefix(conn, "-")
			conn, want, _ := strings.Cut(conn, ">")
			conn, refused := strings.CutSuffix(conn, "!")
			from := netip.AddrFrom4([4]byte{192, 0, 2, conn[0]})
			switch {
			case used:
				p.Use(from, conn, map[string]Hold{"idle": Idle, "busy": Busy, "kept": Kept}[use])
			case leaves:
				p.Leave(from, conn)
			default:
				if evicted, ok := p.Enter(from, conn); evicted != want || ok == refused {
					t.Errorf("%s: %s: evicted %q, %v", name, step, evicted, ok)
				}
			}
		}
		var open []string
		for _, places := range p.hosts {
			for _, one := range places {
				open = append(open, one.conn)
			}
		}
		if slices.Sort(open); strings.Join(open, " ") != c.open || p.Open() != len(open) {
			t.Errorf("%s: open %v (%d), want %s", name, open, p.Open(), c.open)
		}
	}
}

// TestPlaces_IPv6Subscriber counts the addresses of a /64 together.
func TestPlaces_IPv6Subscriber(t *testing.T) {
	p := Places[int]{Max: 2}
	for conn, from := range map[int]string{1: "2001:db8::1", 2: "2001:db8::2"} {
		p.Enter(netip.MustParseAddr(from), conn)
	}
	if len(p.hosts) != 1 {
		t.Errorf("%d hosts", len(p.hosts))
	}
	if evicted, ok := p.Enter(netip.MustParseAddr("2001:db8:0:1::1"), 3); evicted == 0 || !ok {
		t.Errorf("evicted %d, %v", evicted, ok)
	}
}
