package mesh

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"path"
	"slices"
	"strings"
	"time"
)

// Agent is a member of the fleet.
type Agent struct {
	ID, Name string
	Labels   map[string]string
	DayBytes int64         // its own limit in any 24 hours; 0 is none
	DayTime  time.Duration // likewise, of transfers
}

// Pair is two agents that repeat a task. A run of the pair measures both directions.
type Pair struct {
	Task  string
	A, B  string     // IDs, A < B
	Needs []Resource // sorted: both hosts, and the links of the path
}

// Key names the pair among all pairs of a fleet.
func (p Pair) Key() string { return p.Task + " " + p.A + " " + p.B }

// Resource is a host or a link that at most one run uses at a time.
type Resource string

// HostResource returns the resource of an agent's host.
func HostResource(id string) Resource { return Resource("host:" + id) }

// LinkResource returns the resource of a named link.
func LinkResource(name string) Resource { return Resource("link:" + name) }

// Host returns the agent's ID, and false where the resource is a link.
func (r Resource) Host() (id string, ok bool) { return strings.CutPrefix(string(r), "host:") }

// Link returns the link's name, and false where the resource is a host.
func (r Resource) Link() (name string, ok bool) { return strings.CutPrefix(string(r), "link:") }

// MaxPairs is the greatest number of pairs of a mesh.
const MaxPairs = 1_000_000

// SiteOf returns the name of an agent's site, "" without one. An agent that fits several sites belongs to the first
// by name.
func (m *Mesh) SiteOf(a Agent) string {
	for _, n := range sorted(m.Sites) {
		if m.Sites[n].has(a) {
			return n
		}
	}
	return ""
}

func (s Site) has(a Agent) bool {
	if slices.ContainsFunc(s.Agents, func(pattern string) bool { return matched(pattern, a.Name) }) {
		return true
	}
	for label, value := range s.Labels {
		if a.Labels[label] != value {
			return false
		}
	}
	return len(s.Labels) > 0
}

func matched(pattern, text string) bool {
	ok, err := path.Match(pattern, text)
	return err == nil && ok
}

// placed is an agent with its site.
type placed struct {
	Agent
	site string
}

// Pairs returns the pairs of all tasks, sorted by key. The error names a task whose members make too many
// pairs.
func (m *Mesh) Pairs(agents []Agent) ([]Pair, error) {
	all := make([]placed, len(agents))
	for i, a := range agents {
		all[i] = placed{a, m.SiteOf(a)}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.ID, b.ID) })
	var pairs []Pair
	for _, n := range sorted(m.Tasks) {
		task := m.Tasks[n]
		chosen := task.pairs(n, all)
		if len(pairs)+len(chosen) > MaxPairs {
			return nil, fmt.Errorf("task.%s: more than %d pairs: set neighbours or per-site", n, MaxPairs)
		}
		for _, c := range chosen {
			a := all[c[0]]
			b := all[c[1]]
			pairs = append(pairs, Pair{Task: n, A: a.ID, B: b.ID, Needs: m.needs(a, b)})
		}
	}
	return pairs, nil
}

// Needs returns the hosts and links of a run between two agents.
func (m *Mesh) Needs(a, b Agent) []Resource {
	return m.needs(placed{a, m.SiteOf(a)}, placed{b, m.SiteOf(b)})
}

// needs is Needs for agents with their sites.
func (m *Mesh) needs(a, b placed) []Resource {
	needs := []Resource{HostResource(a.ID), HostResource(b.ID)}
	if a.site != b.site {
		for _, site := range []string{a.site, b.site} {
			if uplink := m.Sites[site].Uplink; uplink != "" {
				needs = append(needs, LinkResource(uplink))
			}
		}
		for n, link := range m.Links {
			if slices.Contains(link.Between, a.site) && slices.Contains(link.Between, b.site) {
				needs = append(needs, LinkResource(n))
			}
		}
	}
	slices.Sort(needs)
	return slices.Compact(needs)
}

// pairs returns the task's pairs as indexes into all, the smaller first, sorted and distinct. It stops soon after
// MaxPairs.
func (t Task) pairs(task string, all []placed) [][2]int {
	var found [][2]int
	switch {
	case t.Neighbours > 0:
		found = t.neighbours(task, t.members(task, t.Between, all), all)
	case len(t.Between) > 0:
		found = among(t.members(task, t.Between, all))
	default:
		found = across(t.members(task, t.From, all), t.members(task, t.To, all))
	}
	slices.SortFunc(found, func(a, b [2]int) int { return cmp.Or(cmp.Compare(a[0], b[0]), cmp.Compare(a[1], b[1])) })
	return slices.Compact(found)
}

// among returns each pair of members.
func among(members []int) (found [][2]int) {
	for i, a := range members {
		for _, b := range members[i+1:] {
			found = append(found, [2]int{min(a, b), max(a, b)})
		}
		if len(found) > MaxPairs {
			break
		}
	}
	return found
}

// across returns each pair of a member of one list and a different member of the other.
func across(from, to []int) (found [][2]int) {
	for _, a := range from {
		for _, b := range to {
			if a != b {
				found = append(found, [2]int{min(a, b), max(a, b)})
			}
		}
		if len(found) > 2*MaxPairs { // each pair at most twice
			break
		}
	}
	return found
}

// members returns the agents that a list of patterns selects, at most PerSite of each site.
func (t Task) members(task string, patterns []string, all []placed) (members []int) {
	for i, a := range all {
		if slices.ContainsFunc(patterns, a.fits) {
			members = append(members, i)
		}
	}
	if t.PerSite == 0 {
		return members
	}
	perSite := map[string]int{}
	order := shuffled(task, members, all)
	members = members[:0]
	for _, i := range order {
		if site := all[i].site; site == "" || perSite[site] < t.PerSite {
			perSite[site]++
			members = append(members, i)
		}
	}
	return members
}

// fits reports whether an agent is selected by "site:NAME", or by its own name. Both may be patterns.
func (a placed) fits(pattern string) bool {
	if site, ok := strings.CutPrefix(pattern, "site:"); ok {
		return a.site != "" && matched(site, a.site)
	}
	return matched(pattern, a.Name)
}

// neighbours returns pairs in which each member chooses a number of others. The members form that many rings, each in
// an order of its own, and each chooses its successors. So a new agent changes few pairs.
func (t Task) neighbours(task string, members []int, all []placed) (found [][2]int) {
	count := min(t.Neighbours, len(members)-1)
	chosen := map[[2]int]bool{} // the first chose the second
	for ring := range count {
		order := shuffled(fmt.Sprint(task, " ", ring), members, all)
		for i, a := range order {
			for step := 1; step < len(order); step++ {
				b := order[(i+step)%len(order)]
				if !chosen[[2]int{a, b}] {
					chosen[[2]int{a, b}] = true
					found = append(found, [2]int{min(a, b), max(a, b)})
					break
				}
			}
		}
	}
	return found
}

// shuffled returns the members in an order that depends on the seed and on their IDs alone.
func shuffled(seed string, members []int, all []placed) []int {
	type ranked struct {
		member int
		score  uint64
	}
	ranks := make([]ranked, len(members))
	for i, m := range members {
		ranks[i] = ranked{m, score(seed, all[m].ID)}
	}
	slices.SortFunc(ranks, func(a, b ranked) int {
		return cmp.Or(cmp.Compare(a.score, b.score), cmp.Compare(a.member, b.member))
	})
	order := make([]int, len(members))
	for i, r := range ranks {
		order[i] = r.member
	}
	return order
}

// score returns a number that depends on nothing but the texts.
func score(task, text string) uint64 {
	h := fnv.New64a()
	fmt.Fprintf(h, "%s\x00%s", task, text)
	v := h.Sum64()
	v ^= v >> 33 // FNV's high bits differ little between texts that differ in the last character
	v *= 0xff51afd7ed558ccd
	return v ^ v>>33
}
