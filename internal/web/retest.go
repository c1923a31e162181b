package web

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// Tests runs the tests that users start from a path's page, one at a time.
type Tests struct {
	// May returns the reason why a path cannot be tested from here, or nil.
	May func(context.Context, store.Series) error
	// Run tests a path as the results of its series were measured and adds the result to the series.
	// It calls each with the progress of the test, in one goroutine.
	Run func(ctx context.Context, p store.Series, each func(TestNews)) error
}

// TestNews is an interval of a transfer, or a stored result.
type TestNews struct {
	Direction       string
	AtS, GoodputBps float64 // of an interval; AtS 0: a result was stored
	Said            string  // the sentence of a result
}

// retestTimeout is the timeout of a test with the tests that may follow it at once.
const retestTimeout = 45 * time.Minute

// retests has the running test or the last one.
type retests struct {
	tests *Tests

	mu        sync.Mutex // guards the fields below
	last      record.PageTest
	stop      context.CancelFunc // nil: none runs
	closed    bool
	followers map[chan record.PageTest]bool

	running sync.WaitGroup
}

func newRetests(tests *Tests, h record.Header) *retests {
	return &retests{tests: tests, last: record.PageTest{Header: h, State: record.NoTest},
		followers: map[chan record.PageTest]bool{}}
}

// begin starts a test of a path, unless one runs.
func (t *retests) begin(p store.Series, h record.Header) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch {
	case t.closed:
		return &requestError{http.StatusServiceUnavailable, "the server is shutting down", ""}
	case t.stop != nil:
		return &requestError{http.StatusConflict, "a test of " + t.last.Far + " runs", "wait for its end, or stop it"}
	}
	ctx, stop := context.WithTimeout(context.Background(), retestTimeout)
	now := time.Now().UTC()
	t.stop = stop
	t.last = record.PageTest{Header: h, State: record.TestRuns, PathKey: p.Path, Far: p.Far, BeganAt: &now}
	t.running.Go(func() {
		err := t.tests.Run(ctx, p, t.news)
		t.mu.Lock()
		defer t.mu.Unlock()
		t.last.State = record.TestIsDone
		t.last.Direction = ""
		t.last.AtS = nil
		t.last.GoodputBps = nil
		switch {
		case err == nil: // also if it finished before the stop
		case errors.Is(ctx.Err(), context.Canceled):
			t.last.State = record.TestStopped
		case ctx.Err() != nil:
			t.last.State = record.TestFailed
			t.last.Error = &record.Failure{Code: "failed", Try: "the same command in a terminal, which has no time limit",
				Message: fmt.Sprintf("the test took longer than %.0f minutes and was ended", retestTimeout.Minutes())}
		default:
			t.last.State = record.TestFailed
			t.last.Error = &record.Failure{Code: "failed", Message: err.Error()}
		}
		stop()
		t.stop = nil
		t.publish()
	})
	return nil
}

// news updates the state of the running test.
func (t *retests) news(n TestNews) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last.Direction = n.Direction
	t.last.AtS = nil
	t.last.GoodputBps = nil
	if n.AtS > 0 {
		t.last.AtS = &n.AtS
		t.last.GoodputBps = &n.GoodputBps
	} else {
		t.last.Results = t.last.Results + 1
		t.last.Said = n.Said
	}
	t.publish()
}

// publish sends the newest state to all followers. The caller has locked t.mu.
func (t *retests) publish() {
	for f := range t.followers {
		select {
		case <-f:
		default:
		}
		f <- t.last // never blocks: the buffer has one place and this is the only sender
	}
}

// now returns the state of the running test or the last one.
func (t *retests) now() record.PageTest {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.last
}

// end stops the running test.
func (t *retests) end() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.stop != nil {
		t.stop()
	}
}

func (t *retests) close() {
	t.mu.Lock()
	t.closed = true
	t.mu.Unlock()
	t.end()
	t.running.Wait()
}

// follow returns a channel of states, the present one first.
func (t *retests) follow() (states chan record.PageTest, leave func(), err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.followers) >= maxFollowers {
		return nil, nil, &requestError{http.StatusServiceUnavailable, "too many clients follow the test",
			"close another window"}
	}
	states = make(chan record.PageTest, 1)
	states <- t.last
	t.followers[states] = true
	return states, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		delete(t.followers, states)
	}, nil
}

// mayTest returns the reason why a path cannot be tested from its page, or "".
func (s *Server) mayTest(r *http.Request, p store.Series) string {
	if s.cfg.Tests == nil {
		return "this server only shows results"
	}
	if err := s.cfg.Tests.May(r.Context(), p); err != nil {
		return err.Error()
	}
	if here, err := s.cfg.History.MeasuredHere(r.Context(), p.Path); err != nil || !here {
		return "no result of this path was measured on this host: measure it once on the command line"
	}
	return ""
}

// beginTest starts a test of a path.
func (s *Server) beginTest(r *http.Request) (any, error) {
	p, err := s.cfg.History.Path(r.Context(), r.PathValue("key"))
	if err != nil {
		return nil, err
	}
	if why := s.mayTest(r, p); why != "" {
		return nil, &requestError{http.StatusNotImplemented, why, ""}
	}
	if err := s.retests.begin(p, s.header("retest")); err != nil {
		return nil, err
	}
	now := s.retests.now()
	return &now, nil
}

// stopTest stops the running test.
func (s *Server) stopTest(*http.Request) (any, error) {
	s.retests.end()
	now := s.retests.now()
	return &now, nil
}

// testForm handles the forms of a path's page that start and stop a test.
func (s *Server) testForm(do func(*http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if _, err := do(r); err != nil {
			s.fail(w, r, err)
			return
		}
		http.Redirect(w, r, visitorOf(r.Context()).base+"/paths/"+url.PathEscape(r.PathValue("key")), http.StatusSeeOther)
	}
}

// streamTest sends the states of the test as server-sent events until it ends.
func (s *Server) streamTest(w http.ResponseWriter, r *http.Request) {
	states, leave, err := s.retests.follow()
	if err != nil {
		s.fail(w, r, err)
		return
	}
	defer leave()
	out := events(w)
	for {
		select {
		case <-r.Context().Done():
			return
		case one := <-states:
			if !s.stillMay(r) {
				return
			}
			line, err := json.Marshal(render.Document(one)) // the page's script shows its texts unchanged
			if err != nil {
				return
			}
			_ = out.SetWriteDeadline(time.Now().Add(sendTimeout)) // without support for deadlines there is no timeout
			if _, err := fmt.Fprintf(w, "data: %s\n\n", line); err != nil || out.Flush() != nil {
				return
			}
			if one.State != record.TestRuns {
				return
			}
		}
	}
}
