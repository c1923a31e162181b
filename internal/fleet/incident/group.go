package incident

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Kind is the kind of a common cause.
type Kind string

// The closed list.
const (
	HostSends    Kind = "host-sends"    // all that one host sends
	HostReceives Kind = "host-receives" // all that one host receives
	OneHost      Kind = "host"          // all of one host, both ways
	SiteSends    Kind = "site-sends"
	SiteReceives Kind = "site-receives"
	OneSite      Kind = "site"
	OneLink      Kind = "link"
	OnePath      Kind = "path"  // nothing in common with others
	AllHosts     Kind = "fleet" // most of the fleet
)

// Noun returns host, site, link, path or fleet.
func (k Kind) Noun() string {
	noun, _, _ := strings.Cut(string(k), "-")
	return noun
}

// Cause is a host, site or link that directions share. ID is of a host, or the IDs of a path's two hosts; otherwise it
// is the name.
type Cause struct {
	Kind Kind   `json:"kind"`
	ID   string `json:"name"`
}

// key names what a cause blames: a host whatever it sends or receives.
func (c Cause) key() string { return c.Kind.Noun() + " " + c.ID }

const (
	minGroup  = 3    // directions that make a group
	minOthers = 2    // distinct other ends: one slow peer does not blame all its partners
	minShare  = 0.75 // of a cause's known directions that have to be off
)

// kinds are the kinds of common causes, the most specific first.
var kinds = []Kind{HostReceives, HostSends, OneHost, OneLink, SiteReceives, SiteSends, OneSite, AllHosts}

// causes returns the possible common causes of what is wrong with a direction.
func (d *Direction) causes() []Cause {
	causes := []Cause{{HostSends, d.From}, {HostReceives, d.To}, {OneHost, d.From}, {OneHost, d.To}}
	if d.FromSite != d.ToSite {
		if d.FromSite != "" {
			causes = append(causes, Cause{SiteSends, d.FromSite}, Cause{OneSite, d.FromSite})
		}
		if d.ToSite != "" {
			causes = append(causes, Cause{SiteReceives, d.ToSite}, Cause{OneSite, d.ToSite})
		}
	}
	for _, link := range d.Links {
		causes = append(causes, Cause{OneLink, link})
	}
	return causes
}

// ends returns the host of a direction within a cause, and the one outside.
func (c Cause) ends(d *Direction) (inside, outside string) {
	receives := c.Kind == HostReceives || c.Kind == SiteReceives || c.Kind == OneHost && d.To == c.ID ||
		c.Kind == OneSite && d.ToSite == c.ID
	switch {
	case receives:
		return d.To, d.From
	case c.Kind == OneLink:
		return d.From, d.From + " " + d.To
	}
	return d.From, d.To
}

// limiters are the limiters that are a setting or a fault of hosts, with the kinds of causes that they may have. Others
// are how a healthy path ends, such as bottleneck.
var limiters = map[verdict.Name][]Kind{
	verdict.ReceiverWindow:  {HostReceives, SiteReceives, AllHosts},
	verdict.SendBuffer:      {HostSends, SiteSends, AllHosts},
	verdict.LocalQueue:      {HostSends, SiteSends, AllHosts},
	verdict.CPU:             {HostSends, HostReceives, OneHost, SiteSends, SiteReceives, OneSite, AllHosts},
	verdict.AckPath:         {HostReceives, HostSends, OneLink, SiteReceives, SiteSends, OneSite, AllHosts},
	verdict.MTUBlackHole:    {HostReceives, HostSends, OneHost, OneLink, SiteReceives, SiteSends, OneSite, AllHosts},
	verdict.NagleDelayedAck: {HostReceives, HostSends, SiteReceives, SiteSends, AllHosts},
}

// finding is a cause of one symptom.
type finding struct {
	cause     Cause
	symptom   Symptom
	limiter   string
	members   []int // directions that are off
	of        int   // directions of the cause that are known
	hosts     []string
	since     time.Time
	confirmed bool
	waits     bool // for tests that name the cause
}

// grouping puts directions into findings: those of a common cause first. off has the directions with the symptom; known
// reports whether the state of another one is known in a cause.
type grouping struct {
	directions []Direction
	members    map[Cause][]int // all directions by cause
	off        map[int]bool
	anchors    map[int]bool // of off: one at least is in each finding
	known      func(c Cause, i int) bool
	allowed    func(k Kind) bool
}

// groups returns the findings with a common cause. A cause needs at least 3 directions that are off with 2 different
// other ends, and 75 % of its known directions. Among causes that explain equally many, the one with the fewest
// directions as usual is chosen, then the most specific one. rest are the anchors without a common cause.
func (g *grouping) groups() (found []finding, rest []int) {
	grouped := map[int]bool{}
	causes := map[Cause]bool{}
	for i := range g.anchors {
		for _, c := range g.directions[i].causes() {
			causes[c] = true
		}
		causes[Cause{Kind: AllHosts}] = true
	}
	for {
		var best finding
		hasBest := false
		usual := 0
		for c := range causes {
			f, asUsual, fits := g.group(c, grouped)
			if fits && (!hasBest || better(f, asUsual, best, usual)) {
				best = f
				usual = asUsual
				hasBest = true
			}
		}
		if !hasBest {
			break
		}
		for _, i := range best.members {
			grouped[i] = true
		}
		found = append(found, best)
	}
	for i := range g.anchors {
		if !grouped[i] {
			rest = append(rest, i)
		}
	}
	slices.Sort(rest)
	return found, rest
}

// group returns a cause with its directions that are in no group yet.
func (g *grouping) group(c Cause, grouped map[int]bool) (f finding, usual int, ok bool) {
	if !g.allowed(c.Kind) {
		return f, 0, false
	}
	f.cause = c
	others := map[string]bool{}
	anchored := false
	for _, i := range g.members[c] {
		switch {
		case g.off[i] && grouped[i]:
		case g.off[i]:
			f.members = append(f.members, i)
			_, outside := c.ends(&g.directions[i])
			others[outside] = true
			anchored = anchored || g.anchors[i]
		case g.known(c, i):
			usual++
		}
	}
	f.of = len(f.members) + usual
	share := float64(len(f.members)) / float64(f.of)
	return f, usual, anchored && len(f.members) >= minGroup && len(others) >= minOthers && share >= minShare
}

func better(f finding, usual int, best finding, bestUsual int) bool {
	return cmp.Or(
		cmp.Compare(len(f.members), len(best.members)),
		cmp.Compare(bestUsual, usual),
		cmp.Compare(slices.Index(kinds, best.cause.Kind), slices.Index(kinds, f.cause.Kind)),
		cmp.Compare(best.cause.ID, f.cause.ID)) > 0
}
