// Package runner visits far ends at the times that recheck decides, and retests at once when a change is suspected.
// It never runs two tests at a time. The caller provides the tests, the history and the reports.
package runner

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

// Order requests one test.
type Order struct {
	Peer       string
	Directions []string // nil: all configured directions
	Retest     bool
	At         time.Time
	MaxBytes   int64        // the test stops after these bytes; 0: no limit
	Cost       recheck.Cost // expected cost, from earlier tests
}

// Config lists the far ends to visit and the callbacks. Now, Sleep and Draw are optional.
type Config struct {
	Peers    []string
	Schedule recheck.Schedule
	Budget   recheck.Budget
	// Once visits each far end once and makes the retests that follow.
	Once bool
	// Public reports whether a far end is public. One public far end is tested at a time, in turn, at a mean interval
	// of recheck.PublicEvery or longer, without retests. nil: none is public.
	Public func(peer string) bool
	// Turn reserves the next test of public far ends and records the earliest time of the one after it. When it is too
	// early, it returns the time to wait for. Only Public needs it.
	Turn func(now, next time.Time) (until time.Time, err error)

	// Test runs one test and stores its result. It may return a partial or unsaved result with an error.
	Test func(context.Context, Order) (*recheck.Result, error)
	// Load rebuilds a path from the history.
	Load func(ctx context.Context, peer string) (Past, error)
	// Spent returns the cost of all tests of all far ends since a time, other processes included.
	Spent func(ctx context.Context, since time.Time) (recheck.Cost, error)
	// Lock keeps other processes from testing a far end and reporting its events until unlock. A nil unlock means that
	// another process has the lock.
	Lock func(peer string) (unlock func(), err error)
	// Report receives each visit, skipped ones included.
	Report func(context.Context, recheck.Visit)

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Draw  func() float64 // returns exponential variates of mean 1
}

// Past is the stored state of a far end.
type Past struct {
	Path *recheck.Detector
	Last time.Time // newest scheduled visit; zero: none
	// Unreported lists visits whose events were stored but not reported, because their process ended in between. It is
	// valid only while the far end is locked.
	Unreported []recheck.Visit
}

// maxDelays is the number of delays by change.Soon after which a run with Once drops a visit. A visit is delayed while
// another process tests the far end.
const maxDelays = 3

// slice is the longest sleep between two reads of the clock, which may be set or jump after a suspend.
const slice = time.Minute

// far is the state of one far end.
type far struct {
	peer string
	path *recheck.Detector
	next time.Time // next scheduled visit; zero: none left
	// retestAfter is the earliest time of a retest. It delays the repetition of a failed one.
	retestAfter time.Time
	delays      int // of the same visit, because another process tested the far end
	public      bool
	last        time.Time // newest scheduled visit, made or skipped
}

type run struct {
	Config
	fars []*far
}

// Run visits far ends until the context ends and returns its error. With Once it returns after one visit each.
// Flow:
//  1. begin loads each far end's stored path and reports pending events.
//  2. earliest selects the far end that is due first, for a visit or a retest.
//  3. visit locks the far end, checks hours and budget, runs the test and reports the path's events.
//  4. schedule or delay sets the next visit.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return time.Now().Round(0) } // wall clock only
	}
	if cfg.Sleep == nil {
		cfg.Sleep = sleep
	}
	if cfg.Draw == nil {
		cfg.Draw = rand.ExpFloat64
	}
	r := &run{Config: cfg}
	for _, peer := range cfg.Peers {
		f := &far{peer: peer, public: cfg.Public != nil && cfg.Public(peer)}
		if err := r.begin(ctx, f); err != nil {
			return err
		}
		r.fars = append(r.fars, f)
	}
	r.nextPublic(r.Schedule.Quiet.Advance(r.Now(), 0)) // Turn may delay it
	for {
		f, due, again := r.earliest()
		if f == nil {
			return nil
		}
		if now := r.Now(); now.Before(due) {
			if err := r.Sleep(ctx, min(due.Sub(now), slice)); err != nil {
				return err
			}
			if back := now.Sub(r.Now()); back > 0 {
				r.setBack(back)
			}
			continue
		}
		r.visit(ctx, f, again)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
}

// setBack moves due times along with a clock that was set back. Otherwise a clock that was a year ahead would delay
// visits by a year.
func (r *run) setBack(by time.Duration) {
	for _, f := range r.fars {
		f.retestAfter = f.retestAfter.Add(-by)
		if !f.next.IsZero() {
			f.next = r.Schedule.Quiet.Advance(f.next.Add(-by), 0)
		}
	}
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// begin loads a far end's history. A restart does not repeat a recent visit.
func (r *run) begin(ctx context.Context, f *far) error {
	unlock, err := r.Lock(f.peer)
	if err != nil {
		return err
	}
	past, err := r.Load(ctx, f.peer)
	if err == nil && unlock != nil { // otherwise the process with the lock reports them
		r.reportPending(ctx, f, past)
	}
	if unlock != nil {
		unlock()
	}
	if err != nil {
		return err
	}
	now := r.Now()
	last := past.Last
	f.path = past.Path
	f.next = now
	f.last = last
	if r.Once {
		return nil
	}
	if !last.IsZero() && !last.After(now) {
		f.next = r.Schedule.Next(last, r.Draw())
	}
	if f.next.Before(now) {
		f.next = now
	}
	f.next = r.Schedule.Quiet.Advance(f.next, 0)
	return nil
}

// reportPending reports events that an earlier process found but did not report.
func (r *run) reportPending(ctx context.Context, f *far, past Past) {
	for _, v := range past.Unreported {
		v.Path = past.Path
		v.Late = true
		r.Report(context.WithoutCancel(ctx), v)
	}
}

// earliest returns the far end that is due first and the directions to retest. A nil list means a scheduled visit.
func (r *run) earliest() (first *far, due time.Time, again []string) {
	now := r.Now()
	for _, f := range r.fars {
		at, directions := f.path.Wants()
		if len(directions) > 0 && (now.Sub(at) > changepoint.Stale-changepoint.Soon || at.Sub(now) > changepoint.Soon) {
			directions = nil // no retest was possible, or the clock was set back: drop the suspicion
		}
		if at.Before(f.retestAfter) {
			at = f.retestAfter
		}
		if len(directions) == 0 || !f.next.IsZero() && !at.Before(f.next) {
			at = f.next
			directions = nil
		}
		if at.IsZero() {
			continue
		}
		if first == nil || at.Before(due) || at.Equal(due) && f.last.Before(first.last) {
			first = f
			due = at
			again = directions
		}
	}
	return first, due, again
}

// visit runs a test if it is allowed, and schedules the next one.
func (r *run) visit(ctx context.Context, f *far, again []string) {
	v := recheck.Visit{Peer: f.peer, At: r.Now(), Retest: again != nil}
	unlock, err := r.Lock(f.peer)
	defer func() {
		v.Path = f.path
		if v.Next.IsZero() {
			v.Next = f.next
		}
		if ctx.Err() == nil || v.Result != nil { // an interrupted visit without a result does not count
			r.Report(context.WithoutCancel(ctx), v)
		}
		if unlock != nil {
			unlock()
		}
	}()
	f.retestAfter = v.At.Add(changepoint.Soon)
	switch {
	case err != nil:
		v.Err = err
		r.schedule(f, &v)
		return
	case unlock == nil:
		v.Skip = recheck.Busy
		r.delay(f, &v)
		return
	}
	if !v.Retest {
		r.reload(ctx, f, &v)
	}
	spent, err := r.spent(ctx, v.At)
	if err != nil { // no test without a known cost
		v.Err = err
		r.schedule(f, &v)
		return
	}
	v.Skip = r.skipReason(f, &v, spent)
	if v.Skip == "" && f.public {
		if err := r.turn(&v); err != nil {
			v.Err = err
			r.schedule(f, &v)
			return
		}
	}
	if v.Skip != "" {
		r.schedule(f, &v)
		return
	}
	order := Order{Peer: f.peer, Directions: again, Retest: v.Retest, At: v.At, MaxBytes: r.Budget.Left(spent),
		Cost: f.path.Cost()}
	v.Result, v.Err = r.Test(ctx, order)
	f.delays = 0
	if v.Result != nil {
		v.Events = f.path.Add(*v.Result)
	}
	r.schedule(f, &v)
}

// reload rebuilds a path before a scheduled visit, because other processes may have tested it or results may have
// been removed or imported. On an error the path stays unchanged.
func (r *run) reload(ctx context.Context, f *far, v *recheck.Visit) {
	past, err := r.Load(ctx, f.peer)
	if err != nil {
		v.Err = err
		return
	}
	f.path = past.Path
	r.reportPending(ctx, f, past)
}

// spent returns the cost of today's tests so far.
func (r *run) spent(ctx context.Context, now time.Time) (recheck.Cost, error) {
	if r.Budget == (recheck.Budget{}) {
		return recheck.Cost{}, nil
	}
	return r.Spent(ctx, r.Schedule.Quiet.Day(now))
}

// skipReason returns why a due test is skipped, "" if it is not.
func (r *run) skipReason(f *far, v *recheck.Visit, spent recheck.Cost) recheck.Skip {
	if r.Schedule.Quiet.Quiet(v.At) {
		return recheck.QuietHours
	}
	return r.Budget.Allows(spent, f.path.Cost(), v.Retest)
}

// schedule sets the next visit of a far end after a scheduled visit.
func (r *run) schedule(f *far, v *recheck.Visit) {
	if v.Retest {
		return
	}
	if v.Skip != recheck.Policy { // otherwise its turn is still to come
		f.last = v.At
	}
	f.next = (time.Time{})
	if r.Once {
		return
	}
	if f.public {
		f.next = v.Next
		if v.Next.IsZero() { // Turn was not called
			f.next = r.betweenPublic().Next(v.At, r.Draw())
		}
		r.nextPublic(f.next)
		return
	}
	f.next = r.Schedule.Next(v.At, r.Draw())
	if at := f.path.NotBefore(); f.next.Before(at) &&
		at.Sub(v.At) <= changepoint.Apart { // otherwise the clock was set back
		f.next = r.Schedule.Quiet.Advance(at, 0)
	}
}

// delay retries soon after another process blocked a test.
func (r *run) delay(f *far, v *recheck.Visit) {
	f.delays++
	if v.Retest {
		return
	}
	if r.Once && f.delays >= maxDelays {
		f.next = time.Time{}
		return
	}
	f.next = r.Schedule.Quiet.Advance(v.At.Add(changepoint.Soon), 0)
}
