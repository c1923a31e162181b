package mesh

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
)

// Budget limits all runs of a host or link in any 24 hours; 0 is no limit.
type Budget struct {
	Bytes int64
	Time  time.Duration
}

// Planned is a pair with the interval that its hosts and links allow.
type Planned struct {
	Pair
	Every time.Duration // mean time between runs, at least what the task asks for
	// Bound is the host or link that stretched the interval, "" where the interval is as asked. By is the limit.
	Bound Resource
	By    Limit
	Bytes int64 // payload of a run, both ways, at most; the run reserves as much of each byte budget
}

// Limit names a limit of a host or link, as the files have it.
type Limit string

// The closed list of limits.
const (
	MostFull Limit = "most-full"
	DayBytes Limit = "day-bytes"
	DayTime  Limit = "day-time"
)

// Load is the use of a host or link by the planned runs.
type Load struct {
	Resource  Resource
	RunsADay  float64
	Full      float64       // share of the time that runs occupy it
	BytesADay int64         // at most, or as assumed for tasks without Most
	TimeADay  time.Duration // of transfers
	Budget    Budget
}

// Plan is a mesh applied to its agents.
type Plan struct {
	Pairs   []Planned
	Loads   []Load              // the fullest first
	Budgets map[Resource]Budget // of bytes, of the hosts and links that have one
}

const (
	// setup is the time of a run besides its two transfers: orders, connections, path MTU.
	setup = 2 * time.Second
	// assumedRate is the rate in bit/s of tasks without Most.
	assumedRate = 1e9
	// headroom is the share of a budget that the plan uses. The rest is for repeated tests.
	headroom = 0.65
	// runShare: one direction of a run may use 1/runShare of a byte budget, so a run uses at most a fifth.
	runShare = 10
	day      = 24 * time.Hour
)

// RunTime returns how long a run of a throughput task occupies its hosts and links.
func (t Task) RunTime() time.Duration { return 2*time.Duration(t.Time) + setup }

// TransferTime returns the greatest time of a run's transfers, which counts as time of its agents' day.
func (t Task) TransferTime() time.Duration { return 2 * time.Duration(t.Time) }

// RunBytes returns the payload of a run, both ways: at most, or as assumed for a task without Most.
func (t Task) RunBytes() int64 {
	if t.Most > 0 {
		return 2 * int64(t.Most)
	}
	return 2 * int64(time.Duration(t.Time).Seconds()*assumedRate/8)
}

// RunBytesWithin returns the payload of a run, both ways, that the budgets of its hosts and links allow.
func (t Task) RunBytesWithin(needs []Resource, budgets map[Resource]Budget) int64 {
	bytes := t.RunBytes()
	for _, r := range needs {
		if day := budgets[r].Bytes; day > 0 {
			bytes = min(bytes, max(2*(day/runShare), 1))
		}
	}
	return bytes
}

func (m *Mesh) budgets(agents []Agent) map[Resource]Budget {
	budgets := map[Resource]Budget{}
	for _, a := range agents {
		b := Budget{Bytes: int64(m.Limits.DayBytes), Time: max(a.DayTime, 0)}
		if a.DayBytes > 0 && (b.Bytes == 0 || a.DayBytes < b.Bytes) {
			b.Bytes = a.DayBytes
		}
		if b != (Budget{}) {
			budgets[HostResource(a.ID)] = b
		}
	}
	for n, link := range m.Links {
		if link.DayBytes > 0 {
			budgets[LinkResource(n)] = Budget{Bytes: int64(link.DayBytes)}
		}
	}
	return budgets
}

// Plan plans the throughput tasks of a mesh. A task's interval is stretched for a pair until runs occupy each of its
// hosts and links for at most MostFull of the time, and use at most headroom of each budget.
func (m *Mesh) Plan(agents []Agent) (*Plan, error) {
	pairs, err := m.Pairs(agents)
	if err != nil {
		return nil, err
	}
	budgets := m.budgets(agents)
	planned := make([]Planned, len(pairs))
	for i, p := range pairs {
		task := m.Tasks[p.Task]
		planned[i] = Planned{Pair: p, Every: time.Duration(task.Every), Bytes: task.RunBytesWithin(p.Needs, budgets)}
	}
	asked := m.loads(planned, budgets)
	for i := range planned {
		m.stretch(&planned[i], asked)
	}
	loads := slices.SortedFunc(maps.Values(m.loads(planned, budgets)), func(a, b Load) int {
		return cmp.Or(cmp.Compare(b.Full, a.Full), cmp.Compare(a.Resource, b.Resource))
	})
	return &Plan{planned, loads, budgets}, nil
}

// stretch lengthens the interval of a pair as its hosts and links need it.
func (m *Mesh) stretch(p *Planned, asked map[Resource]Load) {
	factor := 1.0
	for _, r := range p.Needs {
		load := asked[r]
		for _, use := range []struct {
			limit         Limit
			asked, budget float64
		}{
			{MostFull, load.Full, m.Limits.MostFull},
			{DayBytes, float64(load.BytesADay), headroom * float64(load.Budget.Bytes)},
			{DayTime, float64(load.TimeADay), headroom * float64(load.Budget.Time)},
		} {
			if f := use.asked / use.budget; use.budget > 0 && f > factor {
				factor = f
				p.Bound = r
				p.By = use.limit
			}
		}
	}
	p.Every = time.Duration(min(float64(p.Every)*factor, float64(maxEvery)))
}

// loads sums the use of each host and link by the pairs.
func (m *Mesh) loads(pairs []Planned, budgets map[Resource]Budget) map[Resource]Load {
	loads := map[Resource]Load{}
	for _, p := range pairs {
		task := m.Tasks[p.Task]
		for _, r := range p.Needs {
			load := loads[r]
			load.Resource = r
			load.Budget = budgets[r]
			load.RunsADay += day.Hours() / p.Every.Hours()
			load.Full += task.RunTime().Seconds() / p.Every.Seconds()
			load.BytesADay += int64(float64(p.Bytes) * day.Hours() / p.Every.Hours())
			load.TimeADay += time.Duration(float64(task.TransferTime()) * day.Hours() / p.Every.Hours())
			loads[r] = load
		}
	}
	return loads
}

// Describe returns "host ber-1" or "link berlin-wan".
func Describe(r Resource, agents []Agent) string {
	id, isHost := r.Host()
	if !isHost {
		return strings.Replace(string(r), ":", " ", 1)
	}
	for _, a := range agents {
		if a.ID == id {
			return "host " + a.Name
		}
	}
	return "host " + id
}

// Default returns the mesh of a fleet without a mesh file. Up to 30 agents test all others once a day, more test five
// others.
func Default(agents int) *Mesh {
	const fullMesh, neighbours = 30, 5
	all := Task{Between: []string{"*"}, Every: Interval(day), Most: 200e6}
	m := &Mesh{Tasks: map[string]Task{}}
	if agents > fullMesh {
		all.Neighbours = neighbours
		m.Tasks["sites"] = Task{Between: []string{"site:*"}, PerSite: 1, Every: Interval(day), Most: 200e6}
	}
	m.Tasks["throughput"] = all
	if err := m.check(); err != nil {
		panic(err) // impossible: the tasks are valid
	}
	return m
}
