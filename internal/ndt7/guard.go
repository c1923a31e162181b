package ndt7

import (
	"fmt"
	"net/http"
	"net/netip"
	"sync"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/admission"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// Bounds say what clients may take of a Server. Each zero value is the usual.
type Bounds struct {
	// Tests run at a time, and of one address (an IPv4 address, an IPv6 /64) OfOne; a test is
	// one connection. Where all run, a test that moves nothing makes room for another one, and
	// so does the oldest one of the address that has most and more than four.
	Tests, OfOne int
	// BytesADay is what one address may move in 24 hours, both directions together.
	BytesADay int64
	// IdleTimeout is the time without a byte after which a test counts as idle. Zero: 3 s.
	IdleTimeout time.Duration
}

func (b Bounds) orUsual() Bounds {
	if b.IdleTimeout == 0 {
		b.IdleTimeout = 3 * time.Second
	}
	if b.Tests == 0 {
		b.Tests = 16
	}
	if b.OfOne == 0 {
		b.OfOne = 8
	}
	if b.BytesADay == 0 {
		b.BytesADay = 100 << 30
	}
	return b
}

// Refusal is why a test is not carried out, and when to try again.
type Refusal struct {
	Why   string
	After time.Duration
}

func (r *Refusal) Error() string { return r.Why }

// Try says when to try again.
func (r *Refusal) Try() string {
	switch {
	case r.After >= 2*time.Hour:
		return fmt.Sprintf("again in %.0f hours", r.After.Hours())
	case r.After >= 2*time.Minute:
		return fmt.Sprintf("again in %.0f minutes", r.After.Minutes())
	}
	return fmt.Sprintf("again in %.0f seconds", r.After.Seconds())
}

// Status is HTTP's for it.
func (r *Refusal) Status() int {
	if r.After >= time.Minute {
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

// mostKnown is of how many addresses what they took is kept.
const mostKnown = 1 << 16

// little is what an address may have taken to be forgotten where room is needed.
const little = 1 << 20

// keptTests is how many active tests of one address do not make room for another one's: as
// many connections as the page of package web opens.
const keptTests = 4

// guard holds clients to the bounds.
type guard struct {
	bounds Bounds
	tests  admission.Table

	mu    sync.Mutex // guards what follows
	known map[netip.Prefix]*account
}

func newGuard(b Bounds) *guard {
	b = b.orUsual()
	return &guard{bounds: b, tests: admission.Table{Limits: admission.Limits{Total: admission.Load{int64(b.Tests)},
		PerHost: admission.Load{int64(b.OfOne)}, Kept: keptTests}}}
}

// account is what one address took.
type account struct {
	barred time.Time // until when it has no test
	since  time.Time // when its day began
	bytes  int64
}

// admit gives a test a place, or returns *Refusal.
func (g *guard) admit(test *admission.Entry, now time.Time) error {
	if err := g.allows(test.Host, now); err != nil {
		return err
	}
	test.ActiveUntil = now.Add(g.bounds.IdleTimeout)
	return refused(g.tests.Admit(test, now))
}

// may returns what admit would, and gives no place.
func (g *guard) may(who netip.Prefix, now time.Time) error {
	if err := g.allows(who, now); err != nil {
		return err
	}
	return refused(g.tests.Check(&admission.Entry{Host: who}, now))
}

// refused returns what the client is told where there is no place.
func refused(err error) error {
	switch err {
	case nil:
		return nil
	case admission.ErrHostFull:
		return &Refusal{"as many tests run from your address as may at a time", 15 * time.Second}
	}
	return &Refusal{"as many tests run here as may at a time", 15 * time.Second}
}

// allows returns *Refusal where an address may not test today, or not yet.
func (g *guard) allows(who netip.Prefix, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account(who, now)
	switch {
	case a == nil:
		return &Refusal{"too many hosts were tested with today", time.Hour}
	case now.Before(a.barred):
		return &Refusal{"a client at your address did not keep to ndt7", a.barred.Sub(now)}
	case a.bytes >= g.bounds.BytesADay:
		return &Refusal{"your address has moved the " + units.Size(g.bounds.BytesADay).String() +
			" that it may in a day", max(a.since.Add(24*time.Hour).Sub(now), time.Minute)}
	}
	return nil
}

// account finds or opens one, nil where there is no room. The lock is held.
func (g *guard) account(who netip.Prefix, now time.Time) *account {
	a := g.known[who]
	if a == nil {
		if len(g.known) >= mostKnown {
			g.forget(now)
		}
		if len(g.known) >= mostKnown {
			return nil
		}
		if g.known == nil {
			g.known = map[netip.Prefix]*account{}
		}
		a = &account{since: now}
		g.known[who] = a
	}
	if now.Sub(a.since) >= 24*time.Hour {
		a.since = now
		a.bytes = 0
	}
	return a
}

// forget makes room: of those whose day is over, or who took little. The lock is held.
func (g *guard) forget(now time.Time) {
	for who, a := range g.known {
		if g.tests.Of(who) == (admission.Load{}) && (a.bytes < little || now.Sub(a.since) >= 24*time.Hour) {
			delete(g.known, who)
		}
	}
}

// barTime is for how long an address has no test after a client there did not keep to the protocol.
const barTime = 10 * time.Second

// bar keeps an address out for a while.
func (g *guard) bar(who netip.Prefix, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.account(who, now); a != nil {
		a.barred = now.Add(barTime)
	}
}

// spend books bytes that a test moved, which keep it active, and says whether there may be more.
func (g *guard) spend(test *admission.Entry, bytes int64, now time.Time) bool {
	g.tests.Extend(test, now.Add(g.bounds.IdleTimeout))
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account(test.Host, now)
	if a == nil {
		return true
	}
	a.bytes += bytes
	return a.bytes < g.bounds.BytesADay
}
