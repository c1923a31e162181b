package recheck

import (
	"slices"
	"time"
)

// Bounds of the interval between visits, as multiples of the mean interval. They are M-Lab's for unattended ndt7
// clients (ndt7-protocol.md: mean 6 hours, 36 minutes to 15 hours).
const (
	leastGap = 0.1
	mostGap  = 2.5
	// meanScale makes the mean of the bounded gaps 1: it solves 0.1 + c (exp(-0.1/c) - exp(-2.5/c)) = 1.
	meanScale = 1.11361
)

// PublicEvery is the minimum mean interval between tests of public ndt7 servers, all of them together: M-Lab's rule for
// unattended clients (ndt7-protocol.md).
const PublicEvery = 6 * time.Hour

// LatestPublic returns the latest time of the next test of a public server after one now.
func LatestPublic(now time.Time) time.Time {
	return Schedule{Every: PublicEvery}.Next(now, mostGap)
}

// Schedule sets the times of visits.
type Schedule struct {
	Every time.Duration // mean interval
	Quiet Hours
}

// Next returns the time of the visit that follows one. Intervals are exponential, so that visits do not synchronize
// with periodic load. drawn is an exponential variate of mean 1. The interval excludes quiet hours, so that visits do
// not accumulate at their end.
func (s Schedule) Next(after time.Time, drawn float64) time.Time {
	gap := time.Duration(min(max(drawn*meanScale, leastGap), mostGap) * float64(s.Every))
	return s.Quiet.Advance(after, gap)
}

// Cost is the payload and the duration of tests.
type Cost struct {
	Bytes int64
	Time  time.Duration
}

// Plus returns the sum.
func (c Cost) Plus(o Cost) Cost { return Cost{c.Bytes + o.Bytes, c.Time + o.Time} }

// Budget is the maximum cost of all tests of a day; 0 is unlimited.
type Budget Cost

// Skip is the reason why a due test is skipped.
type Skip string

// The reasons, a closed list.
const (
	QuietHours  Skip = "quiet-hours"
	BytesBudget Skip = "bytes-budget"
	TimeBudget  Skip = "time-budget"
	Busy        Skip = "busy"   // another process of this user tests this far end
	Policy      Skip = "policy" // the interval between tests of public servers has not passed
)

// reserve is the number of re-tests for which a scheduled test leaves budget.
const reserve = 7

// Allows returns "" if the remaining budget of a day allows a test, else the reason. cost is the largest cost of recent
// tests. A scheduled test must leave budget for its re-tests.
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

// Left returns the maximum bytes of a test; 0 is unlimited.
func (b Budget) Left(spent Cost) int64 {
	if b.Bytes == 0 {
		return 0
	}
	return max(b.Bytes-spent.Bytes, 1)
}

// Dearest returns the maximum of several costs, bytes and time separately.
func Dearest(costs []Cost) (most Cost) {
	for _, c := range costs[max(len(costs)-reserve, 0):] {
		most = Cost{max(most.Bytes, c.Bytes), max(most.Time, c.Time)}
	}
	return most
}

// distinct returns the names of a list without duplicates, in its order.
func distinct(names []string) (out []string) {
	for _, name := range names {
		if !slices.Contains(out, name) {
			out = append(out, name)
		}
	}
	return out
}
