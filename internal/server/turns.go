package server

import (
	"context"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// placeInterval is how often a waiting client gets its place, which also shows each end that the other is alive.
const placeInterval = 5 * time.Second

// claim returns the turn of a key holder's session. end ends the session.
func (s *Server) claim(client netip.Addr, end func()) *probe.Turn {
	c := &admission.Claim{Host: admission.Host(client), Rank: admission.KeyHolder, End: end}
	return &probe.Turn{
		Await:         func(ctx context.Context, report func(int) error) error { return s.await(ctx, c, report) },
		Release:       func() { s.turn.Release(c, time.Now()) },
		Extend:        func(d time.Duration) { s.turn.Extend(c, time.Now().Add(d)) },
		ContendedTime: func() time.Duration { return s.turn.ContendedTime(c, time.Now()) },
	}
}

// await returns nil when the turn has come. Until then it reports the client's place, 1 being the next, and ends
// the holder's turn when this client has a right to it.
func (s *Server) await(ctx context.Context, c *admission.Claim, report func(place int) error) error {
	place, moved, err := s.turn.Wait(c, time.Now())
	if err != nil || place == 0 {
		return err
	}
	ticker := time.NewTicker(placeInterval)
	enforce := time.NewTimer(0)
	defer ticker.Stop()
	defer enforce.Stop()
	for reported := 0; ; {
		if place != reported {
			if err := report(place); err != nil {
				s.turn.Release(c, time.Now())
				return err
			}
			reported = place
		}
		select {
		case <-moved:
		case <-ticker.C:
			reported = 0
		case <-enforce.C:
		case <-ctx.Done():
			s.turn.Release(c, time.Now())
			return context.Cause(ctx)
		}
		if next := s.turn.EndExpired(time.Now()); !next.IsZero() {
			enforce.Reset(time.Until(next))
		}
		place = s.turn.Place(c)
		if place == 0 {
			return nil
		}
	}
}

// TryTurn takes the turn of an exclusive server for an unauthenticated client, which cannot wait. ok is false if
// another client has it. declared is the requested duration; 0: none. end must end the test, then release frees
// the turn.
func (s *Server) TryTurn(declared time.Duration, end func()) (release func(), ok bool) {
	if !s.config.Exclusive {
		return func() {}, true
	}
	now := time.Now()
	c := &admission.Claim{Rank: admission.Unauthenticated, Lease: now.Add(admission.Lease(declared)), End: end}
	return func() { s.turn.Release(c, time.Now()) }, s.turn.Take(c, now)
}
