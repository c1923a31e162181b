// Package runner visits far ends at the times that recheck decides, tests again at once where
// something is suspected, and never tests two at a time. What a test is, where results are
// kept and who is told comes from outside.
package runner

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/change"
	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

// Order asks for one test.
type Order struct {
	Peer       string
	Directions []string // nil: all that are asked for
	Retest     bool
	At         time.Time
	MostBytes  int64        // after which it is cut short; 0: no bound
	Cost       recheck.Cost // what the test is expected to take, by earlier ones
}

// Config says what is visited, and how. Clock and chance may be left out.
type Config struct {
	Peers    []string
	Schedule recheck.Schedule
	Budget   recheck.Budget
	// Once visits each far end once, with the re-tests that come of it.
	Once bool
	// Public says which far ends are for everybody. Of all those one is tested at a time, in
	// turn, recheck.PublicEvery apart in the mean or longer, and none again at once. nil: none is.
	Public func(peer string) bool
	// Turn takes the next test of public far ends, and notes when the one after it may be. Where
	// it is not yet time it answers until when. It is needed with Public alone.
	Turn func(now, next time.Time) (until time.Time, err error)

	// Test carries out one test and keeps its result. With an error there may be a result,
	// of what was measured or could not be kept.
	Test func(context.Context, Order) (*recheck.Result, error)
	// Load rebuilds a path from what is kept.
	Load func(ctx context.Context, peer string) (Past, error)
	// Spent is what all tests took since a time, of all far ends, those of this process too.
	Spent func(ctx context.Context, since time.Time) (recheck.Cost, error)
	// Lock keeps other processes from testing a far end, and from telling of it, until unlock;
	// nil: another one does.
	Lock func(peer string) (unlock func(), err error)
	// Tell is told of each visit, also of one that was not made.
	Tell func(context.Context, recheck.Visit)

	Now   func() time.Time
	Sleep func(context.Context, time.Duration) error
	Draw  func() float64 // exponential variates of mean 1
}

// Past is what is kept of a far end.
type Past struct {
	Path *recheck.Path
	Last time.Time // of the newest scheduled visit; zero: none
	// Untold are visits whose events nobody was told of, since the process that made them ended
	// between keeping and telling. It is only known while the far end is locked.
	Untold []recheck.Visit
}

// busyTries is how often a visit is put off by change.Soon where another process tests the
// far end, before a single visit is given up.
const busyTries = 3

// slice is how long is slept at most before the clock is looked at again: it may be set, and
// a host that was suspended goes on from where it was.
const slice = time.Minute

// far is one far end.
type far struct {
	peer string
	path *recheck.Path
	next time.Time // of the next scheduled visit; zero: none any more
	// again is before when no re-test begins: one that failed is not made again at once.
	again  time.Time
	tries  int // visits put off one after the other
	public bool
	last   time.Time // of the newest scheduled visit, made or not
}

type run struct {
	Config
	fars []*far
}

// Run visits until the context ends, which is its error, or once.
func Run(ctx context.Context, cfg Config) error {
	if cfg.Now == nil {
		cfg.Now = func() time.Time { return time.Now().Round(0) } // the wall clock alone
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
	r.nextPublic(r.Schedule.Quiet.Advance(r.Now(), 0)) // Turn knows when it is
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

// setBack moves what is due with a clock that was set back: one that was a year ahead puts nothing off for a year.
func (r *run) setBack(by time.Duration) {
	for _, f := range r.fars {
		f.again = f.again.Add(-by)
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

// begin loads a far end's past. Who was visited lately is not visited at once because a
// process was started again.
func (r *run) begin(ctx context.Context, f *far) error {
	unlock, err := r.Lock(f.peer)
	if err != nil {
		return err
	}
	past, err := r.Load(ctx, f.peer)
	if err == nil && unlock != nil { // else whoever holds the lock tells
		r.late(ctx, f, past)
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

// late tells of what could not be told when it was found.
func (r *run) late(ctx context.Context, f *far, past Past) {
	for _, v := range past.Untold {
		v.Path = past.Path
		v.Late = true
		r.Tell(context.WithoutCancel(ctx), v)
	}
}

// earliest is who is due first, and which directions are tested again; nil: a scheduled visit.
func (r *run) earliest() (first *far, due time.Time, again []string) {
	now := r.Now()
	for _, f := range r.fars {
		at, directions := f.path.Wants()
		if len(directions) > 0 && (now.Sub(at) > change.Stale-change.Soon || at.Sub(now) > change.Soon) {
			directions = nil // nobody could test again, or the clock was set back: it is forgotten
		}
		if at.Before(f.again) {
			at = f.again
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

// visit makes a test where it may be made, and says when the next one is.
func (r *run) visit(ctx context.Context, f *far, again []string) {
	v := recheck.Visit{Peer: f.peer, At: r.Now(), Retest: again != nil}
	var unlock func()
	defer func() {
		v.Path = f.path
		if v.Next.IsZero() {
			v.Next = f.next
		}
		if ctx.Err() == nil || v.Result != nil { // one that was interrupted is none
			r.Tell(context.WithoutCancel(ctx), v)
		}
		if unlock != nil {
			unlock()
		}
	}()
	f.again = v.At.Add(change.Soon)
	var err error
	switch unlock, err = r.Lock(f.peer); {
	case err != nil:
		v.Err = err
		r.schedule(f, &v)
		return
	case unlock == nil:
		v.Skip = recheck.Busy
		r.putOff(f, &v)
		return
	}
	if !v.Retest {
		r.reload(ctx, f, &v)
	}
	spent, err := r.spent(ctx, v.At)
	if err != nil { // what is not known is not spent
		v.Err = err
		r.schedule(f, &v)
		return
	}
	v.Skip = r.mayNot(f, &v, spent)
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
	order := Order{Peer: f.peer, Directions: again, Retest: v.Retest, At: v.At, MostBytes: r.Budget.Left(spent),
		Cost: f.path.Cost()}
	v.Result, v.Err = r.Test(ctx, order)
	f.tries = 0
	if v.Result != nil {
		v.Events = f.path.Add(*v.Result)
	}
	r.schedule(f, &v)
}

// reload rebuilds a path before a scheduled visit, since other processes may have tested it,
// and results may be gone or imported. Where that fails it stays as it was.
func (r *run) reload(ctx context.Context, f *far, v *recheck.Visit) {
	past, err := r.Load(ctx, f.peer)
	if err != nil {
		v.Err = err
		return
	}
	f.path = past.Path
	r.late(ctx, f, past)
}

// spent is what the day's tests took until now.
func (r *run) spent(ctx context.Context, now time.Time) (recheck.Cost, error) {
	if r.Budget == (recheck.Budget{}) {
		return recheck.Cost{}, nil
	}
	return r.Spent(ctx, r.Schedule.Quiet.Day(now))
}

// mayNot says why a test that is due is not made.
func (r *run) mayNot(f *far, v *recheck.Visit, spent recheck.Cost) recheck.Skip {
	if r.Schedule.Quiet.Quiet(v.At) {
		return recheck.QuietHours
	}
	return r.Budget.Allows(spent, f.path.Cost(), v.Retest)
}

// schedule says when a far end is visited next, after a scheduled visit.
func (r *run) schedule(f *far, v *recheck.Visit) {
	if v.Retest {
		return
	}
	if v.Skip != recheck.Policy { // else it still has to have its turn
		f.last = v.At
	}
	f.next = (time.Time{})
	if r.Once {
		return
	}
	if f.public {
		f.next = v.Next
		if v.Next.IsZero() { // its turn was not asked for
			f.next = r.betweenPublic().Next(v.At, r.Draw())
		}
		r.nextPublic(f.next)
		return
	}
	f.next = r.Schedule.Next(v.At, r.Draw())
	if at := f.path.NotBefore(); f.next.Before(at) && at.Sub(v.At) <= change.Apart { // else the clock was set back
		f.next = r.Schedule.Quiet.Advance(at, 0)
	}
}

// putOff tries again soon what another process keeps from being tested.
func (r *run) putOff(f *far, v *recheck.Visit) {
	f.tries++
	if v.Retest {
		return
	}
	if r.Once && f.tries >= busyTries {
		f.next = time.Time{}
		return
	}
	f.next = r.Schedule.Quiet.Advance(v.At.Add(change.Soon), 0)
}
