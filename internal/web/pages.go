package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

//go:embed pages/*.html
var pages embed.FS

//go:embed static
var static embed.FS

var templates = template.Must(template.New("").Funcs(template.FuncMap{
	"rate": func(v *float64) string {
		if v == nil {
			return "–"
		}
		return units.Rate(*v).String()
	},
	"secs": text.SecondsText,
	"seconds": func(v *float64) string {
		if v == nil {
			return "–"
		}
		return text.SecondsText(*v)
	},
	"when":     func(t time.Time) string { return t.UTC().Format("2006-01-02 15:04") },
	"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"tail":     func(id string) string { return id[max(len(id)-12, 0):] },
	"standing": text.Standing, "letter": text.Letter, "change": text.ChangeText,
	"figure": text.FigureText, "add": func(a, b int) int { return a + b },
	"ratio": func(v *float64) string {
		if v == nil {
			return ""
		}
		return fmt.Sprintf("× %.2f", *v)
	},
	"known": func(v *string) string {
		if v == nil {
			return "not known"
		}
		return *v
	},
}).ParseFS(pages, "pages/*.html"))

// view is what a page's template takes.
type view struct {
	Base     string // before every address of this visitor's pages
	Here     string // the page's name
	Operator bool
	Version  string
	Note     string
	Data     any
	Tests    bool // there is a test from a browser
	Public   bool // and nothing else
}

// door is the way in, for who is not.
func (s *Server) door(w http.ResponseWriter, r *http.Request, status int, what string) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("WWW-Authenticate", "Bearer")
		if what == "" {
			what = "a token is needed"
		}
		s.refuse(w, r, status, what, "Authorization: Bearer TOKEN, or the address that fullpipe ui printed")
		return
	}
	s.render(w, r, status, "door", map[string]any{"What": what, "Token": s.cfg.Viewer != "" || s.cfg.Operator != ""})
}

// render writes a page, harmless and in one piece.
func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	v := visitorOf(r.Context())
	writePage(w, r, status, name, view{Base: v.base, Here: name, Operator: v.role >= Operator, Version: s.cfg.Version,
		Note: s.cfg.Note, Data: data, Tests: s.cfg.Speed != nil})
}

func writePage(w http.ResponseWriter, r *http.Request, status int, name string, v view) {
	var page bytes.Buffer
	if err := templates.ExecuteTemplate(&page, name+".html", v); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = render.NewWriter(w).Write(page.Bytes()) // who went away is not told
	}
}

// page turns a handler that answers a template's data into one of pages. Foreign text in
// documents is a line each before a template sees it.
func page[T any](s *Server, name string, make func(r *http.Request) (T, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := make(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.render(w, r, http.StatusOK, name, render.Document(data))
	}
}

func staticFiles() http.Handler {
	files, err := fs.Sub(static, "static")
	if err != nil {
		panic(err) // the directory is part of the program
	}
	return http.StripPrefix("/static/", http.FileServerFS(existing{files}))
}

// existing has no file by a name that none can have, where package fs calls such a name invalid and package http
// makes a failure of the server's of it.
type existing struct{ fs.FS }

func (e existing) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return e.FS.Open(name)
}

// routes are what those who are in may ask for.
func (s *Server) routes() *http.ServeMux {
	mux := http.NewServeMux()
	mux.Handle("GET /static/", staticFiles())
	if s.cfg.Speed != nil {
		s.cfg.Speed.mount(mux, func(w http.ResponseWriter, r *http.Request, name string, data any) {
			s.render(w, r, http.StatusOK, name, data)
		}, s.refuse)
	}
	mux.HandleFunc("GET /static/diagnose.js", runScript)
	mux.HandleFunc("GET /runs/{id}/style.css", s.runStyle)
	mux.HandleFunc("GET /{$}", page(s, "grid", s.grid))
	mux.HandleFunc("GET /paths/{key}", page(s, "series", s.series))
	mux.HandleFunc("POST /paths/{key}/retest", s.operators(s.testForm(s.beginTest)))
	mux.HandleFunc("POST /paths/{key}/retest/stop", s.operators(s.testForm(s.stopTest)))
	mux.HandleFunc("GET /runs/{id}", s.runPage)
	mux.HandleFunc("POST /runs/{id}/label", s.operators(s.labelForm))
	mux.HandleFunc("GET /compare", page(s, "compare", s.comparePage))
	mux.HandleFunc("GET /live", page(s, "live", func(*http.Request) (bool, error) { return s.cfg.Watch != nil, nil }))
	for pattern, h := range s.api() {
		mux.HandleFunc(pattern, h)
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		s.refuse(w, r, http.StatusNotFound, "there is nothing of that name", "")
	})
	return mux
}

// api are the routes that openapi.json describes.
func (s *Server) api() map[string]http.HandlerFunc {
	return map[string]http.HandlerFunc{
		"GET /api/v1/paths":                      s.answer(func(r *http.Request) (any, error) { return s.paths(r) }),
		"GET /api/v1/paths/{key}/runs":           s.answer(func(r *http.Request) (any, error) { return s.runs(r) }),
		"GET /api/v1/paths/{key}/changes":        s.answer(func(r *http.Request) (any, error) { return s.changes(r) }),
		"GET /api/v1/runs/{id}":                  s.answer(s.run),
		"GET /api/v1/runs/{id}/samples":          s.answer(s.samples),
		"PUT /api/v1/runs/{id}/labels/{name}":    s.operators(s.answer(s.label)),
		"DELETE /api/v1/runs/{id}/labels/{name}": s.operators(s.answer(s.label)),
		"GET /api/v1/compare":                    s.answer(func(r *http.Request) (any, error) { return s.compare(r) }),
		"POST /api/v1/paths/{key}/retest":        s.operators(s.answer(s.beginTest)),
		"GET /api/v1/retest":                     s.streamTest,
		"DELETE /api/v1/retest":                  s.operators(s.answer(s.stopTest)),
		"GET /api/v1/live":                       s.stream,
		"GET /api/v1/openapi.json":               s.answer(func(*http.Request) (any, error) { return openapi, nil }),
	}
}
