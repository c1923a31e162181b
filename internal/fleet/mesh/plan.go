package mesh

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/units"
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
	// Bound is the host or link that stretched the interval, "" where the interval is as asked.
	Bound Resource
	// ByBytes reports that the byte budget of Bound stretched the interval, not the time that runs occupy it.
	ByBytes bool
}

// Load is the use of a host or link by the planned runs.
type Load struct {
	Resource  Resource
	RunsADay  float64
	Full      float64 // share of the time that runs occupy it
	BytesADay int64   // at most, or as assumed for tasks without Most
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
	// byteHeadroom is the share of a byte budget that the plan uses. The rest is for repeated tests.
	byteHeadroom = 0.65
	day          = 24 * time.Hour
)

// RunTime returns how long a run of a throughput task occupies its hosts and links.
func (t Task) RunTime() time.Duration { return 2*time.Duration(t.Time) + setup }

// RunBytes returns the payload of a run, both ways: at most, or as assumed for a task without Most.
func (t Task) RunBytes() int64 {
	if t.Most > 0 {
		return 2 * int64(t.Most)
	}
	return 2 * int64(time.Duration(t.Time).Seconds()*assumedRate/8)
}

func (m *Mesh) budgets(agents []Agent) map[Resource]Budget {
	budgets := map[Resource]Budget{}
	for _, a := range agents {
		bytes := int64(m.Limits.DayBytes)
		if a.DayBytes > 0 && (bytes == 0 || a.DayBytes < bytes) {
			bytes = a.DayBytes
		}
		if bytes > 0 {
			budgets[HostResource(a.ID)] = Budget{Bytes: bytes}
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
// hosts and links for at most MostFull of the time, and use at most byteHeadroom of each byte budget.
func (m *Mesh) Plan(agents []Agent) (*Plan, error) {
	pairs, err := m.Pairs(agents)
	if err != nil {
		return nil, err
	}
	budgets := m.budgets(agents)
	if err := m.checkBursts(agents, pairs, budgets); err != nil {
		return nil, err
	}
	planned := make([]Planned, len(pairs))
	for i, p := range pairs {
		planned[i] = Planned{Pair: p, Every: time.Duration(m.Tasks[p.Task].Every)}
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
		if f := load.Full / m.Limits.MostFull; f > factor {
			factor = f
			p.Bound = r
			p.ByBytes = false
		}
		if load.Budget.Bytes == 0 {
			continue
		}
		if f := float64(load.BytesADay) / (byteHeadroom * float64(load.Budget.Bytes)); f > factor {
			factor = f
			p.Bound = r
			p.ByBytes = true
		}
	}
	p.Every = time.Duration(float64(p.Every) * factor)
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
			load.BytesADay += int64(float64(task.RunBytes()) * day.Hours() / p.Every.Hours())
			loads[r] = load
		}
	}
	return loads
}

// checkBursts returns an error where a run of a task never fits into the byte budget of a host or link.
func (m *Mesh) checkBursts(agents []Agent, pairs []Pair, budgets map[Resource]Budget) error {
	for _, p := range pairs {
		task := m.Tasks[p.Task]
		for _, r := range p.Needs {
			limit := budgets[r].Bytes
			if limit == 0 || float64(task.RunBytes()) <= burst*float64(limit) {
				continue
			}
			return fmt.Errorf("task.%s: a run moves up to %s, more than a fifth of the %s a day of %s: "+
				"set most, or raise day-bytes", p.Task, units.Size(task.RunBytes()), units.Size(limit),
				Describe(r, agents))
		}
	}
	return nil
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
