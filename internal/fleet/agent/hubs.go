package agent

import (
	"context"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

// hubs are the URLs of the fleet's hubs, and whether one of them has this agent.
type hubs struct {
	mu       sync.Mutex
	urls     []string
	welcomed bool
}

func (h *hubs) state() (urls []string, welcomed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.urls, h.welcomed
}

func (h *hubs) welcome(welcomed bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.welcomed = welcomed
}

// announced takes the URLs of the hubs after a change.
func (a *agent) announced(data []byte) any {
	var now bus.Hubs
	if bus.Decode(data, &now) == nil {
		a.start(func() { a.learn(a.ctx, now.URLs) })
	}
	return struct{}{}
}

// learn keeps the URLs of the fleet's hubs, for the next connect and the next start.
func (a *agent) learn(ctx context.Context, urls []string) {
	known, _ := a.hubs.state()
	if len(urls) == 0 || slices.Equal(urls, known) || !a.conn.SetURLs(urls) {
		return
	}
	a.hubs.mu.Lock()
	a.hubs.urls = slices.Clone(urls)
	a.hubs.mu.Unlock()
	state := a.State
	state.URLs = urls
	if err := atomicfile.WritePrivate(ctx, filepath.Join(a.Dir, stateFile), state.Encode()); err != nil {
		a.lost(err) // the next welcome tries again
	}
}

const (
	// patience is the time without a hub after which an agent looks for the reason: with the 12 s of Reach it gives the
	// reason within 15 s.
	patience = 3 * time.Second
	// explainEvery is the time between two reasons.
	explainEvery = time.Minute
)

// explain reports why no hub is reached, until ctx ends.
func (a *agent) explain(ctx context.Context) {
	wait := patience
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
		wait = patience
		urls, welcomed := a.hubs.state()
		if welcomed {
			continue
		}
		reached, err := bus.ReachAny(ctx, urls, a.TLS)
		_, welcomed = a.hubs.state()
		if len(reached) == 0 && err != nil && ctx.Err() == nil && !welcomed {
			a.lost(err)
			wait = explainEvery
		}
	}
}
