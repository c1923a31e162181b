package incident

import (
	"container/heap"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

// fleet simulates a hub's schedule on a virtual clock: pairs become due at exponential gaps, runs use their hosts and
// links, results go through the detector of the pair, and Judge is asked after each.
type fleet struct {
	t       *testing.T
	rng     *rand.Rand
	now     time.Time
	state   State
	pairs   map[string]*pair
	book    *mesh.Book
	queue   events
	fault   func(from, to string) (goodput, rtt float64) // factors
	noise   float64
	spent   map[string][]time.Time // starts of runs by host
	dayRuns int                    // of a host

	newID   func() string
	notices []sent
	runs    int
	refused int
	serial  int
	wake    time.Time
	gone    func(host string) bool

	firstOff, firstBack time.Time
}

type sent struct {
	at time.Time
	Notice
}

type pair struct {
	mesh.Planned
	detector   recheck.Detector
	directions [2]int
	goodput    float64
	next, test time.Time
}

type event struct {
	at  time.Time
	key string // a pair that may be due
	run *mesh.Run
}

type events []event

func (q events) Len() int           { return len(q) }
func (q events) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q events) Swap(i, j int)      { q[i], q[j] = q[j], q[i] }
func (q *events) Push(x any)        { *q = append(*q, x.(event)) }
func (q *events) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

const (
	simEvery = 6 * time.Hour
	simTime  = 5 * time.Second
)

// newFleet returns a fleet of sites with three hosts each. Its pairs have results of ten days. The first two sites
// share a link.
func newFleet(t *testing.T, sites int, seed uint64) *fleet {
	t.Helper()
	var text strings.Builder
	for i := range sites {
		fmt.Fprintf(&text, "[site.s%d]\nagents = [\"h%d?\"]\n", i, i)
	}
	fmt.Fprintf(&text, "[link.sea]\nbetween = [\"s0\", \"s1\"]\n"+
		"[task.t]\nbetween = [\"*\"]\nevery = \"6h\"\nmost = \"100MB\"\n")
	m, err := mesh.Parse([]byte(text.String()))
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, rng: rand.New(rand.NewPCG(seed, 1)), now: begin, pairs: map[string]*pair{}, newID: counter(),
		noise: 0.03, spent: map[string][]time.Time{}, dayRuns: 60, fault: healthy}
	var agents []mesh.Agent
	for i := range 3 * sites {
		a := mesh.Agent{ID: fmt.Sprintf("h%d%c", i/3, 'a'+i%3), DayTime: 10 * time.Minute, DayBytes: 20e9}
		a.Name = a.ID
		agents = append(agents, a)
		f.state.Hosts = append(f.state.Hosts, Host{ID: a.ID, Name: a.Name, Site: m.SiteOf(a)})
	}
	plan, err := m.Plan(agents)
	if err != nil {
		t.Fatal(err)
	}
	f.book = mesh.NewBook(plan.Budgets, f.now)
	for _, planned := range plan.Pairs {
		p := &pair{Planned: planned, goodput: math.Exp(f.rng.NormFloat64()) * 3e8}
		for k, ends := range [][2]string{{p.A, p.B}, {p.B, p.A}} {
			d := Direction{Task: p.Task, Pair: p.Key(), From: ends[0], To: ends[1], Limiter: "bottleneck"}
			d.FromSite = "s" + d.From[1:2]
			d.ToSite = "s" + d.To[1:2]
			for _, r := range p.Needs {
				if link, ok := r.Link(); ok {
					d.Links = append(d.Links, link)
				}
			}
			p.directions[k] = len(f.state.Directions)
			f.state.Directions = append(f.state.Directions, d)
		}
		f.pairs[p.Key()] = p
		past := 40
		for n := range past {
			f.now = begin.Add(-time.Duration(past-n) * simEvery)
			f.result(p, false)
		}
		f.now = begin
		f.schedule(p)
	}
	return f
}

func healthy(string, string) (goodput, rtt float64) { return 1, 1 }

func (f *fleet) schedule(p *pair) {
	p.next = recheck.Schedule{Every: p.Every}.Next(f.now, f.rng.ExpFloat64())
	heap.Push(&f.queue, event{at: p.next, key: p.Key()})
}

// result measures a pair.
func (f *fleet) result(p *pair, retest bool) {
	r := recheck.Result{At: f.now, Retest: retest}
	for _, i := range p.directions {
		d := &f.state.Directions[i]
		goodput, rtt := f.fault(d.From, d.To)
		d.GoodputBps = p.goodput * goodput * math.Exp(f.noise*f.rng.NormFloat64())
		d.RTTMinS = 0.02 * rtt * math.Exp(0.01*f.rng.NormFloat64())
		d.Measured = f.now
		d.Ended = f.now
		r.Directions = append(r.Directions, recheck.Direction{Name: d.From, GoodputBps: d.GoodputBps,
			RTTMin: time.Duration(d.RTTMinS * 1e9), Limiter: d.Limiter})
	}
	p.detector.Add(r)
	levels := p.detector.Levels()
	frozen := Frozen(f.state.Incidents, f.now)
	for _, i := range p.directions {
		d := &f.state.Directions[i]
		usual := levels[d.From]
		if frozen[d.path()] {
			usual = [2]recheck.Level{Freeze(d.Goodput, usual[0]), Freeze(d.RTT, usual[1])}
		}
		d.Goodput = usual[0]
		d.RTT = usual[1]
		off := d.sign(Slow).Off || d.sign(Delayed).Off
		if off && f.firstOff.IsZero() {
			f.firstOff = f.now
		}
		if frozen[d.path()] && !off && f.firstBack.IsZero() {
			f.firstBack = f.now
		}
	}
	p.test = time.Time{}
	if at, wanted := p.detector.Wants(); len(wanted) > 0 && !frozen[f.state.Directions[p.directions[0]].path()] {
		p.test = at
		heap.Push(&f.queue, event{at: at, key: p.Key()})
	}
}

// until runs the schedule to a time.
func (f *fleet) until(end time.Time) {
	for f.queue.Len() > 0 {
		next := f.queue[0].at
		if wake, ok := f.book.Wake(f.now); ok && wake.After(f.now) && wake.Before(next) {
			next = wake
		}
		if f.wake.After(f.now) && f.wake.Before(next) {
			next = f.wake
		}
		if next.After(end) {
			break
		}
		f.now = next
		f.step()
	}
	f.now = end
}

func (f *fleet) step() {
	judge := !f.wake.IsZero() && !f.now.Before(f.wake)
	for f.queue.Len() > 0 && !f.queue[0].at.After(f.now) {
		e := heap.Pop(&f.queue).(event)
		p := f.pairs[e.key]
		switch {
		case e.run != nil:
			f.book.Free(e.run.ID, e.run.Bytes, f.now)
			f.result(p, e.run.First)
			f.runs++
			judge = true
		case e.at.Equal(p.test):
			p.test = time.Time{}
			f.due(p, true, 30*time.Minute)
		case e.at.Equal(p.next):
			f.schedule(p)
			f.due(p, false, p.Every/4)
		}
	}
	started, skipped := f.book.Next(f.now, func(mesh.Run) time.Duration { return time.Minute })
	for _, r := range started {
		if f.overBudget(r) { // the host refuses
			f.book.Free(r.ID, 0, f.now)
			f.refused++
			f.end(r)
			judge = true
			continue
		}
		heap.Push(&f.queue, event{at: f.now.Add(2*simTime + 2*time.Second), key: r.Pair, run: &r})
	}
	for _, s := range skipped {
		f.end(s.Run)
		judge = true
	}
	if judge {
		f.judge()
	}
}

func (f *fleet) end(r mesh.Run) {
	for _, i := range f.pairs[r.Pair].directions {
		f.state.Directions[i].Ended = f.now
	}
}

// overBudget counts a run of two hosts, unless one of them has made as many as it may within a day.
func (f *fleet) overBudget(r mesh.Run) bool {
	p := f.pairs[r.Pair]
	day := func(host string) []time.Time {
		at := f.spent[host]
		for len(at) > 0 && at[0].Before(f.now.Add(-24*time.Hour)) {
			at = at[1:]
		}
		f.spent[host] = at
		return at
	}
	if len(day(p.A)) >= f.dayRuns || len(day(p.B)) >= f.dayRuns {
		return true
	}
	f.spent[p.A] = append(f.spent[p.A], f.now)
	f.spent[p.B] = append(f.spent[p.B], f.now)
	return false
}

func (f *fleet) due(p *pair, first bool, waits time.Duration) {
	f.serial++
	f.book.Due(mesh.Run{ID: fmt.Sprint("r", f.serial), Pair: p.Key(), Needs: p.Needs, Bytes: p.Bytes, Due: f.now,
		Late: f.now.Add(waits), First: first})
}

// judge judges the state and does what follows.
func (f *fleet) judge() {
	f.state.Now = f.now
	for i := range f.state.Hosts {
		if h := &f.state.Hosts[i]; f.gone == nil || !f.gone(h.ID) {
			h.Seen = f.now
		}
	}
	d := Judge(f.state, f.newID)
	for _, changed := range d.Incidents {
		known := false
		for i := range f.state.Incidents {
			if f.state.Incidents[i].ID == changed.ID {
				f.state.Incidents[i] = changed
				known = true
			}
		}
		if !known {
			f.state.Incidents = append(f.state.Incidents, changed)
		}
	}
	for _, n := range d.Notices {
		f.notices = append(f.notices, sent{f.now, n})
	}
	for _, key := range d.Pairs {
		p := f.pairs[key]
		for _, i := range p.directions {
			f.state.Directions[i].Asked = f.now
		}
		p.test = f.now
		heap.Push(&f.queue, event{at: f.now, key: key})
	}
	f.wake = d.Wake
}

// count returns the notices of a kind.
func (f *fleet) count(change Change) (all []sent) {
	for _, n := range f.notices {
		if n.Change == change {
			all = append(all, n)
		}
	}
	return all
}

// seeds returns the seed of a case, or as many others as FULLPIPE_BANK_SEEDS says.
func seeds(t *testing.T, first uint64) (all []uint64) {
	t.Helper()
	many := 1
	if text := os.Getenv("FULLPIPE_BANK_SEEDS"); text != "" {
		var err error
		if many, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	for k := range many {
		all = append(all, first+uint64(100*k))
	}
	return all
}

// TestFleet_QuietDays checks that thirty days without a fault cause no notice.
func TestFleet_QuietDays(t *testing.T) {
	f := newFleet(t, 4, 1)
	f.until(begin.Add(30 * 24 * time.Hour))
	t.Logf("%d runs, %d refused", f.runs, f.refused)
	if len(f.notices) != 0 {
		t.Errorf("%d notices: %+v", len(f.notices), f.notices[0])
	}
}

func slowHost(id string, factor float64) func(from, to string) (float64, float64) {
	return func(from, to string) (float64, float64) {
		if from == id || to == id {
			return factor, 1
		}
		return 1, 1
	}
}

// TestFleet_Faults checks that each fault is reported once when it begins and once when it ends, with its name.
func TestFleet_Faults(t *testing.T) {
	between := func(a, b string) func(from, to string) (float64, float64) {
		return func(from, to string) (float64, float64) {
			if strings.HasPrefix(from, a) && strings.HasPrefix(to, b) || strings.HasPrefix(from, b) && strings.HasPrefix(to, a) {
				return 0.5, 1
			}
			return 1, 1
		}
	}
	for n, c := range []struct {
		name   string
		fault  func(from, to string) (goodput, rtt float64)
		want   []string // keys of causes
		within time.Duration
	}{
		{"host", slowHost("h1b", 0.5), []string{"host h1b"}, time.Hour},
		{"host, only receiving", func(_, to string) (float64, float64) {
			if to == "h2a" {
				return 0.3, 1
			}
			return 1, 1
		}, []string{"host h2a"}, time.Hour},
		{"path", between("h1a", "h3c"), []string{"path h1a h3c"}, time.Hour},
		{"site", func(from, to string) (float64, float64) {
			if from[1] != to[1] && (from[1] == '2' || to[1] == '2') {
				return 0.4, 1.5
			}
			return 1, 1
		}, []string{"site s2"}, 90 * time.Minute},
		{"link", between("h0", "h1"), []string{"link sea"}, 90 * time.Minute},
		{"two hosts", func(from, to string) (float64, float64) {
			a, _ := slowHost("h0a", 0.5)(from, to)
			b, _ := slowHost("h3b", 0.4)(from, to)
			return a * b, 1
		}, []string{"host h0a", "host h3b"}, 90 * time.Minute},
		{"a host and a path", func(from, to string) (float64, float64) {
			a, _ := slowHost("h2b", 0.5)(from, to)
			b, _ := between("h0a", "h1c")(from, to)
			return a * b, 1
		}, []string{"host h2b", "path h0a h1c"}, time.Hour},
	} {
		for _, seed := range seeds(t, uint64(n)) {
			t.Run(fmt.Sprint(c.name, " ", seed), func(t *testing.T) {
				f := newFleet(t, 4, seed)
				f.until(begin.Add(time.Duration(5+seed%24) * time.Hour))
				f.fault = c.fault
				f.firstOff = time.Time{}
				f.until(f.now.Add(36 * time.Hour))
				opened := f.count(Opened)
				var names []string
				for _, n := range opened {
					names = append(names, n.Incident.Cause.key())
					if late := n.at.Sub(n.Incident.SinceAt); late > c.within {
						t.Errorf("reported %v after the first result", late)
					}
					t.Logf("%v after the first result: %s, %d of %d, confirmed %v", n.at.Sub(n.Incident.SinceAt), n.Incident.Cause,
						n.Incident.Affected, n.Incident.Of, n.Incident.Confirmed)
				}
				slices.Sort(names)
				if !slices.Equal(names, c.want) || len(f.notices) != len(opened) {
					t.Errorf("opened %v, want %v", names, c.want)
				}
				f.fault = healthy
				f.firstBack = time.Time{}
				f.until(f.now.Add(36 * time.Hour))
				for _, n := range f.notices[len(opened):] {
					t.Logf("%v after the first result: %s %s", n.at.Sub(f.firstBack), n.Change, n.Incident.Cause)
				}
				if closed := f.count(Resolved); len(closed) != len(c.want) || len(f.notices) != 2*len(c.want) {
					t.Errorf("%d resolved, want %d", len(closed), len(c.want))
				}
				t.Logf("%d runs, %d refused", f.runs, f.refused)
			})
		}
	}
}
