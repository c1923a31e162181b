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
)

// session is an authenticated browser.
type session struct {
	secret string
	role   Role
	used   time.Time
}

// begin creates a session. Above maxSessions it replaces the least recently used one.
func (s *Server) begin(role Role) (id string, one *session) {
	id = rand.Text()
	one = &session{rand.Text() + rand.Text(), role, time.Now()}
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
	if now.Sub(one.used) > sessionTimeout {
		delete(s.sessions, id)
		return nil
	}
	one.used = now
	return one
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
	address := addressOf(r)
	if !s.failures.Has(address, time.Now()) && r.Method == http.MethodPost {
		tooMany(w, r, s.refuse)
		return
	}
	role := s.roleOf(r.Context(), token)
	if role == Nobody {
		s.failures.Take(address, time.Now())
		s.loginPage(w, r, http.StatusUnauthorized, "unknown token")
		return
	}
	id, one := s.begin(role)
	base := "/s/" + id
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: one.secret, Path: base + "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: s.cfg.Encrypted})
	// After a redirect the browser would still treat the request as cross-site and withhold the strict cookie. A page
	// that navigates by itself is same-site.
	first := base + "/"
	if s.cfg.Fleet != nil {
		first += "fleet"
	}
	writePage(w, r, http.StatusOK, openedPage(first))
}
