//go:build linux

package e2e

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/limiter"
)

// points are where TestCause tries each cause: the first that it fits.
var points = []pathPoint{{10e6, 30 * time.Millisecond}, {15e6, 80 * time.Millisecond}, {18e6, 120 * time.Millisecond}, {20e6, 10 * time.Millisecond}}

// TestCause makes each cause once on kernel TCP. A shared machine disturbs what is
// measured, so only a wrong verdict that claims high confidence fails.
func TestCause(t *testing.T) {
	for _, c := range causes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			p := c.point(t)
			s := p.free()
			s.spec.Time = max(2*time.Second, 25*p.rtt)
			c.with(p, &s)
			result, err := carryOut(t, s)
			var cannot *lab.Failed
			switch {
			case errors.As(err, &cannot) && os.Getenv("CI") == "":
				t.Skip(err)
			case err != nil:
				t.Fatal(err)
			}
			v := limiter.Judge(result)
			got := goodput(result)
			t.Logf("%v: %.3g Mbit/s, %s %s, %s confidence", p, got/1e6, v.Limiter, v.Subtype, v.Confidence)
			if v.Confidence == limiter.High && v.Limiter != c.limiter && !c.lets(p, got, v.Limiter) {
				t.Errorf("%s with high confidence, shares %v, %v", v.Limiter, v.Shares, v.Evidence)
			}
		})
	}
}

// lets says whether a limiter may be another one than the cause: a link that is full all
// the same, or one that its short queue keeps from being full.
func (c *cause) lets(p pathPoint, bps float64, n limiter.Name) bool {
	full := bps >= 0.85*p.bps
	return full && n == limiter.Bottleneck || !full && c.limiter == limiter.Bottleneck && n == limiter.Congestion
}

func (c *cause) point(t *testing.T) pathPoint {
	for _, p := range points {
		if c.fits == nil || c.fits(p) {
			return p
		}
	}
	t.Fatal("fits none of the points")
	return pathPoint{}
}
