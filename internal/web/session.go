package web

import (
	"crypto/rand"
	"net/http"
	"time"
)

const (
	cookieName   = "fullpipe"
	mostSessions = 256
	lasts        = 12 * time.Hour // a session that nobody uses
)

// session is a browser that was let in.
type session struct {
	secret string
	role   Role
	used   time.Time
}

// begin makes a session, in the place of the one unused for longest where there are too many.
func (s *Server) begin(role Role) (id string, one *session) {
	id = rand.Text()
	one = &session{rand.Text() + rand.Text(), role, time.Now()}
	s.mu.Lock()
	defer s.mu.Unlock()
	for len(s.sessions) >= mostSessions {
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

// session finds one that has not run out.
func (s *Server) session(id string) *session {
	s.mu.Lock()
	defer s.mu.Unlock()
	one := s.sessions[id]
	if one == nil {
		return nil
	}
	now := time.Now()
	if now.Sub(one.used) > lasts {
		delete(s.sessions, id)
		return nil
	}
	one.used = now
	return one
}

// open exchanges a token for a session: the one in the address that fullpipe ui printed, or
// one that was typed in.
func (s *Server) open(w http.ResponseWriter, r *http.Request) {
	token := ""
	switch r.Method {
	case http.MethodGet: // the only token that stands in an address
		token = r.URL.Query().Get("token")
		if s.cfg.Opening == "" || !same(token, s.cfg.Opening) {
			token = ""
		}
	case http.MethodPost:
		token = r.PostFormValue("token")
	default:
		s.refuse(w, r, http.StatusMethodNotAllowed, "nothing is done so here", "open it in a browser")
		return
	}
	address := addressOf(r)
	if !s.failures.has(address, time.Now()) && r.Method == http.MethodPost {
		tooMany(w, r, s.refuse)
		return
	}
	role := s.roleOf(r.Context(), token)
	if role == Nobody {
		s.failures.take(address, time.Now())
		s.door(w, r, http.StatusUnauthorized, "that token is not known here")
		return
	}
	id, one := s.begin(role)
	base := "/s/" + id
	http.SetCookie(w, &http.Cookie{Name: cookieName, Value: one.secret, Path: base + "/", HttpOnly: true,
		SameSite: http.SameSiteStrictMode, Secure: s.cfg.Encrypted})
	// A redirect would still count as asked for by whoever led here, and the browser would
	// keep the cookie back. A page that goes on by itself is ours.
	first := base + "/"
	if s.cfg.Fleet != nil {
		first += "fleet"
	}
	s.render(w, r, http.StatusOK, "opened", first)
}
