package incident

import (
	"fmt"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

var begin = time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)

// grid returns all directions between hosts of sites, 3 hosts each. off reports which are slow.
func grid(sites int, off func(from, to string) bool) State {
	s := State{Now: begin.Add(time.Hour)}
	host := func(i int) (id, site string) { return fmt.Sprintf("h%d%c", i/3, 'a'+i%3), fmt.Sprintf("s%d", i/3) }
	for i := range 3 * sites {
		id, site := host(i)
		s.Hosts = append(s.Hosts, Host{ID: id, Name: id, Site: site, Seen: s.Now})
		for k := range 3 * sites {
			if i == k {
				continue
			}
			d := Direction{Task: "t", From: id, FromSite: site, Measured: begin, Ended: begin, GoodputBps: 9e8,
				Goodput: recheck.Level{Usual: changepoint.Past{Level: 9e8, Within: 2e8}}}
			d.To, d.ToSite = host(k)
			d.Pair = "t " + min(d.From, d.To) + " " + max(d.From, d.To)
			if d.FromSite != d.ToSite {
				d.Links = []string{"wan-" + d.FromSite, "wan-" + d.ToSite}
			}
			if off(d.From, d.To) {
				d.GoodputBps = 3e8
				d.Goodput.Worse = begin
			}
			s.Directions = append(s.Directions, d)
		}
	}
	return s
}

func TestJudge_CommonCause(t *testing.T) {
	type want struct {
		cause    Cause
		affected int
		of       int
	}
	for _, c := range []struct {
		name string
		off  func(from, to string) bool
		want []want
	}{
		{"nothing", func(from, to string) bool { return false }, nil},
		{"one path", func(from, to string) bool { return from == "h0a" && to == "h1b" },
			[]want{{Cause{OnePath, "h0a h1b"}, 1, 1}}},
		{"one path, both ways", func(from, to string) bool { return min(from, to) == "h0a" && max(from, to) == "h1b" },
			[]want{{Cause{OnePath, "h0a h1b"}, 2, 2}}},
		{"one host receives", func(from, to string) bool { return to == "h2a" },
			[]want{{Cause{HostReceives, "h2a"}, 11, 11}}},
		{"one host, both ways", func(from, to string) bool { return to == "h2a" || from == "h2a" },
			[]want{{Cause{OneHost, "h2a"}, 22, 22}}},
		{"one host sends, a few as usual", func(from, to string) bool { return from == "h1c" && to != "h0a" && to != "h0b" },
			[]want{{Cause{HostSends, "h1c"}, 9, 11}}},
		{"a site receives", func(from, to string) bool { return to[:2] == "h3" && from[:2] != "h3" },
			[]want{{Cause{SiteReceives, "s3"}, 27, 27}}},
		{"the uplink of a site", func(from, to string) bool { return (to[:2] == "h3") != (from[:2] == "h3") },
			[]want{{Cause{OneLink, "wan-s3"}, 54, 54}}},
		{"two hosts", func(from, to string) bool { return to == "h0a" || from == "h2b" },
			[]want{{Cause{HostReceives, "h0a"}, 11, 11}, {Cause{HostSends, "h2b"}, 10, 10}}},
		{"two directions of one receiver are two paths",
			func(from, to string) bool { return to == "h0a" && from[:2] == "h1" && from != "h1c" },
			[]want{{Cause{OnePath, "h0a h1a"}, 1, 1}, {Cause{OnePath, "h0a h1b"}, 1, 1}}},
	} {
		t.Run(c.name, func(t *testing.T) {
			d := Judge(grid(4, c.off), counter())
			if len(d.Incidents) != len(c.want) || len(d.Notices) != len(c.want) || len(d.Pairs) != 0 {
				t.Fatalf("%+v, want %+v", d, c.want)
			}
			for i, w := range c.want {
				got := d.Incidents[i]
				if got.Cause != w.cause || got.Affected != w.affected || got.Of != w.of || d.Notices[i].Change != Opened {
					t.Errorf("%v %d of %d, %s; want %+v", got.Cause, got.Affected, got.Of, d.Notices[i].Change, w)
				}
			}
		})
	}
}

// counter returns a source of IDs.
func counter() func() string {
	n := 0
	return func() string {
		n++
		return fmt.Sprint("i", n)
	}
}
