package recheck

import (
	"slices"
	"time"
)

// What is asked for is the mean of the times between visits; none is shorter or longer than
// these multiples of it, as M-Lab asks of unattended ndt7 clients (ndt7-protocol.md: mean 6
// hours, 36 minutes to 15 hours).
const (
	leastGap = 0.1
	mostGap  = 2.5
	// meanScale makes the mean of the bounded gaps 1: it solves 0.1 + c (exp(-0.1/c) - exp(-2.5/c)) = 1.
	meanScale = 1.11361
)

// PublicEvery is the shortest mean time between tests of public ndt7 servers, all of them together: M-Lab asks that of
// unattended programs (ndt7-protocol.md).
const PublicEvery = 6 * time.Hour

// LatestPublic is when the test of a public server that follows one now begins at the latest.
func LatestPublic(now time.Time) time.Time {
	return Schedule{Every: PublicEvery}.Next(now, mostGap)
}

// Schedule says when a path is visited.
type Schedule struct {
	Every time.Duration // in the mean
	Quiet Hours
}

// Next is when the visit after one begins: at exponential times, so that no load that comes
// in a rhythm is always met or always missed. drawn is an exponential variate of mean 1.
// Quiet hours do not count, so nothing crowds at their end.
func (s Schedule) Next(after time.Time, drawn float64) time.Time {
	gap := time.Duration(min(max(drawn*meanScale, leastGap), mostGap) * float64(s.Every))
	return s.Quiet.Advance(after, gap)
}

// Cost is what tests took.
type Cost struct {
	Bytes int64
	Time  time.Duration
}

// Plus is both.
func (c Cost) Plus(o Cost) Cost { return Cost{c.Bytes + o.Bytes, c.Time + o.Time} }

// Budget bounds what all tests of a day take; 0 is no bound.
type Budget Cost

// Skip is why a test that was due is not made.
type Skip string

// The closed list.
const (
	QuietHours  Skip = "quiet-hours"
	BytesBudget Skip = "bytes-budget"
	TimeBudget  Skip = "time-budget"
	Busy        Skip = "busy"   // another process of this user's tests this far end
	Policy      Skip = "policy" // it is public, and the time of the next test of such has not come
)

// reserve is how many further tests a scheduled one leaves the budget for: those that look
// into a suspicion.
const reserve = 7

// Allows says whether a test fits into what is left of a day, "" where it does. cost is what
// a test took before, the largest of late; a scheduled one leaves room for re-tests.
func (b Budget) Allows(spent, cost Cost, retest bool) Skip {
	tests := int64(1 + reserve)
	if retest {
		tests = 1
	}
	switch {
	case b.Bytes > 0 && spent.Bytes+tests*max(cost.Bytes, 1) > b.Bytes:
		return BytesBudget
	case b.Time > 0 && spent.Time+time.Duration(tests)*max(cost.Time, 1) > b.Time:
		return TimeBudget
	}
	return ""
}

// Left is how many bytes a test may move before it is cut short; 0 is any number.
func (b Budget) Left(spent Cost) int64 {
	if b.Bytes == 0 {
		return 0
	}
	return max(b.Bytes-spent.Bytes, 1)
}

// Dearest is the largest of several costs, each figure by itself.
func Dearest(costs []Cost) (most Cost) {
	for _, c := range costs[max(len(costs)-reserve, 0):] {
		most = Cost{max(most.Bytes, c.Bytes), max(most.Time, c.Time)}
	}
	return most
}

// distinct are the names of a list, in its order.
func distinct(names []string) (out []string) {
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
