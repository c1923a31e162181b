package web

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/hex"
	"errors"
	"net/http"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/store"
)

// account is the owner of a token. Its zero value is a stranger.
type account struct {
	name  string
	role  Role
	token string // SHA-256 of the token, hex
}

// Names of the accounts without a user. No user's name has parentheses.
const (
	openingName  = "(printed address)"
	viewerName   = "(viewer token)"
	operatorName = "(operator token)"
)

// accountOf returns the account that has a token now, given the token's hash, and a stranger's for an unknown one. It
// is asked at each request, of a session too: a session is worth what its token is worth.
func (s *Server) accountOf(ctx context.Context, hash string) (account, error) {
	opening := Operator
	if s.cfg.Fleet != nil {
		opening = Admin
	}
	for _, one := range []struct {
		token, name string
		role        Role
	}{
		{s.cfg.Opening, openingName, opening},
		{s.cfg.Operator, operatorName, Operator},
		{s.cfg.Viewer, viewerName, Viewer},
	} {
		if one.token != "" && same(hash, hashOf(one.token)) {
			return account{one.name, one.role, hash}, nil
		}
	}
	if s.cfg.Fleet == nil {
		return account{}, nil
	}
	user, err := s.cfg.Fleet.Store.AccountByToken(ctx, hash)
	if errors.Is(err, store.ErrNotFound) {
		return account{}, nil
	}
	return account{user.Name, roleNames[user.Role], hash}, err
}

// roleNames are the roles of a hub's users. Another name is Nobody.
var roleNames = map[string]Role{"viewer": Viewer, "operator": Operator, "admin": Admin}

// admit returns the account of a token. If it has none, it sends the refusal. Only wrong tokens count towards the
// limits of their address, so no neighbour shuts out a right one.
func (s *Server) admit(w http.ResponseWriter, r *http.Request, token string) (owner account, ok bool) {
	owner, err := s.accountOf(r.Context(), hashOf(token))
	switch address := addressOf(r); {
	case err != nil:
		s.fail(w, r, err)
	case owner.role != Nobody:
		return owner, true
	case s.admitUnauthenticated(w, r):
		if s.failures.Take(address, time.Now()) {
			s.loginPage(w, r, http.StatusUnauthorized, "unknown token")
		} else {
			tooMany(w, r, s.refuse)
		}
	}
	return account{}, false
}

// stillMay reports whether a follower of a stream may still read: its account may have lost its role since the
// request, or its session may have ended.
func (s *Server) stillMay(r *http.Request) bool {
	v := visitorOf(r.Context())
	if v.session != nil && v.session.isOver(time.Now()) {
		return false
	}
	owner, err := s.accountOf(r.Context(), v.token)
	return err == nil && owner.role >= Viewer
}

func hashOf(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}

// same compares two texts in constant time.
func same(a, b string) bool { return subtle.ConstantTimeCompare([]byte(a), []byte(b)) == 1 }
