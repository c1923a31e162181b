package server

import (
	"context"
	"net/netip"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/probe"
)

// reportEvery is how often a waiting client is told its place, so that it knows that the server
// is there, and the server that it is.
const reportEvery = 5 * time.Second

// claim returns the turn of a key holder's session; end ends the session.
func (s *Server) claim(client netip.Addr, end func()) *probe.Turn {
	c := &admission.Claim{Host: admission.Host(client), Rank: admission.KeyHolder, End: end}
	return &probe.Turn{
		Await:   func(ctx context.Context, tell func(int) error) error { return s.await(ctx, c, tell) },
		Release: func() { s.turn.Release(c, time.Now()) },
		Extend:  func(d time.Duration) { s.turn.Extend(c, time.Now().Add(d)) },
		Held:    func() time.Duration { return s.turn.Held(c, time.Now()) },
	}
}

// await returns nil when the turn has come. Until then it tells the client its place, 1 being the
// next, and ends the turn of the holder when this client has a right to it.
func (s *Server) await(ctx context.Context, c *admission.Claim, tell func(place int) error) error {
	place, moved, err := s.turn.Wait(c, time.Now())
	if err != nil || place == 0 {
		return err
	}
	report := time.NewTicker(reportEvery)
	enforce := time.NewTimer(0)
	defer report.Stop()
	defer enforce.Stop()
	for reported := 0; ; {
		if place != reported {
			if err := tell(place); err != nil {
				s.turn.Release(c, time.Now())
				return err
			}
			reported = place
		}
		select {
		case <-moved:
		case <-report.C:
			reported = 0
		case <-enforce.C:
		case <-ctx.Done():
			s.turn.Release(c, time.Now())
			return context.Cause(ctx)
		}
		if next := s.turn.Enforce(time.Now()); !next.IsZero() {
			enforce.Reset(time.Until(next))
		}
		place = s.turn.Place(c)
		if place == 0 {
			return nil
		}
	}
}

// TryTurn takes the turn of an exclusive server for a stranger, who does not wait: ok is false
// while another client has it. declared is the time that the stranger asked for; 0: none. end
// has to end the test, after which release gives the turn back.
func (s *Server) TryTurn(declared time.Duration, end func()) (release func(), ok bool) {
	if !s.config.Exclusive {
		return func() {}, true
	}
	now := time.Now()
	c := &admission.Claim{Rank: admission.Stranger, Lease: now.Add(admission.Lease(declared)), End: end}
	return func() { s.turn.Release(c, time.Now()) }, s.turn.Take(c, now)
}
