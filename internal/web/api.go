package web

import (
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// openapi describes the routes below /api/v1; a test holds it to them and to the documents'
// types.
//
//go:embed openapi.json
var openapi []byte

// How much one answer holds.
const (
	pathsAtOnce = 50
	runsAtOnce  = 500
	mostRuns    = 5000
	strip       = 28 // results of each direction that the grid shows
)

// asked is a request that cannot be answered, as users read it.
type asked struct {
	status       int
	what, remedy string
}

func (e *asked) Error() string { return e.what }

// answer turns a handler that answers a document into one of JSON.
func (s *Server) answer(make func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc, err := make(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		var text []byte
		switch doc := doc.(type) {
		case []byte: // as it was stored
			text = doc
		default:
			if text, err = record.EncodeAny(doc); err != nil {
				s.fail(w, r, err)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = render.NewWriter(w).Write(text) // who went away is not told
	}
}

func (s *Server) header(kind string) record.Header { return header(s.cfg.Version, kind) }

func header(version, kind string) record.Header {
	return record.Header{Schema: "fullpipe/" + kind + "/v1", Version: version, StartedAt: time.Now().UTC()}
}

func (s *Server) paths(r *http.Request) (*record.Paths, error) {
	doc, _, err := s.pathsAndKinds(r)
	return doc, err
}

// pathsAndKinds answers with each path what its newest result was measured by.
func (s *Server) pathsAndKinds(r *http.Request) (doc *record.Paths, kinds []string, err error) {
	offset, err := number(r.URL.Query(), "offset", 0, 1<<30)
	if err != nil {
		return nil, nil, err
	}
	limit, err := number(r.URL.Query(), "limit", pathsAtOnce, pathsAtOnce)
	if err != nil {
		return nil, nil, err
	}
	all, err := s.cfg.History.Paths(r.Context(), offset, limit)
	if err != nil {
		return nil, nil, err
	}
	doc = &record.Paths{Header: s.header("paths"), Paths: []record.KeptPath{}}
	for _, p := range all {
		runs, err := s.cfg.History.Of(r.Context(), p.Path, store.Page{Limit: strip + 48})
		if err != nil {
			return nil, nil, err
		}
		kind := ""
		if n := len(runs); n > 0 {
			kind = runs[n-1].Kind
		}
		kinds = append(kinds, kind)
		doc.Paths = append(doc.Paths, record.KeptPath{PathKey: p.Path, Far: p.Far, Label: p.Label, Runs: p.Runs,
			NewestAt: p.Newest, Directions: report.Standings(short(runs), strip)})
	}
	return doc, kinds, nil
}

// runs of a path, the oldest first.
func (s *Server) runs(r *http.Request) (*record.History, error) {
	page, err := pageOf(r.URL.Query())
	if err != nil {
		return nil, err
	}
	if _, err := s.cfg.History.Path(r.Context(), r.PathValue("key")); err != nil {
		return nil, err
	}
	runs, err := s.cfg.History.Of(r.Context(), r.PathValue("key"), page)
	if err != nil {
		return nil, err
	}
	return &record.History{Header: s.header("history"), Runs: short(runs)}, nil
}

func (s *Server) changes(r *http.Request) (*record.Changes, error) {
	history, err := s.runs(r)
	if err != nil {
		return nil, err
	}
	return report.Changes(s.header("changes"), history.Runs), nil
}

// identifier is a whole one: parts of one, which the command line takes, may be several's.
var identifier = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// kept answers a document and its samples as they were stored.
func (s *Server) kept(r *http.Request, id string) (doc, samples []byte, err error) {
	if !identifier.MatchString(id) {
		return nil, nil, store.ErrNotFound
	}
	return s.cfg.History.Get(r.Context(), id)
}

func (s *Server) run(r *http.Request) (any, error) {
	doc, _, err := s.kept(r, r.PathValue("id"))
	return doc, err
}

func (s *Server) samples(r *http.Request) (any, error) {
	_, samples, err := s.kept(r, r.PathValue("id"))
	if err == nil && samples == nil {
		err = &asked{http.StatusNotFound, "no samples are kept of this result", ""}
	}
	return samples, err
}

func (s *Server) compare(r *http.Request) (*record.Difference, error) {
	var both [2]record.Document
	for i, name := range []string{"first", "second"} {
		id := r.URL.Query().Get(name)
		if id == "" {
			return nil, &asked{http.StatusBadRequest, name + " is missing: the id of a result",
				"/api/v1/compare?first=ID&second=ID"}
		}
		var err error
		both[i], err = s.document(r, id)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	return report.Difference(s.header("difference"), both[0], both[1]), nil
}

// document is a kept one with its samples and labels.
func (s *Server) document(r *http.Request, id string) (record.Document, error) {
	if !identifier.MatchString(id) {
		return nil, store.ErrNotFound
	}
	return s.cfg.History.Document(r.Context(), id)
}

// label names a property of a result, or takes it away.
func (s *Server) label(r *http.Request) (any, error) {
	name := r.PathValue("name")
	value := r.FormValue("value")
	if !identifier.MatchString(r.PathValue("id")) {
		return nil, store.ErrNotFound
	}
	if name == "" || len(name) > 64 || len(value) > 256 {
		return nil, &asked{http.StatusBadRequest, "a label's name has 1 to 64 bytes, its value at most 256", ""}
	}
	if r.Method == http.MethodPut && value == "" {
		return nil, &asked{http.StatusBadRequest, "value is missing", "value=… as a form; DELETE takes a label away"}
	}
	if r.Method == http.MethodDelete {
		value = ""
	}
	err := s.cfg.History.Label(r.Context(), r.PathValue("id"), name, value)
	if err != nil && !errors.Is(err, store.ErrNoLabel) { // DELETE may come twice
		return nil, err
	}
	return &record.History{Header: s.header("history"), Runs: []record.HistoryRun{}}, nil
}

// short is how documents tell of runs.
func short(runs []store.Run) []record.HistoryRun {
	out := []record.HistoryRun{}
	for i := range runs {
		out = append(out, runs[i].HistoryRun)
	}
	return out
}

// pageOf reads since, before and limit.
func pageOf(q url.Values) (page store.Page, err error) {
	for name, into := range map[string]*time.Time{"since": &page.Since, "before": &page.Before} {
		if text := q.Get(name); text != "" {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				return page, &asked{http.StatusBadRequest, fmt.Sprintf("%s: %q is no time", name, text),
					"as 2026-11-22T14:00:00Z"}
			}
		}
	}
	page.Limit, err = number(q, "limit", runsAtOnce, mostRuns)
	return page, err
}

func number(q url.Values, name string, usual, most int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return usual, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most || n == 0 && name == "limit" {
		return 0, &asked{http.StatusBadRequest, fmt.Sprintf("%s: %q is not a number up to %d", name, text, most), ""}
	}
	return n, nil
}

// fail answers an error: what it was, and what to try.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var own *asked
	var away *store.Unavailable
	switch {
	case errors.As(err, &own):
		s.refuse(w, r, own.status, err.Error(), own.remedy)
	case errors.Is(err, store.ErrNotFound):
		s.refuse(w, r, http.StatusNotFound, "no such path or result is kept", "")
	case r.Context().Err() != nil: // who asked has gone
	case errors.As(err, &away):
		s.refuse(w, r, http.StatusServiceUnavailable, err.Error(), "again once that server runs")
	case store.Lost(err):
		s.refuse(w, r, http.StatusServiceUnavailable, "the connection to the history's server was lost", "again")
	default:
		s.refuse(w, r, http.StatusInternalServerError, err.Error(), "")
	}
}

// codes are the errors' names for programs, as in docs/exit-status.md where there is one.
var codes = map[int]string{http.StatusBadRequest: "usage", http.StatusUnauthorized: "not-permitted",
	http.StatusForbidden: "not-permitted", http.StatusNotFound: "not-found", http.StatusTooManyRequests: "busy",
	http.StatusConflict: "busy", http.StatusServiceUnavailable: "busy", http.StatusNotImplemented: "not-supported"}

// refuse says what is not done and what to try: to programs as JSON, to others as a page.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, what, remedy string) {
	if !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.render(w, r, status, "refused", map[string]string{"What": what, "Try": remedy})
		return
	}
	writeRefusal(w, s.cfg.Version, status, what, remedy)
}

func writeRefusal(w http.ResponseWriter, version string, status int, what, remedy string) {
	code := codes[status]
	if code == "" {
		code = "failed"
	}
	doc := record.CommandFailed{Header: header(version, "ui"),
		Error: &record.Failure{Code: code, Message: what, Try: remedy}}
	text, err := json.Marshal(doc)
	if err != nil {
		http.Error(w, what, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = render.NewWriter(w).Write(append(text, '\n')) // who went away is not told
}
