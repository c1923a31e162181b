package mesh

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// fleet returns agents spread evenly over sites. Each is named after its site.
func fleet(agents, sites int) []Agent {
	all := make([]Agent, agents)
	for i := range all {
		site := fmt.Sprintf("s%03d", i%max(sites, 1))
		all[i] = Agent{ID: fmt.Sprintf("id%05d", i), Name: fmt.Sprintf("%s-%d", site, i),
			Labels: map[string]string{"site": site}}
	}
	return all
}

// sited returns a mesh with sites, each with an uplink of its own if uplinks is set, and one task.
func sited(t *testing.T, sites int, uplinks bool, task string) *Mesh {
	t.Helper()
	var text strings.Builder
	for i := range sites {
		fmt.Fprintf(&text, "[site.s%03d]\nlabels = { site = \"s%03d\" }\n", i, i)
		if uplinks {
			fmt.Fprintf(&text, "uplink = \"wan%03d\"\n[link.wan%03d]\n", i, i)
		}
	}
	m := must.Get(Parse([]byte(text.String() + task)))(t)
	return m
}

func TestPairs(t *testing.T) {
	agents := fleet(12, 3)
	for _, c := range []struct {
		name, task string
		want       int
	}{
		{"full mesh", `between = ["*"]`, 12 * 11 / 2},
		{"one site", `between = ["site:s001"]`, 4 * 3 / 2},
		{"two sites and a host", `between = ["site:s000", "site:s001", "s002-2"]`, 9 * 8 / 2},
		{"from and to", `from = ["s000-*"]
to = ["s001-*"]`, 16},
		{"from and to overlap", `from = ["*"]
to = ["s001-1", "s001-4"]`, 2*10 + 1},
		{"one agent of each site", `between = ["site:*"]
per-site = 1`, 3},
		{"no match", `between = ["nobody"]`, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sited(t, 3, true, "[task.a]\nevery = \"6h\"\n"+c.task)
			pairs, err := m.Pairs(agents)
			if err != nil || len(pairs) != c.want {
				t.Fatalf("%d pairs, %v; want %d", len(pairs), err, c.want)
			}
			reversed := slices.Clone(agents)
			slices.Reverse(reversed)
			again, _ := m.Pairs(reversed)
			if !slices.EqualFunc(pairs, again, func(a, b Pair) bool { return a.Key() == b.Key() }) {
				t.Error("the order of the agents changes the pairs")
			}
		})
	}
}

func TestPairs_NeighboursAreStable(t *testing.T) {
	m := sited(t, 0, false, "[task.a]\nevery = \"6h\"\nbetween = [\"*\"]\nneighbours = 5")
	keys := func(agents []Agent) map[string]bool {
		pairs := must.Get(m.Pairs(agents))(t)
		set := map[string]bool{}
		degree := map[string]int{}
		for _, p := range pairs {
			set[p.Key()] = true
			degree[p.A]++
			degree[p.B]++
		}
		for _, a := range agents {
			if degree[a.ID] < 5 {
				t.Errorf("%s has %d neighbours, want at least 5", a.ID, degree[a.ID])
			}
		}
		return set
	}
	agents := fleet(200, 1)
	before := keys(agents[:199])
	after := keys(agents)
	changed := 0
	for key := range before {
		if !after[key] {
			changed++
		}
	}
	if changed > 25 {
		t.Errorf("one agent more replaces %d of %d pairs", changed, len(before))
	}
	if few := keys(agents[:6]); len(few) != 15 {
		t.Errorf("6 agents with 5 neighbours make %d pairs, want the full mesh of 15", len(few))
	}
}

func TestPairs_NeedLinksBetweenSites(t *testing.T) {
	m := sited(t, 3, true, "[link.sea]\nbetween = [\"s000\", \"s002\"]\n[task.a]\nevery = \"6h\"\nbetween = [\"*\"]")
	pairs := must.Get(m.Pairs(fleet(6, 3)))(t)
	for _, c := range []struct{ a, b, want string }{
		{"id00000", "id00003", "[host:id00000 host:id00003]"}, // one site
		{"id00000", "id00001", "[host:id00000 host:id00001 link:wan000 link:wan001]"},
		{"id00000", "id00002", "[host:id00000 host:id00002 link:sea link:wan000 link:wan002]"},
	} {
		i := slices.IndexFunc(pairs, func(p Pair) bool { return p.A == c.a && p.B == c.b })
		if i < 0 || fmt.Sprint(pairs[i].Needs) != c.want {
			t.Errorf("%s %s needs %v, want %s", c.a, c.b, pairs[max(i, 0)].Needs, c.want)
		}
	}
}

func TestPairs_TooMany(t *testing.T) {
	m := sited(t, 0, false, "[task.a]\nevery = \"6h\"\nbetween = [\"*\"]")
	if _, err := m.Pairs(fleet(2000, 1)); err == nil || !strings.Contains(err.Error(), "set neighbours") {
		t.Errorf("two million pairs: %v", err)
	}
}

// TestPlan_StretchesInterval compares with the arithmetic by hand. An uplink of one of 20 sites with 5 hosts each is in
// 475 pairs: 475 × 12 s / 0.6 = 2.64 h. A host in 99 pairs of 2 × 625 MB has 0.65 × 50 GB a day: 91 h.
func TestPlan_StretchesInterval(t *testing.T) {
	for _, c := range []struct {
		name    string
		uplinks bool
		task    string
		hours   float64
		bound   string
	}{
		{"not stretched", false, "every = \"1h\"", 1, ""},
		{"by uplinks", true, "every = \"1h\"", 2.639, "link"},
		{"long enough", true, "every = \"6h\"", 6, ""},
		{"by bytes", false, "every = \"6h\"\n[limits]\nday-bytes = \"50GB\"", 91.38, "host"},
		{"by bytes with most", false, "every = \"6h\"\nmost = \"100MB\"\n[limits]\nday-bytes = \"50GB\"", 14.62, "host"},
		{"by an emptier link", false, "every = \"6h\"\n[limits]\nmost-full = 0.01", 33, "host"},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := sited(t, 20, c.uplinks, "[task.a]\nbetween = [\"*\"]\n"+c.task)
			plan := must.Get(m.Plan(fleet(100, 20)))(t)
			var longest Planned
			for _, p := range plan.Pairs {
				if p.Every > longest.Every {
					longest = p
				}
			}
			got := longest.Every.Hours()
			kind, _, _ := strings.Cut(string(longest.Bound), ":")
			if math.Abs(got-c.hours) > 0.005*c.hours || kind != c.bound {
				t.Errorf("%.3f h by %q, want %.3f h by a %q", got, longest.Bound, c.hours, c.bound)
			}
		})
	}
}

func TestPlan_RunLargerThanBurst(t *testing.T) {
	m := sited(t, 0, false, "[task.a]\nevery = \"6h\"\nbetween = [\"*\"]\n[limits]\nday-bytes = \"5GB\"")
	_, err := m.Check(fleet(3, 1))
	if err == nil || err.Error() != "task.a: a run moves up to 1.16 GiB, more than a fifth of the 4.66 GiB a day of "+
		"host s000-0: set most, or raise day-bytes" {
		t.Error(err)
	}
}

func TestPlan_OwnLimitOfAgent(t *testing.T) {
	m := sited(t, 0, false, "[task.a]\nevery = \"6h\"\nbetween = [\"*\"]\nmost = \"10MB\"")
	agents := fleet(10, 1)
	agents[3].DayBytes = 200e6 // 9 pairs × 20 MB / 130 MB a day: 33.2 h
	plan := must.Get(m.Plan(agents))(t)
	for _, p := range plan.Pairs {
		want := 6.0
		if p.A == "id00003" || p.B == "id00003" {
			want = 33.23
		}
		if got := p.Every.Hours(); math.Abs(got-want) > 0.01 {
			t.Errorf("%s every %.2f h, want %.2f", p.Key(), got, want)
		}
	}
}

// TestPlan_TinyLimitOfAgent checks that an agent's own limits, which it may invent, change nothing for the others.
func TestPlan_TinyLimitOfAgent(t *testing.T) {
	m := sited(t, 0, false, "[task.a]\nevery = \"6h\"\nbetween = [\"*\"]")
	for _, limits := range []Agent{{DayBytes: 1}, {DayBytes: 5e6}, {DayTime: 1}, {DayTime: time.Second}, {DayTime: -1},
		{DayBytes: 1, DayTime: 1}} {
		agents := fleet(6, 1)
		agents[3].DayBytes = limits.DayBytes
		agents[3].DayTime = limits.DayTime
		plan, err := m.Plan(agents)
		if err != nil {
			t.Fatalf("%+v: %v", limits, err)
		}
		for _, p := range plan.Pairs {
			its := p.A == "id00003" || p.B == "id00003"
			if !its && p.Every != 6*time.Hour || p.Every < 6*time.Hour || p.Bytes < 1 {
				t.Errorf("%+v: %s every %v with %d bytes", limits, p.Key(), p.Every, p.Bytes)
			}
			if day := limits.DayBytes; its && day >= 5 && float64(p.Bytes) > burst*float64(day) {
				t.Errorf("%+v: %s reserves %d bytes", limits, p.Key(), p.Bytes)
			}
		}
	}
}

// TestPlan_DayTime checks that the time of a host's transfers fits into its own time of a day, with room for repeated
// tests.
func TestPlan_DayTime(t *testing.T) {
	for _, c := range []struct {
		hosts     int
		task      string
		dayTime   time.Duration
		asked     float64 // hours
		stretched float64
	}{
		{11, "every = \"1h\"", 10 * time.Minute, 1, 24 * 10 * 10 / (0.65 * 600)},
		{11, "every = \"1h\"\ntime = \"1s\"", 10 * time.Minute, 1, 24 * 10 * 2 / (0.65 * 600)},
		{11, "every = \"24h\"", 10 * time.Minute, 24, 24},
		{5, "every = \"30m\"\ntime = \"20s\"", 2 * time.Hour, 0.5, 0.5 * 48 * 4 * 40 / (0.65 * 7200)},
		{5, "every = \"30m\"\ntime = \"20s\"", 0, 0.5, 0.5},
	} {
		m := sited(t, 0, false, "[task.a]\nbetween = [\"*\"]\n"+c.task)
		agents := fleet(c.hosts, 1)
		for i := range agents {
			agents[i].DayTime = c.dayTime
		}
		plan := must.Get(m.Check(agents))(t)
		for _, p := range plan.Pairs {
			wantBy := Limit("")
			if c.stretched > c.asked {
				wantBy = DayTime
			}
			if got := p.Every.Hours(); math.Abs(got-c.stretched) > 0.01*c.stretched || p.By != wantBy {
				t.Errorf("%d hosts, %q: every %.2f h by %q, want %.2f", c.hosts, c.task, got, p.By, c.stretched)
			}
		}
		for _, load := range plan.Loads {
			if c.dayTime > 0 && load.TimeADay > c.dayTime*2/3 {
				t.Errorf("%s: %v a day of %v", load.Resource, load.TimeADay, c.dayTime)
			}
		}
	}
	m := sited(t, 0, false, "[task.a]\nbetween = [\"*\"]\nevery = \"6h\"\ntime = \"1m\"")
	agents := fleet(2, 1)
	agents[1].DayTime = 90 * time.Second
	_, err := m.Check(agents)
	if err == nil || !strings.Contains(err.Error(), "takes up to 2m, more than the 90 s a day of host") {
		t.Error(err)
	}
}

// TestCheck_MembersWithoutHosts checks that a member of a task that selects no host is an error, with its place.
func TestCheck_MembersWithoutHosts(t *testing.T) {
	agents := []Agent{{ID: "1", Name: "ber-1"}, {ID: "2", Name: "ber-2"}, {ID: "3", Name: "gw-1"}}
	sites := "[site.berlin]\nagents = [\"ber-*\"]\n[site.oslo]\nagents = [\"osl-*\"]\n[task.a]\nevery = \"6h\"\n"
	for _, c := range []struct{ members, want string }{
		{`between = ["*"]`, ""},
		{`between = ["site:berlin", "gw-1"]`, ""},
		{`from = ["ber-?"]` + "\n" + `to = ["gw-*"]`, ""},
		{`between = ["site:*"]`, ""},
		{`between = ["gw-11"]`, `task.a.between: "gw-11" matches no host of the fleet (gw-1?)`},
		{`between = ["*", "fra-*"]`, `task.a.between: "fra-*" matches no host of the fleet`},
		{`between = ["site:oslo"]`, `task.a.between: "site:oslo" matches no host`},
		{`from = ["*"]` + "\n" + `to = ["nobody"]`, `task.a.to: "nobody" matches no host`},
	} {
		m, err := Parse([]byte(sites + c.members))
		if err != nil {
			t.Fatal(err)
		}
		_, err = m.Check(agents)
		if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
			t.Errorf("%s: %v, want %q", c.members, err, c.want)
		}
		if _, err := m.Plan(agents); err != nil { // hosts may leave a running fleet
			t.Errorf("%s: the plan of a running fleet: %v", c.members, err)
		}
		if _, err := m.Check(nil); err != nil {
			t.Errorf("%s: before the first host: %v", c.members, err)
		}
	}
}

func TestDefault(t *testing.T) {
	for _, c := range []struct{ agents, pairs int }{{2, 1}, {30, 435}, {100, 500}} {
		m := Default(c.agents)
		agents := fleet(c.agents, 1)
		pairs, _ := m.Pairs(agents)
		if near(len(pairs), c.pairs) {
			t.Errorf("%d agents: %d pairs, want about %d", c.agents, len(pairs), c.pairs)
		}
		if every := time.Duration(m.Tasks["throughput"].Every); every != 24*time.Hour {
			t.Errorf("every %v", every)
		}
	}
}

// near reports whether a count is outside 90 to 100 % of another: neighbours that choose each other are one pair.
func near(n, want int) bool { return n > want || n < want*9/10 }
