//go:build linux

package e2e

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// points are where TestCause tries each cause: the first that it fits.
var points = []pathPoint{{10e6, 30 * time.Millisecond}, {15e6, 80 * time.Millisecond}, {18e6, 120 * time.Millisecond},
	{20e6, 10 * time.Millisecond}}

// TestCause makes each cause once on kernel TCP, captured at both ends and in the middle.
// A shared machine disturbs what is measured, so only a wrong verdict that claims high
// confidence fails.
func TestCause(t *testing.T) {
	for _, c := range causes() {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			undisturbed(t, func() error { return c.once(t) })
		})
	}
}

// once makes the cause and answers which verdict on it, if any, is wrong and claims high confidence.
func (c *cause) once(t *testing.T) (wrong error) {
	p := c.point(t)
	s := p.free()
	s.spec.Time = max(2*time.Second, 25*p.rtt)
	c.with(p, &s)
	file := filepath.Join(t.TempDir(), "capture")
	s.captures = &captures{near: file + ".near", far: file + ".far", middle: file + ".middle"}
	result, err := carryOut(t, s)
	var cannot *lab.Failed
	switch {
	case errors.As(err, &cannot) && os.Getenv("CI") == "":
		t.Skip(err)
	case err != nil:
		t.Fatal(err)
	}
	v := live.Judge(result)
	got := goodput(result)
	t.Logf("%v: %.3g Mbit/s, %s %s, %s confidence", p, got/1e6, v.Limiter, v.Subtype, v.Confidence)
	if v.Confidence == verdict.High && v.Limiter != c.limiter && !c.lets(p, got, v.Limiter) {
		wrong = fmt.Errorf("%s with high confidence, shares %v, %v", v.Limiter, v.Shares, v.Evidence)
	}
	for _, file := range []string{s.captures.near, s.captures.far, s.captures.middle} {
		wrong = errors.Join(wrong, c.judgeFrom(t, file, p, result))
	}
	return wrong
}

// judgeFrom does the same with what a capture shows.
func (c *cause) judgeFrom(t *testing.T, file string, p pathPoint, result *transfer.Result) (wrong error) {
	g, d, err := sentFrom(file, result.Sender().Streams[0].Local)
	if err != nil {
		return err
	}
	t.Logf("captured at the %s: %s %s, %s confidence", g.Vantage, g.Limiter, g.Subtype, g.Confidence)
	right := g.Limiter == c.limiter || g.Limiter == verdict.Sender && slices.Contains(g.Candidates, c.limiter) ||
		g.Limiter == verdict.Bottleneck && c.limiter == verdict.LocalQueue
	return unless(g.Confidence != verdict.High || right || c.lets(p, goodput(result), g.Limiter),
		"captured at the %s: %s with high confidence, shares %v, %v; %d bytes unseen", g.Vantage, g.Limiter, g.Shares,
		g.Evidence, d.Unseen)
}

// lets says whether a limiter may be another one than the cause: a link that is full all
// the same, or one that its short queue keeps from being full.
func (c *cause) lets(p pathPoint, bps float64, n verdict.Name) bool {
	full := bps >= 0.85*p.bps
	return full && n == verdict.Bottleneck || !full && c.limiter == verdict.Bottleneck && n == verdict.Congestion
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
