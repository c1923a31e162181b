package hub

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
)

const (
	// urlsEvery is how often a hub records its URLs, and keepURLs how long agents get those of a hub that is gone.
	urlsEvery = 10 * time.Minute
	keepURLs  = 30 * 24 * time.Hour
)

// errOtherLeads refuses agents whose bus would be this hub's: only the other hub orders runs. They go to its URLs.
var errOtherLeads = errors.New("another hub leads")

// place identifies where a hub is. A hub that starts again has the same place.
func (h *Hub) place() string { return strings.Join(h.URLs, ",") + " " }

// refreshURLs records this hub's URLs and reads those of the others.
func (h *Hub) refreshURLs(ctx context.Context, now time.Time) error {
	if len(h.URLs) == 0 {
		return nil
	}
	h.mu.Lock()
	record := !now.Before(h.urlsAt)
	h.mu.Unlock()
	if record {
		if err := h.Fleet.SetHubURLs(ctx, h.URLs, now, now.Add(-keepURLs)); err != nil {
			return err
		}
	}
	all, err := h.Fleet.HubURLs(ctx)
	if err != nil {
		return err
	}
	urls := slices.Clone(h.URLs)
	for _, url := range all {
		if !slices.Contains(urls, url) {
			urls = append(urls, url)
		}
	}
	urls = urls[:min(len(urls), bus.MaxURLs)]
	h.mu.Lock()
	if record {
		h.urlsAt = now.Add(urlsEvery)
	}
	changed := h.urls != nil && !slices.Equal(h.urls, urls)
	h.urls = urls
	var agents []string
	for id := range h.members {
		agents = append(agents, id)
	}
	h.mu.Unlock()
	if !changed || h.Announce == nil {
		return nil
	}
	for _, id := range agents {
		h.Announce(id, urls)
	}
	return nil
}

// setOther records whether a hub at another place leads. Agents that this one has by its own bus then go there.
func (h *Hub) setOther(other bool) {
	h.mu.Lock()
	other = other && h.OwnBus
	changed := other != h.other
	h.other = other
	var keys []string
	for _, m := range h.members {
		keys = append(keys, m.NKey)
	}
	h.mu.Unlock()
	if !other || !changed {
		return
	}
	for _, key := range keys {
		h.Orders.Disconnect(key)
	}
}

// otherLeads reports whether agents find the hub that leads elsewhere.
func (h *Hub) otherLeads() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.other
}
