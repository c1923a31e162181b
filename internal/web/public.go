package web

import (
	"net/http"
	"strings"
	"time"
)

// Public serves the test from a browser, and nothing else, to everybody who may.
type Public struct {
	speed    *Speed
	token    string
	mux      *http.ServeMux
	cross    *http.CrossOriginProtection
	requests limiter // by address
	version  string
}

// NewPublic makes a server of a test. token, where not "", has to be brought by who tests.
func NewPublic(speed *Speed, token string) *Public {
	p := &Public{speed: speed, token: token, mux: http.NewServeMux(), cross: http.NewCrossOriginProtection(),
		requests: limiter{every: 50 * time.Millisecond, burst: 200}, version: speed.cfg.Version}
	for _, one := range speed.routes(p.show, p.refuse) { // all are clients' here
		p.mux.HandleFunc(one.pattern, one.handler)
	}
	p.mux.Handle("GET /static/", staticFiles())
	p.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/test", http.StatusSeeOther)
	})
	p.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.refuse(w, r, http.StatusNotFound, "there is nothing of that name", "/test")
	})
	return p
}

// ServeHTTP answers who may.
func (p *Public) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	headers(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, mostTold)
	if !p.requests.take(addressOf(r), time.Now()) {
		tooMany(w, r, p.refuse)
		return
	}
	if err := p.cross.Check(r); err != nil {
		p.refuse(w, r, http.StatusForbidden, "a page of another site asks", "open the page itself")
		return
	}
	if p.token != "" && needsToken(r) && !same(tokenOf(r), p.token) {
		p.refuse(w, r, http.StatusUnauthorized, "a token is needed", "/test?access_token=TOKEN")
		return
	}
	p.mux.ServeHTTP(w, r)
}

// needsToken says whether a request takes of this host's line.
func needsToken(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/ndt/") || r.Method == http.MethodPost
}

// tokenOf is what a request brings: as a header, or as M-Lab's clients do in the address.
func tokenOf(r *http.Request) string {
	if t, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is {
		return t
	}
	return r.URL.Query().Get("access_token")
}

func (p *Public) show(w http.ResponseWriter, r *http.Request, name string, data any) {
	writePage(w, r, http.StatusOK, name, view{Here: name, Version: p.version, Data: data, Public: true})
}

func (p *Public) refuse(w http.ResponseWriter, r *http.Request, status int, what, remedy string) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") && r.Method == http.MethodGet {
		writePage(w, r, status, "refused", view{Version: p.version, Public: true,
			Data: map[string]string{"What": what, "Try": remedy}})
		return
	}
	writeRefusal(w, p.version, status, what, remedy)
}
