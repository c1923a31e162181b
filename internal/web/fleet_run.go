package web

import (
	"context"
	"database/sql"
	"errors"

	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// unconfirmedView says why the result of a run is one host's word, and has the counts of both hosts.
type unconfirmedView struct {
	Why    string // one-end, counts-differ
	Counts []countView
}

// countView is the payload of a direction, as both hosts of a run counted it.
type countView struct {
	Direction           transfer.Direction
	Near, Far           string // hosts
	NearCount, FarCount string // FarCount is "" if the far host has not reported it
}

// unconfirmed returns nil for a result that both hosts count alike, and for one that is not of a fleet.
func (s *Server) unconfirmed(ctx context.Context, id string) (*unconfirmedView, error) {
	if s.cfg.Fleet == nil {
		return nil, nil
	}
	job, err := s.cfg.Fleet.Store.Job(ctx, id)
	if errors.Is(err, store.ErrNotFound) || err == nil && job.Unconfirmed() == "" {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	names, err := s.cfg.Fleet.names(ctx)
	if err != nil {
		return nil, err
	}
	v := &unconfirmedView{Why: job.Unconfirmed()}
	add := func(direction transfer.Direction, near, far sql.NullInt64) {
		if !near.Valid {
			return
		}
		c := countView{Direction: direction, Near: render.Line(nameIn(names, job.Near)),
			Far: render.Line(nameIn(names, job.Other(job.Near))), NearCount: units.Size(near.Int64).String()}
		if far.Valid {
			c.FarCount = units.Size(far.Int64).String()
		}
		v.Counts = append(v.Counts, c)
	}
	add(transfer.Up, job.NearUp, job.FarUp)
	add(transfer.Down, job.NearDown, job.FarDown)
	return v, nil
}
