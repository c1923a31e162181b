package web

import (
	"bytes"
	"embed"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"strings"

	"github.com/a-h/templ"

	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/html"
)

//go:embed static
var static embed.FS

// view describes the visitor and the server to every page.
type view struct {
	Base     string // path prefix of this visitor's pages
	Here     string // the page's name
	Operator bool
	Version  string
	Note     string
	Tests    bool // the browser speed test is available to this visitor
	Public   bool // the server has no other pages
	Fleet    bool // a hub's pages
}

// run returns the address of a result's page.
func (v view) run(id string) templ.SafeURL {
	return templ.SafeURL(v.Base + "/runs/" + url.PathEscape(id))
}

// path returns the address of a path's page.
func (v view) path(key string) templ.SafeURL {
	return templ.SafeURL(v.Base + "/paths/" + url.PathEscape(key))
}

// query returns the address of the same page with another query. A query has no scheme, so any text is safe in it.
func query(encoded string) templ.SafeURL { return templ.SafeURL("?" + encoded) }

// pageFor is a page for a visitor.
type pageFor func(view) templ.Component

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
	writePage(w, r, status, loginPage(message, s.cfg.Viewer != "" || s.cfg.Operator != "" || s.cfg.Fleet != nil))
}

// render writes a page.
func (s *Server) render(w http.ResponseWriter, r *http.Request, status int, name string, show pageFor) {
	v := visitorOf(r.Context())
	writePage(w, r, status, show(view{Base: v.base, Here: name, Operator: v.role >= Operator, Version: s.cfg.Version,
		Note: s.cfg.Note, Tests: s.cfg.Speed != nil && v.role >= Operator, Fleet: s.cfg.Fleet != nil}))
}

// writePage writes a page. If that fails, it writes an error instead of a part of the page.
func writePage(w http.ResponseWriter, r *http.Request, status int, page templ.Component) {
	var text bytes.Buffer
	if err := page.Render(r.Context(), &text); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = render.NewWriter(w).Write(text.Bytes()) // an error means that the client has disconnected
	}
}

// page returns a handler that shows the data of make. Control characters in the data's texts are escaped first.
func page[T any](s *Server, name string, make func(*http.Request) (T, error),
	show func(view, T) templ.Component) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		data, err := make(r)
		if err != nil {
			s.fail(w, r, err)
			return
		}
		s.render(w, r, http.StatusOK, name, func(v view) templ.Component { return show(v, render.Document(data)) })
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
