package server

import (
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// concurrentTests are the transfers that move data now, so that each can report the concurrent ones.
type concurrentTests struct {
	mu  sync.Mutex // guards the fields below
	all map[*runningTransfer]bool
}

type runningTransfer struct {
	test string
	// concurrency counts other tests' transfers, and since when there has been at least one.
	others   int
	since    time.Time
	together time.Duration // total time before since
	tests    int64
}

// Begin implements probe.Host. Transfers of one test, such as both directions at once, do not count as concurrent.
func (s *Server) Begin(test string) (over func() *transfer.ConcurrentTests) {
	return s.running.begin(test, time.Now)
}

func (r *concurrentTests) begin(test string, now func() time.Time) (over func() *transfer.ConcurrentTests) {
	t := &runningTransfer{test: test}
	r.mu.Lock()
	defer r.mu.Unlock()
	tests := map[string]bool{}
	for o := range r.all {
		tests[o.test] = true
	}
	known := tests[test]
	delete(tests, test)
	t.tests = int64(len(tests))
	at := now()
	for o := range r.all {
		if o.test == test {
			continue
		}
		t.add(at)
		o.add(at)
		if !known {
			o.tests++
		}
	}
	if r.all == nil {
		r.all = map[*runningTransfer]bool{}
	}
	r.all[t] = true
	var once sync.Once
	var other *transfer.ConcurrentTests
	return func() *transfer.ConcurrentTests {
		once.Do(func() { other = r.end(t, now()) })
		return other
	}
}

func (r *concurrentTests) end(t *runningTransfer, at time.Time) *transfer.ConcurrentTests {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, t)
	for o := range r.all {
		if o.test != t.test {
			o.remove(at)
		}
	}
	if t.others > 0 {
		t.others = 1
		t.remove(at)
	}
	if t.tests == 0 {
		return nil
	}
	return &transfer.ConcurrentTests{Tests: t.tests, Time: t.together}
}

// add adds a concurrent transfer, remove removes one.
func (t *runningTransfer) add(at time.Time) {
	if t.others == 0 {
		t.since = at
	}
	t.others++
}

func (t *runningTransfer) remove(at time.Time) {
	t.others--
	if t.others == 0 {
		t.together += at.Sub(t.since)
	}
}
