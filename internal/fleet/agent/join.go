package agent

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/nats-io/nkeys"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

const (
	stateFile = "agent.json"
	seedFile  = "agent.seed"
	joinTime  = 20 * time.Second
	// A hub whose database is slow is asked again, every joinEvery for joinPatience.
	joinEvery    = 2 * time.Second
	joinPatience = 2 * time.Minute
)

// State is an agent's membership.
type State struct {
	ID   string   `json:"id"`
	Name string   `json:"name"`
	URLs []string `json:"urls"` // of the hub
	Pin  string   `json:"pin,omitempty"`
}

// Encode returns the state's file.
func (s State) Encode() []byte {
	text, _ := json.MarshalIndent(s, "", "  ") // strings only
	return append(text, '\n')
}

// ErrNotJoined reports that a state directory has no membership.
var ErrNotJoined = errors.New("this host has not joined a fleet")

// Load reads a membership and its key. The error is ErrNotJoined without one.
func Load(dir string) (State, nkeys.KeyPair, error) {
	var s State
	text, err := os.ReadFile(filepath.Join(dir, stateFile))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil, ErrNotJoined
	}
	if err != nil {
		return s, nil, err
	}
	if err := json.Unmarshal(text, &s); err != nil {
		return s, nil, fmt.Errorf("%s: %w", stateFile, err)
	}
	key, _, err := bus.StoredKey(filepath.Join(dir, seedFile), nil)
	return s, key, err
}

// Join makes a key, which never leaves this host, and joins the fleet of a token. A request that the hub answered and
// this host did not hear of is repeated with the same key, and uses the token once.
func Join(ctx context.Context, dir string, token bus.Token, r bus.JoinRequest) (State, nkeys.KeyPair, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return State{}, nil, err
	}
	key, public, err := bus.StoredKey(filepath.Join(dir, seedFile), nkeys.CreateUser)
	if err != nil {
		return State{}, nil, err
	}
	r.NKey = public
	r.Secret = token.Secret
	s, err := join(ctx, token, r)
	for began := time.Now(); errors.Is(err, errBusyHub) && time.Since(began) < joinPatience; s, err = join(ctx, token, r) {
		select {
		case <-ctx.Done():
			return State{}, nil, ctx.Err()
		case <-time.After(joinEvery):
		}
	}
	if err != nil {
		return State{}, nil, err
	}
	return s, key, atomicfile.WritePrivate(ctx, filepath.Join(dir, stateFile), s.Encode())
}

// errBusyHub reports that a hub was reached and did not decide.
var errBusyHub = errors.New("the hub is busy")

// join asks the hub at each of its addresses that is reached.
func join(ctx context.Context, token bus.Token, r bus.JoinRequest) (s State, err error) {
	urls := token.URLs
	if !usesProxy(urls) {
		urls, err = bus.ReachAny(ctx, token.URLs, bus.PinnedTLS(token.Pin))
	}
	for _, url := range urls {
		var reply bus.JoinReply
		reply, err = post(ctx, url, token.Pin, r)
		if err != nil {
			continue
		}
		s = State{ID: reply.ID, Name: reply.Name, URLs: token.URLs, Pin: token.Pin}
		if len(reply.URLs) > 0 {
			s.URLs = reply.URLs
		}
		break
	}
	return s, err
}

// usesProxy reports whether the environment names a proxy for a URL: only its reply says why a hub is not reached.
func usesProxy(urls []string) bool {
	return slices.ContainsFunc(urls, func(url string) bool {
		request, err := http.NewRequest(http.MethodPost, url, nil)
		if err != nil {
			return false
		}
		proxy, err := http.ProxyFromEnvironment(request)
		return proxy != nil || err != nil
	})
}

// post asks one hub.
func post(ctx context.Context, url, pin string, r bus.JoinRequest) (reply bus.JoinReply, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	body, err := json.Marshal(r)
	if err != nil {
		return reply, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, url+bus.JoinPath, bytes.NewReader(body))
	if err != nil {
		return reply, err
	}
	request.Header.Set("Content-Type", "application/json")
	transport := &http.Transport{TLSClientConfig: bus.PinnedTLS(pin), Proxy: http.ProxyFromEnvironment}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse // the secret goes to the token's addresses only
	}}
	response, err := client.Do(request)
	if err != nil {
		return reply, err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(io.LimitReader(response.Body, 64<<10))
	if err != nil {
		return reply, err
	}
	if err := json.Unmarshal(text, &reply); err != nil {
		return reply, fmt.Errorf("%s: status %d, and not a hub's reply", url, response.StatusCode)
	}
	if response.StatusCode == http.StatusServiceUnavailable {
		return reply, fmt.Errorf("the hub at %s: %s: %w", url, reply.Error, errBusyHub)
	}
	if reply.Error != "" || reply.ID == "" {
		return reply, fmt.Errorf("the hub at %s refused: %s", url, reply.Error)
	}
	return reply, nil
}
