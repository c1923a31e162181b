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

// Limits are a Server's limits for clients. Zero means the default.
type Limits struct {
	// Tests limits all concurrent tests, TestsPerAddress those of one IPv4 address or IPv6 /64. A test is one
	// connection. A full server evicts an idle test, or the oldest test of the address with the most tests if
	// that has more than four.
	Tests, TestsPerAddress int
	// BytesPerDay limits the bytes of one address in 24 hours, both directions together.
	BytesPerDay int64
	// IdleTimeout is the time without a byte after which a test is idle. Zero: 3 s.
	IdleTimeout time.Duration
}

func (b Limits) withDefaults() Limits {
	if b.IdleTimeout == 0 {
		b.IdleTimeout = 3 * time.Second
	}
	if b.Tests == 0 {
		b.Tests = 16
	}
	if b.TestsPerAddress == 0 {
		b.TestsPerAddress = 8
	}
	if b.BytesPerDay == 0 {
		b.BytesPerDay = 100 << 30
	}
	return b
}

// Refusal is the reason why a test is refused, and when to try again.
type Refusal struct {
	Why   string
	After time.Duration
}

func (r *Refusal) Error() string { return r.Why }

// Try returns when to try again.
func (r *Refusal) Try() string {
	switch {
	case r.After >= 2*time.Hour:
		return fmt.Sprintf("again in %.0f hours", r.After.Hours())
	case r.After >= 2*time.Minute:
		return fmt.Sprintf("again in %.0f minutes", r.After.Minutes())
	}
	return fmt.Sprintf("again in %.0f seconds", r.After.Seconds())
}

// Status returns the HTTP status.
func (r *Refusal) Status() int {
	if r.After >= time.Minute {
		return http.StatusTooManyRequests
	}
	return http.StatusServiceUnavailable
}

// maxAccounts limits the addresses with stored usage.
const maxAccounts = 1 << 16

// forgettableBytes is the usage below which an address may be forgotten.
const forgettableBytes = 1 << 20

// protectedTests is the number of an address's active tests that other addresses cannot evict: the number of
// connections of package web's page.
const protectedTests = 4

// quotas enforces the limits.
type quotas struct {
	limits Limits
	tests  admission.Table

	mu       sync.Mutex // guards the fields below
	accounts map[netip.Prefix]*usage
}

func newQuotas(b Limits) *quotas {
	b = b.withDefaults()
	return &quotas{limits: b, tests: admission.Table{Limits: admission.Limits{Total: admission.Load{int64(b.Tests)},
		PerHost:          admission.Load{int64(b.TestsPerAddress)},
		ProtectedPerHost: protectedTests}}}
}

// usage is one address's usage.
type usage struct {
	barredUntil time.Time // no tests until then
	since       time.Time // start of its day
	bytes       int64
}

// admit reserves a slot for a test, or returns *Refusal.
func (g *quotas) admit(test *admission.Entry, now time.Time) error {
	if err := g.checkAccount(test.Host, now); err != nil {
		return err
	}
	test.ActiveUntil = now.Add(g.limits.IdleTimeout)
	return refused(g.tests.Admit(test, now))
}

// check returns what admit would return, without a reservation.
func (g *quotas) check(host netip.Prefix, now time.Time) error {
	if err := g.checkAccount(host, now); err != nil {
		return err
	}
	return refused(g.tests.Check(&admission.Entry{Host: host}, now))
}

// refused turns an error of the table into a *Refusal.
func refused(err error) error {
	switch err {
	case nil:
		return nil
	case admission.ErrHostFull:
		return &Refusal{"as many tests run from your address as may at a time", 15 * time.Second}
	}
	return &Refusal{"as many tests run here as may at a time", 15 * time.Second}
}

// checkAccount returns *Refusal if an address may not test now.
func (g *quotas) checkAccount(host netip.Prefix, now time.Time) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account(host, now)
	switch {
	case a == nil:
		return &Refusal{"too many hosts were tested today", time.Hour}
	case now.Before(a.barredUntil):
		return &Refusal{"a client at your address violated the ndt7 protocol", a.barredUntil.Sub(now)}
	case a.bytes >= g.limits.BytesPerDay:
		return &Refusal{"your address has moved the " + units.Size(g.limits.BytesPerDay).String() +
			" that it may in a day", max(a.since.Add(24*time.Hour).Sub(now), time.Minute)}
	}
	return nil
}

// account returns the usage of an address, nil if the table is full. The caller has locked mu.
func (g *quotas) account(host netip.Prefix, now time.Time) *usage {
	a := g.accounts[host]
	if a == nil {
		if len(g.accounts) >= maxAccounts {
			g.forget(now)
		}
		if len(g.accounts) >= maxAccounts {
			return nil
		}
		if g.accounts == nil {
			g.accounts = map[netip.Prefix]*usage{}
		}
		a = &usage{since: now}
		g.accounts[host] = a
	}
	if now.Sub(a.since) >= 24*time.Hour {
		a.since = now
		a.bytes = 0
	}
	return a
}

// forget removes addresses whose day is over or whose usage is low. The caller has locked mu.
func (g *quotas) forget(now time.Time) {
	for host, a := range g.accounts {
		if g.tests.LoadOf(host) == (admission.Load{}) && (a.bytes < forgettableBytes || now.Sub(a.since) >= 24*time.Hour) {
			delete(g.accounts, host)
		}
	}
}

// barTime is how long an address gets no test after a protocol violation.
const barTime = 10 * time.Second

// bar refuses an address's tests for barTime.
func (g *quotas) bar(host netip.Prefix, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if a := g.account(host, now); a != nil {
		a.barredUntil = now.Add(barTime)
	}
}

// addBytes adds a test's bytes, keeps it active, and reports whether more are allowed.
func (g *quotas) addBytes(test *admission.Entry, bytes int64, now time.Time) bool {
	g.tests.Extend(test, now.Add(g.limits.IdleTimeout))
	g.mu.Lock()
	defer g.mu.Unlock()
	a := g.account(test.Host, now)
	if a == nil {
		return true
	}
	a.bytes += bytes
	return a.bytes < g.limits.BytesPerDay
}
