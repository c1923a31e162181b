package diagnose

import (
	"math"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/flow"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// span is the time of a connection that both captures hold, nanoseconds since its first
// segment in each of them.
type span struct {
	near, far [2]int64
	part      bool // either capture contains more than that
}

// spanOf finds it by the relation of the two clocks.
func (a *alignment) spanOf(near, far *flow.Connection) span {
	ahead := float64(near.Started-far.Started) + a.offset
	toNear := func(at int64) int64 { return int64((float64(at) - ahead) / (1 + a.drift)) }
	toFar := func(at int64) int64 { return int64(float64(at)*(1+a.drift) + ahead) }
	s := span{near: [2]int64{max(toNear(0), 0), min(toNear(far.Ended), near.Ended)}}
	s.far = [2]int64{toFar(s.near[0]), toFar(s.near[1])}
	// The last acknowledgements are at the one tap when the other has them already.
	const little = 50 // a fiftieth of the time
	slack := int64(2*a.least) + max(near.Ended, far.Ended)/little
	s.part = s.near[0] > slack || s.near[1] < near.Ended-slack || s.far[0] > slack || s.far[1] < far.Ended-slack
	return s
}

// repeats are what a tap counted of a direction's repetitions, bytes.
type repeats struct{ again, replaced, spurious int64 }

// repeatsIn counts them between two times. Figures known only of the whole are taken in the proportion of the
// retransmissions in that time.
func repeatsIn(d *flow.Direction, within [2]int64) repeats {
	var segments, most, bytes float64
	for i := range d.Slices {
		s := &d.Slices[i]
		share := 0.0
		if took := min(within[1], s.End) - max(within[0], s.Start); took > 0 {
			share = float64(took) / float64(s.End-s.Start)
		}
		most += float64(s.Retransmitted)
		segments += share * float64(s.Retransmitted)
		bytes += share * float64(s.Repeated)
	}
	all := repeatsOf(d)
	if most == 0 {
		return all
	}
	of := func(n int64) int64 { return int64(float64(n) * segments / most) }
	return repeats{int64(bytes), of(all.replaced), of(all.spurious)}
}

func repeatsOf(d *flow.Direction) repeats {
	return repeats{d.Repeated, d.Replaced, d.Spurious * int64(max(d.MSS, 1))}
}

// noCommon returns the note of two captures without a common connection.
func noCommon(near []judgement, far []*flow.Connection) verdict.Note {
	var first []*flow.Connection
	for _, j := range near {
		first = append(first, j.connection)
	}
	return verdict.Note{Code: verdict.NoCommonConnection,
		Values: verdict.Values{"near": float64(len(first)), "far": float64(len(far))},
		Words:  slices.Concat(timesOf(first), timesOf(far))}
}

// timesOf returns the begin of the first connection and the end of the last one.
func timesOf(all []*flow.Connection) []string {
	const form = "2006-01-02 15:04:05"
	from := int64(math.MaxInt64)
	to := int64(0)
	for _, c := range all {
		from = min(from, c.Started)
		to = max(to, c.Started+c.Ended)
	}
	return []string{time.Unix(0, from).UTC().Format(form), time.Unix(0, to).UTC().Format(form)}
}
