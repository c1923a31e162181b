//go:build linux

package hostile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/e2e/harness"
	printed "github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// relay forwards TCP connections to a server and counts the bytes of both directions.
type relay struct {
	net.Listener
	to    string
	pause time.Duration // after each 64 KiB of a connection; 0: none
	moved atomic.Int64
	limit atomic.Int64 // of moved, at which reached is called; 0: none
	reach atomic.Value // func()
}

func newRelay(t *testing.T, to string, pause time.Duration) *relay {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	r := &relay{Listener: l, to: to, pause: pause}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			far, err := net.Dial("tcp", r.to)
			if err != nil {
				near.Close()
				continue
			}
			go r.forward(near, far)
			go r.forward(far, near)
		}
	}()
	return r
}

func (r *relay) forward(to, from net.Conn) {
	defer to.Close()
	defer from.Close()
	b := make([]byte, 64<<10)
	for {
		n, err := from.Read(b)
		time.Sleep(r.pause * time.Duration(n) / time.Duration(len(b)))
		if limit := r.limit.Load(); r.moved.Add(int64(n)) >= limit && limit > 0 {
			r.reach.Load().(func())()
		}
		if _, failed := to.Write(b[:n]); err != nil || failed != nil {
			return
		}
	}
}

// recheckCommand returns a recheck of a far end with its history in dir. Its day began half a day ago.
func recheckCommand(t *testing.T, s *site, address, dir string, flags ...string) *exec.Cmd {
	t.Helper()
	args := append([]string{"recheck", "fullpipe://" + address, "--json", "-t", "300ms", "--direction", "up", "--zone",
		fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12)}, flags...)
	cmd := exec.CommandContext(t.Context(), harness.Program(t), args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("FULLPIPE_KEY=%s", s.key), "FULLPIPE_HISTORY="+dir, "FULLPIPE_CONFIG=",
		"FULLPIPE_STATE="+filepath.Join(dir, "state"))
	return cmd
}

func recheckOnce(t *testing.T, cmd *exec.Cmd) (doc printed.Recheck, notes string, status int) {
	t.Helper()
	var errs bytes.Buffer
	cmd.Stderr = &errs
	out, err := cmd.Output()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	status = cmd.ProcessState.ExitCode()
	if status >= 0 {
		if err := json.Unmarshal(out, &doc); err != nil {
			t.Fatalf("status %d, %v: %s%s", status, err, out, errs.Bytes())
		}
	}
	return doc, errs.String(), status
}

// TestRecheck_KilledTestsStayInTheBudget: a process killed during a test, at any byte of its payload, has used up what
// the test costs.
func TestRecheck_KilledTestsStayInTheBudget(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	// The relay sets the rate, so that all tests move about as many bytes.
	r, dir := newRelay(t, s.address, 10*time.Millisecond), t.TempDir()
	if doc, notes, status := recheckOnce(t, recheckCommand(t, s, r.Addr().String(), dir)); status != 0 {
		t.Fatalf("status %d, %+v, %s", status, doc, notes)
	}
	// The tests of a budget; the last 7 are kept for further tests of a suspicion, and 4 can be killed. The relay
	// also counts bytes that arrive after a test's end: the cost is a little less.
	const tests, most = 12, 6
	cost := r.moved.Load()
	budget := fmt.Sprint(tests * cost)
	random := rand.New(rand.NewPCG(11, 3))
	for killed := 0; ; killed++ {
		cmd := recheckCommand(t, s, r.Addr().String(), dir, "--day-bytes", budget)
		var once sync.Once
		r.reach.Store(func() { once.Do(func() { cmd.Process.Kill() }) })
		r.limit.Store(r.moved.Load() + cost/16 + random.Int64N(cost/4)) // after the handshakes, which are free
		doc, notes, status := recheckOnce(t, cmd)
		r.limit.Store(0)
		if moved := r.moved.Load(); moved > (tests+1)*cost {
			t.Fatalf("%d bytes moved of a budget of %s", moved, budget)
		}
		if complete := len(doc.Tests) == 1 && doc.Tests[0].RunID != ""; complete {
			continue // it ended before the limit
		}
		if status >= 0 {
			if len(doc.Tests) != 1 || doc.Tests[0].Skipped != "bytes-budget" || killed < 2 || killed > most {
				t.Errorf("after %d killed tests: status %d, %+v, %s", killed, status, doc.Tests, notes)
			}
			return
		}
		if killed >= tests {
			t.Fatalf("%d killed tests used up nothing", killed)
		}
	}
}

// unreportedEvent returns a history in which a dip of the rate has ended, an event that recheck has not reported yet.
// The far end at the address no longer listens.
func unreportedEvent(t *testing.T, s *site) (dir, address string) {
	t.Helper()
	r := newRelay(t, s.address, 0)
	dir, address = t.TempDir(), r.Addr().String()
	if _, notes, status := recheckOnce(t, recheckCommand(t, s, address, dir)); status != 0 {
		t.Fatalf("status %d, %s", status, notes)
	}
	r.Close()
	h, err := store.Open(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	runs, err := h.List(t.Context(), store.Filter{})
	if err != nil || len(runs) != 1 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	text, _, err := h.Get(t.Context(), runs[0].ID)
	if err != nil {
		t.Fatal(err)
	}
	keep := func(at time.Time, origin printed.Origin, share float64) {
		doc, err := printed.Decode(text, nil)
		if err != nil {
			t.Fatal(err)
		}
		m := doc.(*printed.Measure)
		bps := *m.Directions[0].GoodputBps * share
		m.StartedAt, m.ID, m.Origin, m.Directions[0].GoodputBps = at, printed.NewID(at, [10]byte{1}), origin, &bps
		m.EndedAt = printed.NsTime(at.Add(time.Second).UnixNano())
		encoded, err := printed.Encode(m)
		if err := errors.Join(err, h.Keep(t.Context(), encoded, nil)); err != nil {
			t.Fatal(err)
		}
	}
	for n := range 16 {
		keep(runs[0].StartedAt.Add(time.Duration(n-20)*6*time.Hour), printed.Scheduled, 1+float64(n%3)/100)
	}
	for n := range 4 {
		origin := printed.Origin(printed.Retest)
		if n == 0 {
			origin = printed.Scheduled
		}
		keep(runs[0].StartedAt.Add(time.Duration(n)*3*time.Minute-24*time.Hour), origin, 0.1)
	}
	marks, err := filepath.Glob(filepath.Join(dir, "recheck-*.told"))
	if err != nil || len(marks) != 1 {
		t.Fatalf("%q, %v", marks, err)
	}
	if err := os.WriteFile(marks[0], fmt.Appendf(nil, "fullpipe recheck told 1 %d -\n",
		runs[0].StartedAt.UnixNano()-1), 0o600); err != nil {
		t.Fatal(err)
	}
	return dir, address
}

// TestRecheck_HostileWebhooks checks that a hostile webhook server cannot block a visit of recheck, cause more than
// maxTries requests, or redirect requests to another server.
func TestRecheck_HostileWebhooks(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	past, address := unreportedEvent(t, s)
	const maxTries = 3
	zeroes := func(w http.ResponseWriter) {
		for b := make([]byte, 32<<10); ; {
			if _, err := w.Write(b); err != nil {
				return
			}
		}
	}
	redirect := func(code int, to string) func(http.ResponseWriter, *http.Request, string) {
		return func(w http.ResponseWriter, _ *http.Request, inside string) {
			w.Header().Set("Location", strings.ReplaceAll(to, "INSIDE", inside))
			w.WriteHeader(code)
		}
	}
	for name, c := range map[string]struct {
		serve  func(w http.ResponseWriter, r *http.Request, inside string)
		tls    bool
		scheme string // of the URL, where it is not the server's
		note   string // "": the event is delivered
		asked  int64  // requests for the event
	}{
		"endless body": {serve: func(w http.ResponseWriter, _ *http.Request, _ string) { zeroes(w) }, asked: 1},
		"endless body of an error": {serve: func(w http.ResponseWriter, _ *http.Request, _ string) {
			w.WriteHeader(http.StatusNotFound)
			zeroes(w)
		}, note: "404", asked: 1},
		"no end of the body": {serve: func(w http.ResponseWriter, r *http.Request, _ string) {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
		}, asked: 1},
		"no headers": {serve: func(_ http.ResponseWriter, r *http.Request, _ string) { <-r.Context().Done() },
			note: "deadline exceeded", asked: maxTries},
		"endless header": {serve: func(w http.ResponseWriter, _ *http.Request, _ string) {
			c, _, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer c.Close()
			_, err = io.WriteString(c, "HTTP/1.1 200 OK\r\nX: ")
			for b := bytes.Repeat([]byte("x"), 32<<10); err == nil; {
				_, err = c.Write(b)
			}
		}, note: "header", asked: maxTries},
		"301 inward":             {serve: redirect(301, "http://INSIDE/"), note: "301", asked: 1},
		"307 inward":             {serve: redirect(307, "http://INSIDE/"), note: "307", asked: 1},
		"308 to a file":          {serve: redirect(308, "file:///etc/passwd"), note: "308", asked: 1},
		"unknown certificate":    {tls: true, note: "certificate", asked: 0},
		"no TLS where it is due": {scheme: "https", note: "HTTP response to HTTPS client", asked: 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "history")
			if err := os.CopyFS(dir, os.DirFS(past)); err != nil {
				t.Fatal(err)
			}
			var asked, inward atomic.Int64
			inside, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer inside.Close()
			go func() {
				for c, err := inside.Accept(); err == nil; c, err = inside.Accept() {
					inward.Add(1)
					c.Close()
				}
			}()
			web := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				_, _ = io.Copy(io.Discard, r.Body)
				if c.serve != nil {
					c.serve(w, r, inside.Addr().String())
				}
			}))
			web.Config.ErrorLog = log.New(io.Discard, "", 0)
			if c.tls {
				web.StartTLS()
			} else {
				web.Start()
			}
			defer web.Close()
			url := web.URL
			if c.scheme != "" {
				_, rest, _ := strings.Cut(url, "://")
				url = c.scheme + "://" + rest
			}
			doc, notes, status := recheckOnce(t, recheckCommand(t, s, address, dir, "--webhook", url+"/secret",
				"--day-bytes", "0", "--day-time", "0s"))
			if status != 1 || len(doc.Tests) != 1 || doc.Tests[0].Error == nil ||
				doc.Tests[0].Error.Code != "refused" || len(doc.Events) != 1 {
				t.Errorf("status %d, %+v, %+v, %s", status, doc.Tests, doc.Events, notes)
			}
			if (c.note == "") == strings.Contains(notes, "webhook") || !strings.Contains(notes, c.note) ||
				strings.Contains(notes, "secret") || len(notes) > 4000 {
				t.Errorf("the notes are %.4000q", notes)
			}
			if asked.Load() != c.asked || inward.Load() != 0 {
				t.Errorf("asked %d times, others %d times", asked.Load(), inward.Load())
			}
		})
	}
}
