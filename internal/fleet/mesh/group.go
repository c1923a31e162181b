package mesh

import (
	"cmp"
	"slices"
)

// Direction is one direction of a path, with the change that its last results show.
type Direction struct {
	From, To         string // agents' names: From sends
	FromSite, ToSite string
	Links            []string
	Change           string // code of the change, "" where the last result is as usual
}

// CauseKind is the kind of a common cause.
type CauseKind string

// The closed list.
const (
	HostSends    CauseKind = "host-sends"    // all that one host sends
	HostReceives CauseKind = "host-receives" // all that one host receives
	OneHost      CauseKind = "host"          // all of one host, both ways
	SiteSends    CauseKind = "site-sends"
	SiteReceives CauseKind = "site-receives"
	OneSite      CauseKind = "site"
	OneLink      CauseKind = "link"
)

// Cause is a host, site or link that changed directions share.
type Cause struct {
	Kind CauseKind
	Name string
}

// Group is changes that are one event.
type Group struct {
	Cause   Cause // zero for a single change
	Change  string
	Changed []int // indexes of the changed directions
	AsUsual int   // directions of the same cause whose last result is as usual
}

const (
	minGroup  = 3    // changed directions that make a group
	minOthers = 2    // distinct other ends: one slow peer does not blame all its partners
	minShare  = 0.75 // of a cause's directions that have to be changed
)

// GroupChanges puts changes that share a host, a site or a link into one group. A cause needs at least 3 changed
// directions with 2 different other ends, and 75 % of its directions changed. Among causes that explain equally many
// changes, the one with the fewest directions as usual is chosen, then the most specific one. Changes without a common
// cause are groups of one.
func GroupChanges(directions []Direction) []Group {
	members := map[Cause][]int{}
	for i, d := range directions {
		for _, c := range d.causes() {
			members[c] = append(members[c], i)
		}
	}
	var groups []Group
	grouped := make([]bool, len(directions))
	for {
		best, ok := bestGroup(directions, members, grouped)
		if !ok {
			break
		}
		for _, i := range best.Changed {
			grouped[i] = true
		}
		groups = append(groups, best)
	}
	for i, d := range directions {
		if d.Change != "" && !grouped[i] {
			groups = append(groups, Group{Change: d.Change, Changed: []int{i}})
		}
	}
	return groups
}

// causes returns the possible causes of a direction's change.
func (d Direction) causes() []Cause {
	causes := []Cause{{HostSends, d.From}, {HostReceives, d.To}, {OneHost, d.From}, {OneHost, d.To}}
	if d.FromSite != d.ToSite {
		for kind, site := range map[CauseKind]string{SiteSends: d.FromSite, SiteReceives: d.ToSite} {
			if site != "" {
				causes = append(causes, Cause{kind, site}, Cause{OneSite, site})
			}
		}
	}
	for _, link := range d.Links {
		causes = append(causes, Cause{OneLink, link})
	}
	return causes
}

// kinds are the kinds of causes, the most specific first.
var kinds = []CauseKind{HostReceives, HostSends, OneHost, OneLink, SiteReceives, SiteSends, OneSite}

// bestGroup returns the group that explains most of the changes that are in no group yet.
func bestGroup(directions []Direction, members map[Cause][]int, grouped []bool) (best Group, ok bool) {
	for cause, indexes := range members {
		for _, change := range changesOf(directions, indexes, grouped) {
			g := Group{Cause: cause, Change: change}
			others := map[string]bool{}
			for _, i := range indexes {
				switch d := directions[i]; {
				case d.Change == "":
					g.AsUsual++
				case d.Change == change && !grouped[i]:
					g.Changed = append(g.Changed, i)
					others[cause.otherEnd(d)] = true
				}
			}
			share := float64(len(g.Changed)) / float64(len(g.Changed)+g.AsUsual)
			if len(g.Changed) < minGroup || len(others) < minOthers || share < minShare {
				continue
			}
			if !ok || better(g, best) {
				best = g
				ok = true
			}
		}
	}
	return best, ok
}

func better(g, best Group) bool {
	return cmp.Or(
		cmp.Compare(len(g.Changed), len(best.Changed)),
		cmp.Compare(best.AsUsual, g.AsUsual),
		cmp.Compare(slices.Index(kinds, best.Cause.Kind), slices.Index(kinds, g.Cause.Kind)),
		cmp.Compare(best.Cause.Name, g.Cause.Name),
		cmp.Compare(best.Change, g.Change)) > 0
}

// otherEnd returns the end of a direction that is not the cause.
func (c Cause) otherEnd(d Direction) string {
	switch c.Kind {
	case HostSends, SiteSends:
		return d.To
	case HostReceives, SiteReceives:
		return d.From
	case OneHost:
		if d.From == c.Name {
			return d.To
		}
		return d.From
	case OneSite:
		if d.FromSite == c.Name {
			return d.To
		}
		return d.From
	}
	return d.From + " " + d.To
}

// changesOf returns the different changes among directions that are in no group.
func changesOf(directions []Direction, indexes []int, grouped []bool) (changes []string) {
	for _, i := range indexes {
		if change := directions[i].Change; change != "" && !grouped[i] && !slices.Contains(changes, change) {
			changes = append(changes, change)
		}
	}
	return changes
}
