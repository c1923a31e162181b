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

// Limits of running tests and of results in memory.
const (
	maxActiveRuns        = 64
	maxRunsPerHost       = 8
	maxConnectionsPerRun = 32 // connections
	maxRunTime           = 3 * time.Minute
	idleRunTimeout       = 15 * time.Second // without an echo connection, before other tests may take its place
	leftRunTimeout       = 15 * time.Second // from the end of the echo connection until the run is dropped
	maxResults           = 256
)

var (
	errNoRun        = errors.New("no test with this ID runs here")
	errTooManyTests = errors.New("the maximum number of tests is running")
)

// runs has the tests that browsers run now, each of several connections, and the newest results.
type runs struct {
	places  admission.Table
	mu      sync.Mutex // guards the fields below
	now     map[string]*speedRun
	results []*record.Measure // the oldest first
}

// speedRun is one browser's test.
type speedRun struct {
	place  *admission.Entry
	began  time.Time
	left   time.Time               // end of the echo connection; zero: it is open or has not begun
	tests  map[string][]*ndt7.Test // by name of the phase
	all    int
	echo   bool
	change chan struct{} // signals that a connection was added to tests
}

// begin admits a test and returns its ID.
func (r *runs) begin(host netip.Prefix, now time.Time) (id string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.now == nil {
		r.now = map[string]*speedRun{}
		r.places.Limits = admission.Limits{Total: admission.Load{maxActiveRuns}, PerHost: admission.Load{maxRunsPerHost}}
	}
	for key, one := range r.now {
		if now.Sub(one.began) > maxRunTime || !one.left.IsZero() && now.Sub(one.left) > leftRunTimeout {
			r.drop(key)
		}
	}
	id = rand.Text()
	place := &admission.Entry{Host: host, ActiveUntil: now.Add(idleRunTimeout), Evict: func() { delete(r.now, id) }}
	if r.places.Admit(place, now) != nil {
		return "", errTooManyTests
	}
	r.now[id] = &speedRun{place: place, began: now, tests: map[string][]*ndt7.Test{}, change: make(chan struct{}, 1)}
	return id, nil
}

// drop ends a run. The caller has locked r.mu.
func (r *runs) drop(id string) {
	r.places.Release(r.now[id].place)
	delete(r.now, id)
}

// beginEcho reports whether an echo connection of a run may begin: one for each run.
func (r *runs) beginEcho(id string) bool {
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

// endEcho records the end of a run's echo connection: the page has closed or has finished measuring.
func (r *runs) endEcho(id string, now time.Time) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one := r.now[id]; one != nil {
		one.left = now
	}
}

// Query parameters that assign a connection to a run and a phase.
const (
	runKey   = "fullpipe_run"
	phaseKey = "fullpipe_phase"
)

// done adds an ended connection to its run. It ignores connections of other clients.
func (r *runs) done(t *ndt7.Test) {
	r.mu.Lock()
	defer r.mu.Unlock()
	one := r.now[t.Query.Get(runKey)]
	if one == nil || one.all >= maxConnectionsPerRun {
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

// finish removes and returns a run. It waits until each phase has the wanted number of connections, or for timeout.
func (r *runs) finish(id string, want map[string]int, timeout time.Duration) (*speedRun, error) {
	late := time.NewTimer(timeout)
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
			want = nil // continue with the connections that have ended
		}
	}
}

// addResult stores a result in memory. Above maxResults the client with the most results loses its oldest one.
func (r *runs) addResult(doc *record.Measure) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results = append(r.results, doc)
	if len(r.results) <= maxResults {
		return
	}
	count := map[string]int{}
	largest := 0
	for _, one := range r.results {
		client := record.Client(one.Peer)
		count[client]++
		largest = max(largest, count[client])
	}
	oldest := slices.IndexFunc(r.results, func(one *record.Measure) bool {
		return count[record.Client(one.Peer)] == largest
	})
	r.results = slices.Delete(r.results, oldest, oldest+1)
}

// result returns a result in memory, or nil.
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
