package mesh

import (
	"fmt"
	"testing"
)

// grid returns all directions between hosts of sites, 3 hosts each. changed returns the change of a direction.
func grid(sites int, changed func(from, to string) string) (all []Direction) {
	host := func(i int) (name, site string) { return fmt.Sprintf("h%d%c", i/3, 'a'+i%3), fmt.Sprintf("s%d", i/3) }
	for i := range 3 * sites {
		for j := range 3 * sites {
			if i == j {
				continue
			}
			d := Direction{}
			d.From, d.FromSite = host(i)
			d.To, d.ToSite = host(j)
			if d.FromSite != d.ToSite {
				d.Links = []string{"wan-" + d.FromSite, "wan-" + d.ToSite}
			}
			d.Change = changed(d.From, d.To)
			all = append(all, d)
		}
	}
	return all
}

func TestGroupChanges(t *testing.T) {
	for _, c := range []struct {
		name    string
		changed func(from, to string) string
		want    []Group // Changed has the count only
	}{
		{"nothing", func(from, to string) string { return "" }, nil},
		{"one path", func(from, to string) string {
			if from == "h0a" && to == "h1b" {
				return "dip"
			}
			return ""
		}, []Group{{Change: "dip", Changed: make([]int, 1)}}},
		{"one host receives", func(from, to string) string {
			if to == "h2a" {
				return "limiter"
			}
			return ""
		}, []Group{{Cause: Cause{HostReceives, "h2a"}, Change: "limiter", Changed: make([]int, 11)}}},
		{"one host, both ways", func(from, to string) string {
			if to == "h2a" || from == "h2a" {
				return "dip"
			}
			return ""
		}, []Group{{Cause: Cause{OneHost, "h2a"}, Change: "dip", Changed: make([]int, 22)}}},
		{"one host sends, a few as usual", func(from, to string) string {
			if from == "h1c" && to != "h0a" && to != "h0b" {
				return "dip"
			}
			return ""
		}, []Group{{Cause: Cause{HostSends, "h1c"}, Change: "dip", Changed: make([]int, 9), AsUsual: 2}}},
		{"a site receives", func(from, to string) string {
			if to[:2] == "h3" && from[:2] != "h3" {
				return "dip"
			}
			return ""
		}, []Group{{Cause: Cause{SiteReceives, "s3"}, Change: "dip", Changed: make([]int, 27)}}},
		{"the uplink of a site", func(from, to string) string {
			if (to[:2] == "h3") != (from[:2] == "h3") {
				return "dip"
			}
			return ""
		}, []Group{{Cause: Cause{OneLink, "wan-s3"}, Change: "dip", Changed: make([]int, 54)}}},
		{"two hosts", func(from, to string) string {
			switch {
			case to == "h0a":
				return "dip"
			case from == "h2b":
				return "limiter"
			}
			return ""
		}, []Group{{Cause: Cause{HostReceives, "h0a"}, Change: "dip", Changed: make([]int, 11)},
			{Cause: Cause{HostSends, "h2b"}, Change: "limiter", Changed: make([]int, 10)}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := GroupChanges(grid(4, c.changed))
			if len(got) != len(c.want) {
				t.Fatalf("%d groups %+v, want %d", len(got), got, len(c.want))
			}
			for i, g := range got {
				w := c.want[i]
				if g.Cause != w.Cause || g.Change != w.Change || len(g.Changed) != len(w.Changed) || g.AsUsual != w.AsUsual {
					t.Errorf("%+v, want %+v with %d", g, w.Cause, len(w.Changed))
				}
			}
		})
	}
}

// TestGroupChanges_FewResults checks that two changes, or three with one partner, blame nobody.
func TestGroupChanges_FewResults(t *testing.T) {
	two := []Direction{{From: "a", To: "x", Change: "dip"}, {From: "b", To: "x", Change: "dip"}}
	same := Direction{From: "a", To: "x", Change: "dip"}
	onePartner := []Direction{same, same, same}
	for _, directions := range [][]Direction{two, onePartner} {
		for _, g := range GroupChanges(directions) {
			if g.Cause != (Cause{}) {
				t.Errorf("%v blamed by %d changes", g.Cause, len(g.Changed))
			}
		}
	}
}
