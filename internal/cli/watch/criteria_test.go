package watch

import (
	"slices"
	"strings"
	"testing"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// TestCriteria_WaitsFor: a wait of most of the time is refused, and one that may be.
func TestCriteria_WaitsFor(t *testing.T) {
	d := record.WatchedDirection{Verdict: verdict.Verdict{Limiter: verdict.Application}, Waits: []record.Wait{
		{Kind: "disk", Object: "/dev/sda", Share: 0.4}, {Kind: "disk", Object: "/dev/sdb", Share: 0.15},
		{Kind: "unknown", Share: 0.3}, {Kind: "cpu", Share: 0.1}, {Kind: "lock", Share: 0.05}}}
	for on, passed := range map[string][]bool{
		"waits:disk":            {false},
		"waits:cpu":             {true},
		"waits:lock":            {true},
		"waits:unknown":         {true},
		"application":           {false},
		"congestion":            {true},
		"congestion,waits:disk": {true, false},
	} {
		c := criteria{limiters: strings.Split(on, ",")}
		if err := c.check(); err != nil {
			t.Fatal(on, err)
		}
		var got []bool
		for _, one := range c.judge(&d) {
			got = append(got, one.Passed)
		}
		if !slices.Equal(got, passed) {
			t.Errorf("%s: %v, want %v", on, got, passed)
		}
	}
	none := criteria{limiters: []string{"waits:disk"}}
	for limiter, passed := range map[verdict.Name]bool{verdict.Application: false, verdict.Bottleneck: true} {
		unknown := record.WatchedDirection{Verdict: verdict.Verdict{Limiter: limiter}}
		if err := none.check(); err != nil || none.judge(&unknown)[0].Passed != passed {
			t.Errorf("%s without waits, %v: passed is not %v", limiter, err, passed)
		}
		none = criteria{limiters: []string{"waits:disk"}}
	}
	// 35 % of locks and 30 % that are not known may be most of the time.
	d.Waits = []record.Wait{{Kind: "lock", Share: 0.35}, {Kind: "unknown", Share: 0.3}}
	c := criteria{limiters: []string{"waits:lock"}}
	if err := c.check(); err != nil || c.judge(&d)[0].Passed {
		t.Errorf("%v: a lock may be most of the time", err)
	}
}

func TestCriteria_UnknownWords(t *testing.T) {
	for _, on := range []string{"waits:", "waits:moon", "moon", "congestion/moon"} {
		if (&criteria{limiters: []string{on}}).check() == nil {
			t.Errorf("%q is accepted", on)
		}
	}
}
