package web

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// unconfirmedView says why the result of a run is one host's word, and has the counts of both hosts.
type unconfirmedView struct {
	Why    string // one-end, counts-differ, times-differ, too-short
	Counts []countView
}

// countView is the payload of a direction, as both hosts of a run counted it.
type countView struct {
	Direction           transfer.Direction
	Near, Far           string // hosts
	NearCount, FarCount string // with the rate where that is in question; FarCount "": not reported
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
	rates := v.Why == store.TimesDiffer || v.Why == store.TooShort
	add := func(direction transfer.Direction, near, far sql.NullInt64, bps sql.NullFloat64, span sql.NullInt64) {
		if !near.Valid {
			return
		}
		c := countView{Direction: direction, Near: render.Line(nameIn(names, job.Near)),
			Far: render.Line(nameIn(names, job.Other(job.Near))), NearCount: units.Size(near.Int64).String()}
		if far.Valid {
			c.FarCount = units.Size(far.Int64).String()
		}
		if rates && far.Valid && bps.Valid && span.Valid {
			c.NearCount += " at " + units.Rate(bps.Float64).String()
			c.FarCount += " at " + units.Rate(8*float64(far.Int64)/time.Duration(span.Int64).Seconds()).String()
		}
		v.Counts = append(v.Counts, c)
	}
	add(transfer.Up, job.NearUp, job.FarUp, job.NearUpBps, job.FarUpNs)
	add(transfer.Down, job.NearDown, job.FarDown, job.NearDownBps, job.FarDownNs)
	return v, nil
}

// endsOf returns a function that names a path by a run of it and its far end: on a hub by both hosts, the one that
// connected first.
func (s *Server) endsOf(ctx context.Context) (func(run, far string) string, error) {
	if s.cfg.Fleet == nil {
		return func(_, far string) string { return far }, nil
	}
	names, err := s.cfg.Fleet.names(ctx)
	if err != nil {
		return nil, err
	}
	return func(run, far string) string {
		job, err := s.cfg.Fleet.Store.Job(ctx, run)
		if err != nil || job.Near == "" {
			return far // not of the fleet, or its job is older than the hub keeps it
		}
		return render.Line(nameIn(names, job.Near) + " → " + nameIn(names, job.Other(job.Near)))
	}, nil
}

// newestOf returns the newest run of a path.
func newestOf(p *record.KeptPath) (id string) {
	var at time.Time
	for _, d := range p.Directions {
		if n := len(d.Results); n > 0 && !d.Results[n-1].StartedAt.Before(at) {
			at = d.Results[n-1].StartedAt
			id = d.Results[n-1].ID
		}
	}
	return id
}
