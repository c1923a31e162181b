package web

import (
	"context"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/httpserver"
)

// Role is a set of permissions. Each role includes those before it.
type Role int

// A viewer reads. An operator also labels results and starts tests. routes has the least role of each route.
const (
	Nobody Role = iota
	Viewer
	Operator
	Admin // of a hub
)

// article returns the role as in "an operator".
func (r Role) article() string {
	switch r {
	case Admin:
		return "an admin"
	case Operator:
		return "an operator"
	}
	return "a viewer"
}

// visitor has the account of a request, and the path prefix of its session's pages.
type visitor struct {
	account
	session *session // nil: the request has the token itself
	base    string
}

type visitorKey struct{}

func visitorOf(ctx context.Context) visitor {
	v, _ := ctx.Value(visitorKey{}).(visitor)
	return v
}

// policy lets a page load from this server only: no inline script or style, no other host, no frame around it.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func headers(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Embedder-Policy", "require-corp")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Cache-Control", "no-store")
}

// maxFormBytes is the maximum size of a request body other than a test's result and a mesh file.
const maxFormBytes = 8 << 10

// maxBody returns the maximum size of a request's body.
func maxBody(path string) int64 {
	switch {
	case isResult(path):
		return maxReportBytes
	case strings.HasSuffix(path, meshPath):
		return mesh.MaxFile + 1 // its parser refuses the last byte, and names the limit
	}
	return maxFormBytes
}

// ServeHTTP authenticates a request and serves it. It records those that may change something.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if isReadOnly(r.Method) {
		s.guard(w, r)
		return
	}
	s.serveChange(w, r)
}

func (s *Server) guard(w http.ResponseWriter, r *http.Request) {
	headers(w.Header())
	if r.TLS != nil {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxBody(r.URL.Path))
	if !s.cfg.Ours(r) {
		s.refuse(w, r, http.StatusMisdirectedRequest, "this is not the server of that name",
			"use the address that fullpipe ui printed")
		return
	}
	if err := s.cross.Check(r); err != nil {
		s.refuse(w, r, http.StatusForbidden, "the request comes from a page of another site", "open this page directly")
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/s/"):
		s.withSession(w, r)
	case r.URL.Path == "/open":
		s.open(w, r)
	case strings.HasPrefix(r.URL.Path, "/static/") && isReadOnly(r.Method): // the login page needs these files
		if s.admitUnauthenticated(w, r) {
			s.inside.ServeHTTP(w, r)
		}
	default:
		s.withToken(w, r)
	}
}

// admitUnauthenticated reports whether a client without a right token is below its request limit. If not, it has sent
// the refusal.
func (s *Server) admitUnauthenticated(w http.ResponseWriter, r *http.Request) bool {
	may := s.unauthenticated.Take(addressOf(r), time.Now())
	if !may {
		tooMany(w, r, s.refuse)
	}
	return may
}

// withSession serves the pages of a session. The cookie is valid for the session's path only: cookies ignore ports, so
// a browser would also send it to another user's server on this host.
func (s *Server) withSession(w http.ResponseWriter, r *http.Request) {
	id, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/s/"), "/")
	one := s.session(id)
	cookie, err := r.Cookie(cookieName)
	if one == nil || err != nil || !same(cookie.Value, one.secret) {
		if s.admitUnauthenticated(w, r) {
			s.loginPage(w, r, http.StatusUnauthorized, "")
		}
		return
	}
	user, err := s.accountOf(r.Context(), one.token)
	if err != nil {
		s.fail(w, r, err)
		return
	}
	if user.role == Nobody { // the user was removed, or has another token
		s.end(id)
		s.loginPage(w, r, http.StatusUnauthorized, "")
		return
	}
	switch r.Header.Get("Sec-Fetch-Site") { // set by the browser, not by the page
	case "", "none", "same-origin":
	default:
		s.refuse(w, r, http.StatusForbidden, "the request comes from a page of another site", "open this page directly")
		return
	}
	s.serve(w, r, visitor{user, one, "/s/" + id}, "/"+rest, id)
}

// withToken serves programs that send a bearer token. Others get the login page.
func (s *Server) withToken(w http.ResponseWriter, r *http.Request) {
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if token == "" {
		if s.admitUnauthenticated(w, r) {
			s.loginPage(w, r, http.StatusUnauthorized, "")
		}
		return
	}
	if user, ok := s.admit(w, r, token); ok {
		s.serve(w, r, visitor{account: user}, r.URL.Path, user.token+addressOf(r))
	}
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, v visitor, path, key string) {
	if !s.requests.Take(key, time.Now()) {
		tooMany(w, r, s.refuse)
		return
	}
	httpserver.Prove(r.Context())
	inside := r.Clone(context.WithValue(r.Context(), visitorKey{}, v))
	inside.URL.Path = path
	inside.URL.RawPath = ""
	s.inside.ServeHTTP(w, inside)
}

// tooMany refuses a request and closes the connection, so that the client's next request needs a new connection.
func tooMany(w http.ResponseWriter, r *http.Request, refuse refusing) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", "10")
	refuse(w, r, http.StatusTooManyRequests, "too many requests", "wait some seconds")
}

// hostOf returns the prefix whose requests share one limit: an IPv4 address or an IPv6 /64.
func hostOf(r *http.Request) netip.Prefix {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return admission.Host(at.Addr())
}

// addressOf returns hostOf as the key of a limiter.
func addressOf(r *http.Request) string { return hostOf(r).String() }
