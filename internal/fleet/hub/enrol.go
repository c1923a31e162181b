package hub

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/netip"
	"regexp"
	"strings"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// NewToken makes a token's secret and stores its hash.
func NewToken(ctx context.Context, f *store.Fleet, e store.Enrolment, now time.Time) (secret string, err error) {
	secret = rand.Text()
	e.Hash = hashOf(secret)
	return secret, f.AddEnrolment(ctx, e, now)
}

func hashOf(secret string) string {
	sum := sha256.Sum256([]byte(secret))
	return hex.EncodeToString(sum[:])
}

// newAgentID returns 26 letters and digits.
func newAgentID() string {
	var random [16]byte
	rand.Read(random[:])
	return strings.ToLower(base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(random[:]))
}

// AgentName matches the names that agents may have.
var AgentName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,62}$`)

const (
	maxJoinBody = 16 << 10
	maxLabels   = 32
	maxLabel    = 128
	// Wrong tokens of an address: at first, then one at a time. Above that its connection ends, which costs it a TLS
	// handshake for the next. Right tokens have no limit.
	wrongTokens = 100
	wrongEvery  = 6 * time.Second
)

// JoinHandler admits agents by their tokens. urls are where they connect to afterwards; none: the hub itself.
func JoinHandler(f *store.Fleet, urls []string, joined func(store.Agent)) http.Handler {
	wrong := &admission.Limiter{Every: wrongEvery, Burst: wrongTokens}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		status, reply := join(f, r, wrong, joined)
		if status == http.StatusTooManyRequests {
			w.Header().Set("Connection", "close")
		}
		if reply.Error == "" {
			reply.URLs = urls
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(reply) // the agent asks again
	})
}

func join(f *store.Fleet, r *http.Request, wrong *admission.Limiter, joined func(store.Agent)) (int, bus.JoinReply) {
	refuse := func(status int, why string) (int, bus.JoinReply) { return status, bus.JoinReply{Error: why} }
	if r.Method != http.MethodPost {
		return refuse(http.StatusMethodNotAllowed, "agents join with POST")
	}
	from, err := netip.ParseAddrPort(r.RemoteAddr)
	if err != nil {
		return refuse(http.StatusBadRequest, "the address cannot be read")
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxJoinBody))
	if err != nil {
		return refuse(http.StatusBadRequest, "the request cannot be read")
	}
	var request bus.JoinRequest
	if err := json.Unmarshal(body, &request); err != nil {
		return refuse(http.StatusBadRequest, "the request cannot be read")
	}
	if !nkeys.IsValidPublicUserKey(request.NKey) || !AgentName.MatchString(request.Name) || !labelsFit(request.Labels) {
		return refuse(http.StatusBadRequest, "the key, the name or a label is not valid")
	}
	a, err := f.Enrol(r.Context(), hashOf(request.Secret), store.Agent{ID: newAgentID(), Name: request.Name,
		NKey: request.NKey, HostID: request.HostID[:min(len(request.HostID), maxLabel)], Labels: request.Labels},
		from.Addr(), time.Now())
	switch {
	case errors.Is(err, store.ErrEnrolment):
		if !wrong.Take(admission.Host(from.Addr()).String(), time.Now()) {
			return refuse(http.StatusTooManyRequests, "too many wrong tokens from this address: wait a minute")
		}
		return refuse(http.StatusForbidden, err.Error())
	case err != nil:
		return refuse(http.StatusServiceUnavailable, "the hub cannot store it now")
	}
	joined(a)
	return http.StatusOK, bus.JoinReply{ID: a.ID, Name: a.Name}
}

func labelsFit(labels map[string]string) bool {
	if len(labels) > maxLabels {
		return false
	}
	for name, value := range labels {
		if !AgentName.MatchString(name) || len(value) > maxLabel {
			return false
		}
	}
	return true
}
