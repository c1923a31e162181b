package tune

import (
	"fmt"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
)

// budget is the time and the payload that one direction may spend.
type budget struct {
	stated        search.Budget // by the user; 0: not stated
	search.Budget               // 0: not known yet
	spent         search.Budget
	// extended reports that the budget was doubled for a decision that was open.
	extended bool
}

// left returns the unspent part of a share of the budget, at least 0.
func (b *budget) left(share float64) search.Budget {
	return search.Budget{Time: max(0, time.Duration(share*float64(b.Time))-b.spent.Time),
		Bytes: max(0, int64(share*float64(b.Bytes))-b.spent.Bytes)}
}

// remainingBudget returns a transfer's length, or as much of it as leaves half of a stated budget. Without one the
// budget follows from the rate, which is not known yet.
func (b *budget) remainingBudget(length time.Duration) time.Duration {
	if b.stated.Time == 0 {
		return length
	}
	return min(length, b.stated.Time/2-b.spent.Time)
}

// longestBudget is the largest budget that is doubled without being asked for.
const longestBudget = 150 * time.Second

// double doubles a budget that nobody stated, once, for a decision that is still open.
func (b *budget) double() bool {
	if b.stated.Time > 0 || b.stated.Bytes > 0 || b.extended || b.Time > longestBudget {
		return false
	}
	b.extended = true
	b.Time *= 2
	b.Bytes *= 2
	return true
}

// maxProposed is the longest budget that is proposed.
const maxProposed = 20 * time.Minute

// propose returns the budget to propose when needs, the further time, is only estimated. It is the time spent plus
// needs, at least twice the present budget, and 0 above maxProposed.
func (b *budget) propose(needs time.Duration) time.Duration {
	return proposed(max(b.spent.Time+needs, 2*b.Time))
}

// proposePlanned returns the budget to propose when needs was computed from the scatter of the runs. It is larger than
// a stated budget.
func (b *budget) proposePlanned(needs time.Duration) time.Duration {
	return proposed(max(b.spent.Time+needs, b.stated.Time+time.Second))
}

// proposed rounds a budget up; it returns 0 for more than maxProposed.
func proposed(budget time.Duration) time.Duration {
	step := 10 * time.Second
	if budget > 2*time.Minute {
		step = time.Minute
	}
	budget = (budget + step - 1) / step * step
	if budget > maxProposed {
		return 0
	}
	return budget
}

// Shortest formats a time as --budget takes it, without parts of zero.
func Shortest(d time.Duration) string {
	if d%time.Minute == 0 {
		return fmt.Sprintf("%dm", d/time.Minute)
	}
	return fmt.Sprintf("%ds", d/time.Second)
}
