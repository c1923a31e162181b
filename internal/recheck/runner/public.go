package runner

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

// betweenPublic returns the schedule that all public far ends share: no more often than the user asks and their
// operators permit.
func (r *run) betweenPublic() recheck.Schedule {
	n := 0
	for _, f := range r.fars {
		if f.public {
			n++
		}
	}
	return recheck.Schedule{Every: max(recheck.PublicEvery, r.Schedule.Every/time.Duration(max(n, 1))),
		Quiet: r.Schedule.Quiet}
}

// turn reserves the turn of a public far end, or reports that it has not come. next is the earliest time of the
// following turn.
func (r *run) turn(v *recheck.Visit) error {
	drawn := r.Draw()
	v.Next = r.betweenPublic().Next(v.At, drawn)
	until, err := r.Turn(v.At, recheck.Schedule{Every: recheck.PublicEvery}.Next(v.At, drawn))
	if err == nil && until.After(v.At) {
		v.Next = r.Schedule.Quiet.Advance(until, 0)
		v.Skip = recheck.Policy
	}
	return err
}

// nextPublic schedules all public far ends for one time. The far end with the oldest visit goes first.
func (r *run) nextPublic(at time.Time) {
	for _, f := range r.fars {
		if f.public && !f.next.IsZero() {
			f.next = at
		}
	}
}
