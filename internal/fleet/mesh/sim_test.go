package mesh

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/recheck"
	"github.com/fullpipe-net/fullpipe/internal/testenv/must"
)

// fleetRun simulates a hub on a virtual clock: pairs become due at exponential gaps, wait for a quarter of their
// interval, and occupy their hosts and links for as long as a run takes.
type fleetRun struct {
	mesh    *Mesh
	plan    *Plan
	book    *Book
	queue   eventQueue
	rng     *rand.Rand
	now     time.Time
	pending map[string]int       // run → index of its pair
	began   map[string]time.Time // run → start
	log     map[Resource][]use

	due, done, skipped int
	reasons            map[Reason]int
	waits              []time.Duration
	events             int // calls of Next
}

// use is a run on a resource.
type use struct {
	from, to time.Time
	bytes    int64
}

type event struct {
	at   time.Time
	pair int    // becomes due, if run is ""
	run  string // ends
}

type eventQueue []event

func (q eventQueue) Len() int           { return len(q) }
func (q eventQueue) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q eventQueue) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *eventQueue) Push(x any)        { *q = append(*q, x.(event)) }
func (q *eventQueue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

func simulate(t testing.TB, m *Mesh, agents []Agent, lasts time.Duration) *fleetRun {
	t.Helper()
	plan := must.Get(m.Plan(agents))(t)
	s := &fleetRun{mesh: m, plan: plan, book: NewBook(plan.Budgets, start), rng: rand.New(rand.NewPCG(1, 2)),
		now: start, pending: map[string]int{}, began: map[string]time.Time{}, log: map[Resource][]use{},
		reasons: map[Reason]int{}}
	for i, p := range plan.Pairs {
		// The fleet has run for long: the first gap began before the simulation.
		s.queue = append(s.queue, event{at: start.Add(time.Duration(s.rng.Float64() * float64(p.Every))), pair: i})
	}
	heap.Init(&s.queue)
	for end := start.Add(lasts); s.queue.Len() > 0; {
		next := s.queue[0].at
		if wake, ok := s.book.Wake(s.now); ok && wake.Before(next) && wake.After(s.now) {
			next = wake
		}
		if next.After(end) {
			break
		}
		s.now = next
		s.step()
	}
	return s
}

// step handles the events of this moment and starts runs.
func (s *fleetRun) step() {
	for s.queue.Len() > 0 && !s.queue[0].at.After(s.now) {
		e := heap.Pop(&s.queue).(event)
		if e.run != "" {
			s.end(e.run)
			continue
		}
		p := s.plan.Pairs[e.pair]
		s.due++
		id := fmt.Sprint("run", s.due)
		s.pending[id] = e.pair
		s.book.Due(Run{ID: id, Pair: p.Key(), Needs: p.Needs, Bytes: s.mesh.Tasks[p.Task].RunBytes(), Due: s.now,
			Late: s.now.Add(p.Every / 4), First: s.rng.Float64() < 0.02})
		next := recheck.Schedule{Every: p.Every}.Next(s.now, s.rng.ExpFloat64())
		heap.Push(&s.queue, event{at: next, pair: e.pair})
	}
	runTime := func(r Run) time.Duration { return s.mesh.Tasks[s.plan.Pairs[s.pending[r.ID]].Task].RunTime() }
	s.events++
	started, skipped := s.book.Next(s.now, func(r Run) time.Duration { return runTime(r) + time.Second })
	for _, r := range started {
		s.began[r.ID] = s.now
		s.waits = append(s.waits, s.now.Sub(r.Due))
		heap.Push(&s.queue, event{at: s.now.Add(runTime(r)), run: r.ID})
	}
	for _, r := range skipped {
		s.skipped++
		s.reasons[r.Reason]++
		delete(s.pending, r.ID)
	}
}

func (s *fleetRun) end(id string) {
	p := s.plan.Pairs[s.pending[id]]
	moved := s.mesh.Tasks[p.Task].RunBytes()
	s.book.Free(id, moved, s.now)
	for _, r := range p.Needs {
		s.log[r] = append(s.log[r], use{s.began[id], s.now, moved})
	}
	s.done++
	delete(s.pending, id)
	delete(s.began, id)
}

// conflicts counts the runs that met another on a host or link, by the simulation's own log.
func (s *fleetRun) conflicts() (n int) {
	for _, uses := range s.log {
		slices.SortFunc(uses, func(a, b use) int { return a.from.Compare(b.from) })
		for i := 1; i < len(uses); i++ {
			if uses[i].from.Before(uses[i-1].to) {
				n++
			}
		}
	}
	return n
}

// mostIn24h returns the most bytes of a host or link in any 24 hours.
func (s *fleetRun) mostIn24h() (most int64) {
	for _, uses := range s.log {
		sum := int64(0)
		first := 0
		for _, u := range uses {
			sum += u.bytes
			for ; u.from.Sub(uses[first].from) >= day; first++ {
				sum -= uses[first].bytes
			}
			most = max(most, sum)
		}
	}
	return most
}

func (s *fleetRun) wait(quantile float64) time.Duration {
	slices.Sort(s.waits)
	return s.waits[int(quantile*float64(len(s.waits)-1))]
}

// TestSimulation runs fleets for days of virtual time. The invariants: no run meets another on a host or link, each due
// run ends or still waits, and no 24 hours exceed a byte budget.
func TestSimulation(t *testing.T) {
	for _, c := range []struct {
		name          string
		agents, sites int
		uplinks       bool
		task          string
		days          float64
		minRuns       int     // a day
		maxSkipped    float64 // share of the due runs
		maxWait       time.Duration
		budget        int64
	}{
		{name: "100 hosts, full mesh, 6 h", agents: 100, task: "every = \"6h\"", days: 1, minRuns: 19000,
			maxWait: 5 * time.Minute},
		{name: "100 hosts, full mesh, hourly", agents: 100, task: "every = \"1h\"", days: 0.2, minRuns: 110000,
			maxWait: 15 * time.Minute},
		{name: "20 shared uplinks, 6 h", agents: 100, sites: 20, uplinks: true, task: "every = \"6h\"", days: 1,
			minRuns: 19000, maxWait: 30 * time.Minute},
		{name: "20 shared uplinks, hourly is stretched", agents: 100, sites: 20, uplinks: true, task: "every = \"1h\"",
			days: 0.5, minRuns: 40000, maxSkipped: 0.0005, maxWait: 40 * time.Minute},
		{name: "50 GB a host and day", agents: 100, task: "every = \"6h\"\nmost = \"100MB\"\n[limits]\nday-bytes = \"50GB\"",
			days: 4, minRuns: 7000, maxSkipped: 0.01, maxWait: 4 * time.Hour, budget: 50e9},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := sited(t, c.sites, c.uplinks, "[task.a]\nbetween = [\"*\"]\n"+c.task)
			s := simulate(t, m, fleet(c.agents, c.sites), time.Duration(c.days*float64(day)))
			t.Logf("%d due, %d done, %d skipped %v, waits p50 %v p99 %v max %v, at most %.1f GB in 24 h, %.1f examined a call",
				s.due, s.done, s.skipped, s.reasons, s.wait(0.5), s.wait(0.99), s.wait(1), float64(s.mostIn24h())/1e9,
				float64(s.book.examined)/float64(s.events))
			if n := s.conflicts(); n > 0 {
				t.Errorf("%d runs met another", n)
			}
			if s.due != s.done+s.skipped+len(s.pending) {
				t.Errorf("%d due, but %d done, %d skipped, %d open", s.due, s.done, s.skipped, len(s.pending))
			}
			if got := int(float64(s.done) / c.days); got < c.minRuns {
				t.Errorf("%d runs a day, want at least %d", got, c.minRuns)
			}
			if float64(s.skipped) > c.maxSkipped*float64(s.due) {
				t.Errorf("%d of %d skipped: %v", s.skipped, s.due, s.reasons)
			}
			if s.wait(1) > c.maxWait {
				t.Errorf("a run waited for %v", s.wait(1))
			}
			if c.budget > 0 && s.mostIn24h() > c.budget {
				t.Errorf("%d bytes in 24 hours, the budget is %d", s.mostIn24h(), c.budget)
			}
			if j := s.fairness(); j < 0.75 {
				t.Errorf("Jain's fairness of runs per pair is %.2f", j)
			}
		})
	}
}

// fairness returns Jain's index of the number of runs per host.
func (s *fleetRun) fairness() float64 {
	sum := 0.0
	squares := 0.0
	n := 0.0
	for r, uses := range s.log {
		if _, isHost := r.Host(); isHost {
			sum += float64(len(uses))
			squares += math.Pow(float64(len(uses)), 2)
			n++
		}
	}
	return sum * sum / (n * squares)
}

// BenchmarkBook_10000Hosts plans a million runs a day: 10 neighbours each, sites of 10 with one uplink each. It reports
// the share of one core that planning takes in real time.
func BenchmarkBook_10000Hosts(b *testing.B) {
	var text []byte
	for i := range 1000 {
		text = fmt.Appendf(text, "[site.s%03d]\nlabels = { site = \"s%03d\" }\nuplink = \"wan%03d\"\n[link.wan%03d]\n",
			i, i, i, i)
	}
	text = append(text, "[task.a]\nbetween = [\"*\"]\nneighbours = 10\nevery = \"2.4h\"\n"...)
	m := must.Get(Parse(text))(b)
	agents := fleet(10000, 1000)
	for b.Loop() {
		s := simulate(b, m, agents, time.Hour)
		b.ReportMetric(float64(s.done)*24, "runs/day")
		b.ReportMetric(float64(s.book.examined)/float64(s.events), "examined/call")
	}
	b.ReportMetric(100*b.Elapsed().Seconds()/float64(b.N)/3600, "%core")
}
