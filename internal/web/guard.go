package web

import (
	"context"
	"crypto/subtle"
	"net/http"
	"net/netip"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
)

// Role says what somebody may do.
type Role int

// A viewer reads; an operator may label results and test as well. routes says what each may ask for.
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

// visitor is who asks, and below which path the page stands for them.
type visitor struct {
	role Role
	base string
}

type visitorKey struct{}

func visitorOf(ctx context.Context) visitor {
	v, _ := ctx.Value(visitorKey{}).(visitor)
	return v
}

// policy lets a page load what this server sends, and nothing else: no script and no style
// inside a page, no other host, no frame around it.
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

// mostForm is how much a request may carry.
const mostForm = 8 << 10

// ServeHTTP lets in who may, and answers what they asked for.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	headers(w.Header())
	if s.cfg.Encrypted {
		w.Header().Set("Strict-Transport-Security", "max-age=31536000")
	}
	limit := int64(mostForm)
	if isResult(r.URL.Path) {
		limit = mostTold
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if !s.cfg.Ours(r.Host) {
		s.refuse(w, r, http.StatusMisdirectedRequest, "this is not the server of that name",
			"ask by the address that fullpipe ui printed")
		return
	}
	if err := s.cross.Check(r); err != nil {
		s.refuse(w, r, http.StatusForbidden, "a page of another site asks", "open the page itself")
		return
	}
	switch {
	case strings.HasPrefix(r.URL.Path, "/s/"):
		s.withSession(w, r)
	case !s.mayAsk(w, r):
	case r.URL.Path == "/open":
		s.open(w, r)
	case strings.HasPrefix(r.URL.Path, "/static/") && looks(r.Method): // what the way in needs too
		s.inside.ServeHTTP(w, r)
	default:
		s.withToken(w, r)
	}
}

// mayAsk says whether who has no session may have one more answer; it has refused where not.
func (s *Server) mayAsk(w http.ResponseWriter, r *http.Request) bool {
	may := s.strangers.take(addressOf(r), time.Now())
	if !may {
		tooMany(w, r, s.refuse)
	}
	return may
}

// withSession serves the page of somebody who opened it. The cookie is of that path alone,
// since cookies know no ports: another user's server on this host could collect it else.
func (s *Server) withSession(w http.ResponseWriter, r *http.Request) {
	id, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/s/"), "/")
	one := s.session(id)
	cookie, err := r.Cookie(cookieName)
	if one == nil || err != nil || !same(cookie.Value, one.secret) {
		if s.mayAsk(w, r) {
			s.door(w, r, http.StatusUnauthorized, "")
		}
		return
	}
	switch r.Header.Get("Sec-Fetch-Site") { // a browser's own word on who asks
	case "", "none", "same-origin":
	default:
		s.refuse(w, r, http.StatusForbidden, "a page of another site asks", "open the page itself")
		return
	}
	s.serve(w, r, visitor{one.role, "/s/" + id}, "/"+rest, id)
}

// withToken serves programs that bring a bearer token, and shows others the door.
func (s *Server) withToken(w http.ResponseWriter, r *http.Request) {
	brought := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	if brought == "" {
		s.door(w, r, http.StatusUnauthorized, "")
		return
	}
	address := addressOf(r)
	if !s.failures.has(address, time.Now()) {
		tooMany(w, r, s.refuse)
		return
	}
	role := s.roleOf(r.Context(), brought)
	if role == Nobody {
		s.failures.take(address, time.Now())
		s.door(w, r, http.StatusUnauthorized, "that token is not known here")
		return
	}
	s.serve(w, r, visitor{role, ""}, r.URL.Path, address)
}

func (s *Server) serve(w http.ResponseWriter, r *http.Request, v visitor, path, key string) {
	if !s.requests.take(key, time.Now()) {
		tooMany(w, r, s.refuse)
		return
	}
	inside := r.Clone(context.WithValue(r.Context(), visitorKey{}, v))
	inside.URL.Path = path
	inside.URL.RawPath = ""
	s.inside.ServeHTTP(w, inside)
}

// tooMany refuses a request, and ends the connection: the next one waits for its turn to connect.
func tooMany(w http.ResponseWriter, r *http.Request, refuse refusing) {
	w.Header().Set("Connection", "close")
	w.Header().Set("Retry-After", "10")
	refuse(w, r, http.StatusTooManyRequests, "too many requests", "wait some seconds")
}

// roleOf compares a token with all there are, in constant time.
func (s *Server) roleOf(ctx context.Context, token string) Role {
	role := s.accountRole(ctx, token)
	opening := Operator
	if s.cfg.Fleet != nil {
		opening = Admin
	}
	for _, one := range []struct {
		token string
		role  Role
	}{{s.cfg.Viewer, Viewer}, {s.cfg.Operator, Operator}, {s.cfg.Opening, opening}} {
		if one.token != "" && same(token, one.token) {
			role = max(role, one.role)
		}
	}
	return role
}

func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }

// hostOf returns whose requests are counted together: an IPv4 address or an IPv6 /64.
func hostOf(r *http.Request) netip.Prefix {
	at, _ := netip.ParseAddrPort(r.RemoteAddr)
	return admission.Host(at.Addr())
}

// addressOf returns hostOf as the key of a limiter.
func addressOf(r *http.Request) string { return hostOf(r).String() }
