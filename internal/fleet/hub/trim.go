package hub

import (
	"context"
	"errors"
	"time"
)

const (
	keepJobs  = 90 * 24 * time.Hour
	trimEvery = time.Hour
	trimPause = 5 * time.Second // between transactions while old results are left
)

// trim removes what is older than the database keeps.
func (h *Hub) trim(ctx context.Context, now time.Time) error {
	before := now.Add(-keepJobs)
	err := errors.Join(h.Fleet.TrimJobs(ctx, before), h.Fleet.TrimIncidents(ctx, before))
	if err != nil || h.mesh == nil || h.mesh.Keep == 0 {
		return err
	}
	more, err := h.Fleet.Trim(ctx, now, time.Duration(h.mesh.Keep))
	if more {
		h.trimAt = now.Add(trimPause)
	}
	return err
}
