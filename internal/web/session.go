package web

import (
	"crypto/rand"
	"net/http"
	"time"
)

const (
	cookieName     = "fullpipe"
	maxSessions    = 256
	sessionTimeout = 12 * time.Hour // idle timeout of a session
	maxSessionAge  = 24 * time.Hour
)

// session is an authenticated browser. It has the token that opened it, not a role: see accountOf.
type session struct {
	secret string
	token  string // its hash
	begun  time.Time
	used   time.Time
}

// isOver reports whether a session has reached its maximum age.
func (s *session) isOver(now time.Time) bool { return now.Sub(s.begun) > maxSessionAge }

// begin creates a session. Above maxSessions it replaces the least recently used one.
func (s *Server) begin(token string) (id string, one *session) {
	id = rand.Text()
	now := time.Now()
	one = &session{rand.Text() + rand.Text(), token, now, now}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.sessions) >= maxSessions {
		oldest := ""
		for key, other := range s.sessions {
			if oldest == "" || other.used.Before(s.sessions[oldest].used) {
				oldest = key
			}
		}
		delete(s.sessions, oldest)
	}
	s.sessions[id] = one
	return id, one
}

// session returns a session that has not expired, or nil.
func (s *Server) session(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	if one == nil {
		return nil
	}
	now := time.Now()
	if now.Sub(one.used) > sessionTimeout || one.isOver(now) {
		delete(s.sessions, id)
		return nil
	}
	one.used = now
	return one
}

// end ends a session.
func (s *Server) end(id string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sessions, id)
}

// open exchanges a token for a session: the token in the address that fullpipe ui printed, or a typed one.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	token := ""
	switch r.Method {
	case http.MethodGet: // only the opening token may be in an address
		token = r.URL.Query().Get("token")
		if s.cfg.Opening == "" || !same(token, s.cfg.Opening) {
			token = ""
		}
	case http.MethodPost:
		token = r.PostFormValue("token")
	default:
		s.refuse(w, r, http.StatusMethodNotAllowed, "this address accepts GET and POST only", "open it in a browser")
		return
	}
	user, ok := s.admit(w, r, token)
	if !ok {
		return
	}
	identify(r, user, r.Method+" /open")
	id, one := s.begin(user.token)
	base := "/s/" + id
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: one.secret, Path: base + "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: r.TLS != nil})
	// After a redirect the browser would still treat the request as cross-site and withhold the strict cookie. A page
	// that navigates by itself is same-site.
	first := base + "/"
	if s.cfg.Fleet != nil {
		first += "fleet"
	}
	writePage(w, r, http.StatusOK, openedPage(first))
}
