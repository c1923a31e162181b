package server

import (
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// running are the transfers that move data now, of all clients, so that each can be told
// what ran beside it.
type running struct {
	mu  sync.Mutex // guards what follows
	all map[*runningTransfer]bool
}

type runningTransfer struct {
	test string
	// others are the transfers of other tests that run now, since when there has been one
	// without a break.
	others   int
	since    time.Time
	together time.Duration // the breaks and what came before them
	tests    int64
}

// Begin implements probe.Host. Transfers of one test, as both directions at once are, do not
// count as beside each other.
func (s *Server) Begin(test string) (over func() *transfer.Beside) {
	return s.running.begin(test, time.Now)
}

func (r *running) begin(test string, now func() time.Time) (over func() *transfer.Beside) {
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
		t.meets(at)
		o.meets(at)
		if !known {
			o.tests++
		}
	}
	if r.all == nil {
		r.all = map[*runningTransfer]bool{}
	}
	r.all[t] = true
	var once sync.Once
	var beside *transfer.Beside
	return func() *transfer.Beside {
		once.Do(func() { beside = r.end(t, now()) })
		return beside
	}
}

func (r *running) end(t *runningTransfer, at time.Time) *transfer.Beside {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.all, t)
	for o := range r.all {
		if o.test != t.test {
			o.parts(at)
		}
	}
	if t.others > 0 {
		t.others = 1
		t.parts(at)
	}
	if t.tests == 0 {
		return nil
	}
	return &transfer.Beside{Tests: t.tests, Time: t.together}
}

// meets counts one more transfer beside this one, parts one less.
func (t *runningTransfer) meets(at time.Time) {
	if t.others == 0 {
		t.since = at
	}
	t.others++
}

func (t *runningTransfer) parts(at time.Time) {
	t.others--
	if t.others == 0 {
		t.together += at.Sub(t.since)
	}
}
