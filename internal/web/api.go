package web

import (
	"cmp"
	"context"
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

	"github.com/a-h/templ"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// openapi describes the routes below /api/v1. A test compares it with them and with the types of the documents.
//
//go:embed openapi.json
var openapi []byte

// Limits of one response.
const (
	maxPathsPerPage = 50
	defaultRuns     = 500
	maxRunsPerPage  = 5000
	strip           = 28         // results of each direction that the grid shows
	standingRuns    = strip + 48 // results of a path that decide how those compare with earlier ones
)

// requestError is an error of the request: its HTTP status, and for the user a message and a remedy.
type requestError struct {
	status          int
	message, remedy string
}

func (e *requestError) Error() string { return e.message }

// answer returns a handler that sends the document of make as JSON.
func (s *Server) answer(make func(r *http.Request) (any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		doc, err := make(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		var text []byte
		switch doc := doc.(type) {
		case []byte: // a stored document is sent unchanged
			text = doc
		default:
			if text, err = record.EncodeAny(doc); err != nil {
				s.fail(w, r, err)
				return
			}
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = render.NewWriter(w).Write(text) // an error means that the client has disconnected
	}
}

func (s *Server) header(kind string) record.Header { return header(s.cfg.Version, kind) }

func header(version, kind string) record.Header {
	return record.Header{Schema: "fullpipe/" + kind + "/v1", Version: version, StartedAt: time.Now().UTC()}
}

func (s *Server) paths(r *http.Request) (*record.Paths, error) {
	offset, err := number(r.URL.Query(), "offset", 0, 1<<30)
	if err != nil {
		return nil, err
	}
	limit, err := number(r.URL.Query(), "limit", maxPathsPerPage, maxPathsPerPage)
	if err != nil {
		return nil, err
	}
	some, err := s.cfg.History.Paths(r.Context(), offset, limit)
	if err != nil {
		return nil, err
	}
	doc, _, err := s.standings(r.Context(), some)
	return doc, err
}

// standings returns the document of some paths and, for each, the kind of its newest result.
func (s *Server) standings(ctx context.Context, some []store.Series) (doc *record.Paths, kinds []string, err error) {
	doc = &record.Paths{Header: s.header("paths"), Paths: []record.KeptPath{}}
	for _, p := range some {
		runs, err := s.cfg.History.Of(ctx, p.Path, store.Page{Limit: standingRuns})
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

// runs returns the results of a path, the oldest first.
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

// identifier matches a complete ID. The command line also takes a part of one, which may be ambiguous.
var identifier = regexp.MustCompile(`^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$`)

// storedResult returns a document and its samples as they were stored.
func (s *Server) storedResult(r *http.Request, id string) (doc, samples []byte, err error) {
	if !identifier.MatchString(id) {
		return nil, nil, store.ErrNotFound
	}
	return s.cfg.History.Get(r.Context(), id)
}

func (s *Server) run(r *http.Request) (any, error) {
	doc, _, err := s.storedResult(r, r.PathValue("id"))
	return doc, err
}

func (s *Server) samples(r *http.Request) (any, error) {
	_, samples, err := s.storedResult(r, r.PathValue("id"))
	if err == nil && samples == nil {
		err = &requestError{http.StatusNotFound, "this result was stored without samples", ""}
	}
	return samples, err
}

func (s *Server) compare(r *http.Request) (*record.Difference, error) {
	var both [2]record.Document
	for i, name := range []string{"first", "second"} {
		id := r.URL.Query().Get(name)
		if id == "" {
			return nil, &requestError{http.StatusBadRequest, name + " is missing: the id of a result",
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

// document returns a stored document with its samples and labels.
func (s *Server) document(r *http.Request, id string) (record.Document, error) {
	if !identifier.MatchString(id) {
		return nil, store.ErrNotFound
	}
	return s.cfg.History.Document(r.Context(), id)
}

// label sets or removes a label of a result.
func (s *Server) label(r *http.Request) (any, error) {
	name := r.PathValue("name")
	value := r.FormValue("value")
	if !identifier.MatchString(r.PathValue("id")) {
		return nil, store.ErrNotFound
	}
	if name == "" || len(name) > 64 || len(value) > 256 {
		return nil, &requestError{http.StatusBadRequest, "a label's name has 1 to 64 bytes, its value at most 256", ""}
	}
	if r.Method == http.MethodPut && value == "" {
		return nil, &requestError{http.StatusBadRequest, "value is missing", "value=… as a form; DELETE removes a label"}
	}
	if r.Method == http.MethodDelete {
		value = ""
	}
	err := s.cfg.History.Label(r.Context(), r.PathValue("id"), name, value)
	if err != nil && !errors.Is(err, store.ErrNoLabel) { // DELETE is idempotent
		return nil, err
	}
	return &record.History{Header: s.header("history"), Runs: []record.HistoryRun{}}, nil
}

// accept accepts a path as its newest result is: that is no trouble until it changes.
func (s *Server) accept(r *http.Request) (any, error) {
	by := cmp.Or(visitorOf(r.Context()).account.name, "yes")
	run, err := s.cfg.History.Accept(r.Context(), r.PathValue("key"), by)
	if err != nil {
		return nil, err
	}
	return &record.History{Header: s.header("history"), Runs: short([]store.Run{run})}, nil
}

// short returns the runs as documents list them.
func short(runs []store.Run) []record.HistoryRun {
	out := []record.HistoryRun{}
	for i := range runs {
		out = append(out, runs[i].HistoryRun)
	}
	return out
}

// pageOf returns the page that the parameters since, before and limit select.
func pageOf(q url.Values) (page store.Page, err error) {
	for name, into := range map[string]*time.Time{"since": &page.Since, "before": &page.Before} {
		if text := q.Get(name); text != "" {
			if *into, err = time.Parse(time.RFC3339, text); err != nil {
				return page, &requestError{http.StatusBadRequest, fmt.Sprintf("%s: %q is not a time", name, text),
					"as 2026-11-22T14:00:00Z"}
			}
		}
	}
	page.Limit, err = number(q, "limit", defaultRuns, maxRunsPerPage)
	return page, err
}

func number(q url.Values, name string, unset, maximum int) (int, error) {
	text := q.Get(name)
	if text == "" {
		return unset, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > maximum || n == 0 && name == "limit" {
		return 0, &requestError{http.StatusBadRequest,
			fmt.Sprintf("%s: %q is not a number up to %d", name, text, maximum), ""}
	}
	return n, nil
}

// fail sends an error and its remedy.
func (s *Server) fail(w http.ResponseWriter, r *http.Request, err error) {
	var own *requestError
	var away *store.Unavailable
	switch {
	case errors.As(err, &own):
		s.refuse(w, r, own.status, err.Error(), own.remedy)
	case errors.Is(err, store.ErrNotFound):
		s.refuse(w, r, http.StatusNotFound, "the history has no such path or result", "")
	case r.Context().Err() != nil: // the client has disconnected
	case errors.As(err, &away):
		s.refuse(w, r, http.StatusServiceUnavailable, err.Error(), "again once that server runs")
	case store.Lost(err):
		s.refuse(w, r, http.StatusServiceUnavailable, "the connection to the history's server was lost", "again")
	default:
		s.refuse(w, r, http.StatusInternalServerError, err.Error(), "")
	}
}

// codes maps HTTP statuses to error codes, as docs/exit-status.md has them where one fits.
var codes = map[int]string{http.StatusBadRequest: "usage", http.StatusUnauthorized: "not-permitted",
	http.StatusForbidden: "not-permitted", http.StatusNotFound: "not-found", http.StatusTooManyRequests: "busy",
	http.StatusConflict: "busy", http.StatusServiceUnavailable: "busy", http.StatusNotImplemented: "not-supported"}

// refuse sends an error and its remedy: a page to browsers, JSON to programs.
func (s *Server) refuse(w http.ResponseWriter, r *http.Request, status int, message, remedy string) {
	if !strings.HasPrefix(r.URL.Path, "/api/") && strings.Contains(r.Header.Get("Accept"), "text/html") {
		s.render(w, r, status, "refused", func(v view) templ.Component { return refusedPage(v, message, remedy) })
		return
	}
	writeRefusal(w, s.cfg.Version, status, message, remedy)
}

func writeRefusal(w http.ResponseWriter, version string, status int, message, remedy string) {
	code := codes[status]
	if code == "" {
		code = "failed"
	}
	doc := record.CommandFailed{Header: header(version, "ui"),
		Error: &record.Failure{Code: code, Message: message, Try: remedy}}
	text, err := json.Marshal(doc)
	if err != nil {
		http.Error(w, message, status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = render.NewWriter(w).Write(append(text, '\n')) // an error means that the client has disconnected
}
