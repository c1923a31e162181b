package runner

import (
	"time"

	"github.com/fullpipe-net/fullpipe/internal/recheck"
)

// betweenPublic is when public far ends are tested, all together: each as often as was asked
// for, and none of them more often than their operators ask.
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

// turn takes the turn of a public far end, or says that it has not come. Next is when the one
// after it comes.
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

// nextPublic puts all visits of public far ends at one time: whose was longest ago is visited.
func (r *run) nextPublic(at time.Time) {
	for _, f := range r.fars {
		if f.public && !f.next.IsZero() {
			f.next = at
		}
	}
}
