package web

import (
	"crypto/rand"
	"errors"
	"net/netip"
	"slices"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/ndt7"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// Bounds of what is held of tests that run, and of results that are linked.
const (
	mostRunsAtOnce = 64
	mostRunsOfOne  = 8
	mostOfOneRun   = 32 // connections
	longestRun     = 3 * time.Minute
	idleRun        = 15 * time.Second // without small packets, when it makes room for others
	leftRun        = 15 * time.Second // after its small packets ended: its result comes at once, or never
	mostResults    = 256
)

var (
	errNoRun     = errors.New("no test of that name runs here")
	errManyTests = errors.New("as many tests run here as may at a time")
)

// runs are the tests that browsers carry out now, each of several connections, and the newest
// results.
type runs struct {
	places  admission.Table
	mu      sync.Mutex // guards what follows
	now     map[string]*speedRun
	results []*record.Measure // the oldest first
}

// speedRun is one browser's test.
type speedRun struct {
	place  *admission.Entry
	began  time.Time
	left   time.Time               // when its small packets ended; zero: they have not
	tests  map[string][]*ndt7.Test // by the page's name of the phase
	all    int
	echo   bool
	change chan struct{} // has something where a test was added
}

// begin gives a place and a name for it.
func (r *runs) begin(host netip.Prefix, now time.Time) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		r.now = map[string]*speedRun{}
		r.places.Limits = admission.Limits{Total: admission.Load{mostRunsAtOnce}, PerHost: admission.Load{mostRunsOfOne}}
	}
	for key, one := range r.now {
		if now.Sub(one.began) > longestRun || !one.left.IsZero() && now.Sub(one.left) > leftRun {
			r.drop(key)
		}
	}
	id = rand.Text()
	place := &admission.Entry{Host: host, ActiveUntil: now.Add(idleRun), Evict: func() { delete(r.now, id) }}
	if r.places.Admit(place, now) != nil {
		return "", errManyTests
	}
	r.now[id] = &speedRun{place: place, began: now, tests: map[string][]*ndt7.Test{}, change: make(chan struct{}, 1)}
	return id, nil
}

// drop ends a run. The lock is held.
func (r *runs) drop(id string) {
	r.places.Release(r.now[id].place)
	delete(r.now, id)
}

// echoes lets one connection of small packets begin.
func (r *runs) echoes(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.now[id]
	if one == nil || one.echo {
		return false
	}
	one.echo = true
	r.places.Extend(one.place, time.Time{})
	return true
}

// leaves notes that a run's page has gone, or has all it measures.
func (r *runs) leaves(id string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.now[id]; one != nil {
		one.left = now
	}
}

// Names by which the page's connections say what they belong to.
const (
	runKey   = "fullpipe_run"
	phaseKey = "fullpipe_phase"
)

// done adds a connection that has ended to its run; others' are nobody's.
func (r *runs) done(t *ndt7.Test) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.now[t.Query.Get(runKey)]
	if one == nil || one.all >= mostOfOneRun {
		return
	}
	one.all++
	phase := t.Query.Get(phaseKey)
	one.tests[phase] = append(one.tests[phase], t)
	select {
	case one.change <- struct{}{}:
	default:
	}
}

// finish takes a run out, once it has so many connections of each phase or the time is up.
func (r *runs) finish(id string, want map[string]int, patience time.Duration) (*speedRun, error) {
	late := time.NewTimer(patience)
	defer late.Stop()
	for {
		r.mu.Lock()
		one := r.now[id]
		missing := 0
		if one != nil {
			for phase, n := range want {
				missing += max(n-len(one.tests[phase]), 0)
			}
			if missing == 0 {
				r.drop(id)
			}
		}
		r.mu.Unlock()
		switch {
		case one == nil:
			return nil, errNoRun
		case missing == 0:
			return one, nil
		}
		select {
		case <-one.change:
		case <-late.C:
			want = nil // with what there is
		}
	}
}

// hold keeps a result for its link. Where there are too many, the client that has most of them loses its oldest one.
func (r *runs) hold(doc *record.Measure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, doc)
	if len(r.results) <= mostResults {
		return
	}
	held := map[string]int{}
	most := 0
	for _, one := range r.results {
		client := record.Client(one.Peer)
		held[client]++
		most = max(most, held[client])
	}
	oldest := slices.IndexFunc(r.results, func(one *record.Measure) bool { return held[record.Client(one.Peer)] == most })
	r.results = slices.Delete(r.results, oldest, oldest+1)
}

// result finds one that is held; nil: it is not.
func (r *runs) result(id string) *record.Measure {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, doc := range r.results {
		if doc.ID == id {
			return doc
		}
	}
	return nil
}
