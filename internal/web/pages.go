package web

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"io"
	"io/fs"
	"net/http"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
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
	"age":      func(t time.Time) string { return text.Age(time.Since(t)) },
	"iso":      func(t time.Time) string { return t.UTC().Format(time.RFC3339) },
	"tail":     func(id string) string { return id[max(len(id)-12, 0):] },
	"standing": text.Standing, "letter": text.Letter, "change": text.ChangeText,
	"figure": text.FigureText, "add": func(a, b int) int { return a + b },
	"list": func(all ...string) []string { return all },
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

// view is the data of a page's template.
type view struct {
	Base     string // path prefix of this visitor's pages
	Here     string // the page's name
	Operator bool
	Version  string
	Note     string
	Data     any
	Tests    bool // the browser speed test is available to this visitor
	Public   bool // the server has no other pages
	Fleet    bool // a hub's pages
}

// loginPage asks a client without a session for its token.
func (s *Server) loginPage(w http.ResponseWriter, r *http.Request, status int, message string) {
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		w.Header().Set("WWW-Authenticate", "Bearer")
		if message == "" {
			message = "a token is needed"
		}
		s.refuse(w, r, status, message, "Authorization: Bearer TOKEN, or the address that fullpipe ui printed")
		return
	}
	s.render(w, r, status, "login", map[string]any{"Message": message,
		"Token": s.cfg.Viewer != "" || s.cfg.Operator != ""})
}

// render writes a page. If its template fails, it writes an error instead of a part of the page.
func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, name string, data any) {
	v := visitorOf(r.Context())
	writePage(w, r, status, name, view{Base: v.base, Here: name, Operator: v.role >= Operator, Version: s.cfg.Version,
		Note: s.cfg.Note, Data: data, Tests: s.cfg.Speed != nil && v.role >= Operator, Fleet: s.cfg.Fleet != nil})
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
		_, _ = render.NewWriter(w).Write(page.Bytes()) // an error means that the client has disconnected
	}
}

// page returns a handler that renders a template with the data of make. Control characters in the data's texts are
// escaped first.
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
	mux := http.NewServeMux()
	mux.Handle("GET /static/", http.StripPrefix("/static/", http.FileServerFS(existing{files})))
	mux.HandleFunc("GET /static/base.css", fixed("text/css", html.BaseStyle())) // reports have these two, too
	mux.HandleFunc("GET /static/diagnose.js", fixed("text/javascript", html.Script()))
	return mux
}

// fixed returns a handler that sends a text of the program.
func fixed(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind+"; charset=utf-8")
		_, _ = io.WriteString(w, content) // an error means that the client has disconnected
	}
}

// existing reports an invalid file name as not found. Package fs reports it as invalid, and package http would send
// status 500.
type existing struct{ fs.FS }

func (e existing) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
	}
	return e.FS.Open(name)
}
