package web

import (
	"net/http"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
)

// Public serves the browser speed test and nothing else.
type Public struct {
	speed    *Speed
	token    string
	mux      *http.ServeMux
	cross    *http.CrossOriginProtection
	requests admission.Limiter // by address
	version  string
}

// NewPublic returns a server of the speed test. If token is not "", tests need it.
func NewPublic(speed *Speed, token string) *Public {
	p := &Public{speed: speed, token: token, mux: http.NewServeMux(), cross: http.NewCrossOriginProtection(),
		requests: admission.Limiter{Every: 50 * time.Millisecond, Burst: 200}, version: speed.cfg.Version}
	for _, one := range speed.routes(p.show, p.refuse) { // roles do not apply here
		p.mux.HandleFunc(one.pattern, one.handler)
	}
	p.mux.Handle("GET /static/", staticFiles())
	p.mux.HandleFunc("GET /{$}", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/test", http.StatusSeeOther)
	})
	p.mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		p.refuse(w, r, http.StatusNotFound, "no such page", "/test")
	})
	return p
}

// ServeHTTP checks limits, origin and token, and serves the request.
func (p *Public) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	headers(w.Header())
	r.Body = http.MaxBytesReader(w, r.Body, maxReportBytes)
	if !p.requests.Take(addressOf(r), time.Now()) {
		tooMany(w, r, p.refuse)
		return
	}
	if ours := p.speed.cfg.Ours; ours != nil && isBrowser(r) && !ours(r) {
		p.refuse(w, r, http.StatusMisdirectedRequest, "this is not the server of that name",
			"the server's address, or --web-origin with the name at the server")
		return
	}
	if err := p.cross.Check(r); err != nil {
		p.refuse(w, r, http.StatusForbidden, "the request comes from a page of another site", "open this page directly")
		return
	}
	if p.token != "" && needsToken(r) && !same(tokenOf(r), p.token) {
		p.refuse(w, r, http.StatusUnauthorized, "a token is needed", "/test?access_token=TOKEN")
		return
	}
	p.mux.ServeHTTP(w, r)
}

// isBrowser reports whether a page sent the request. Other clients are no way to another site's page.
func isBrowser(r *http.Request) bool {
	return r.Header.Get("Origin") != "" || r.Header.Get("Sec-Fetch-Site") != ""
}

// needsToken reports whether a request starts a test or uses the host's bandwidth.
func needsToken(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/ndt/") || r.Method == http.MethodPost
}

// tokenOf returns the token of a request, from its header or, as M-Lab's clients send it, from its address.
func tokenOf(r *http.Request) string {
	if t, is := strings.CutPrefix(r.Header.Get("Authorization"), "Bearer "); is {
		return t
	}
	return r.URL.Query().Get("access_token")
}

func (p *Public) show(w http.ResponseWriter, r *http.Request, name string, one pageFor) {
	writePage(w, r, http.StatusOK, one(view{Here: name, Version: p.version, Public: true}))
}

func (p *Public) refuse(w http.ResponseWriter, r *http.Request, status int, message, remedy string) {
	if strings.Contains(r.Header.Get("Accept"), "text/html") && r.Method == http.MethodGet {
		writePage(w, r, status, refusedPage(view{Version: p.version, Public: true}, message, remedy))
		return
	}
	writeRefusal(w, p.version, status, message, remedy)
}
