package tune

import (
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/search"
)

// A budget is doubled once, unless it was stated or is long already.
func TestBudget_Double(t *testing.T) {
	half := search.Budget{Time: 30 * time.Second, Bytes: 1e6}
	for name, c := range map[string]struct {
		b    budget
		want bool
	}{
		"by the rule":      {budget{Budget: half}, true},
		"time was stated":  {budget{Budget: half, stated: search.Budget{Time: half.Time}}, false},
		"bytes were":       {budget{Budget: half, stated: search.Budget{Bytes: half.Bytes}}, false},
		"was doubled":      {budget{Budget: half, extended: true}, false},
		"is long already":  {budget{Budget: search.Budget{Time: longestBudget + 1, Bytes: 1e6}}, false},
		"is just not long": {budget{Budget: search.Budget{Time: longestBudget, Bytes: 1e6}}, true},
	} {
		before := c.b.Budget
		got := c.b.double()
		doubled := c.b.Time == 2*before.Time && c.b.Bytes == 2*before.Bytes
		if got != c.want || doubled != c.want || c.b.double() {
			t.Errorf("%s: %v, %+v", name, got, c.b)
		}
	}
}

func TestBudget_Left(t *testing.T) {
	b := budget{Budget: search.Budget{Time: time.Minute, Bytes: 1000},
		spent: search.Budget{Time: 30 * time.Second, Bytes: 700}}
	for share, want := range map[float64]search.Budget{
		1: {Time: 30 * time.Second, Bytes: 300}, 0.75: {Time: 15 * time.Second, Bytes: 50}, 0.5: {}, 0.1: {}} {
		if got := b.left(share); got != want {
			t.Errorf("%v: %+v", share, got)
		}
	}
}

// TestBudget_Propose checks that a proposal is at least twice the budget, in whole steps, and at most maxProposed.
func TestBudget_Propose(t *testing.T) {
	b := budget{Budget: search.Budget{Time: 30 * time.Second}, spent: search.Budget{Time: 20 * time.Second}}
	for needs, want := range map[time.Duration]time.Duration{0: time.Minute, 41 * time.Second: 70 * time.Second,
		101 * time.Second: 3 * time.Minute, maxProposed - 20*time.Second: maxProposed, maxProposed: 0} {
		if got := b.propose(needs); got != want {
			t.Errorf("%v: %v, want %v", needs, got, want)
		}
	}
}
