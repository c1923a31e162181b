//go:build linux

package harness

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// Verify applies the cause and returns an error for each wrong verdict with high confidence: the sender's, and
// those of the captures at both ends and in the middle.
func (c *Cause) Verify(t *testing.T) (wrong error) {
	p := c.point(t)
	s := p.UnlimitedTransfer()
	s.Spec.Time = max(2*time.Second, 25*p.RTT)
	c.With(p, &s)
	file := filepath.Join(t.TempDir(), "capture")
	s.Captures = &Captures{Near: file + ".near", Far: file + ".far", Middle: file + ".middle"}
	result, err := RunTransfer(t, s)
	if err != nil {
		t.Fatal(err)
	}
	v := live.Judge(result)
	got := Goodput(result)
	t.Logf("%v: %.3g Mbit/s, %s %s, %s confidence", p, got/1e6, v.Limiter, v.Subtype, v.Confidence)
	if v.Confidence == verdict.High && v.Limiter != c.Limiter && !c.allows(p, got, v.Limiter) {
		wrong = fmt.Errorf("%s with high confidence, shares %v, %v", v.Limiter, v.Shares, v.Evidence)
	}
	for _, file := range []string{s.Captures.Near, s.Captures.Far, s.Captures.Middle} {
		wrong = errors.Join(wrong, c.verifyCapture(t, file, p, result))
	}
	return wrong
}

// verifyCapture returns an error if a capture yields a wrong verdict with high confidence.
func (c *Cause) verifyCapture(t *testing.T, file string, p PathPoint, result *transfer.Result) (wrong error) {
	g, d, err := DiagnoseSender(file, result.Sender().Streams[0].Local)
	if err != nil {
		return err
	}
	t.Logf("captured at the %s: %s %s, %s confidence", g.Vantage, g.Limiter, g.Subtype, g.Confidence)
	right := g.Limiter == c.Limiter || g.Limiter == verdict.Sender && slices.Contains(g.Candidates, c.Limiter) ||
		g.Limiter == verdict.Bottleneck && c.Limiter == verdict.LocalQueue
	return ErrorUnless(g.Confidence != verdict.High || right || c.allows(p, Goodput(result), g.Limiter),
		"captured at the %s: %s with high confidence, shares %v, %v; %d bytes unseen", g.Vantage, g.Limiter, g.Shares,
		g.Evidence, d.Unseen)
}

// allows reports whether a limiter other than the cause is right: a link that is full nevertheless, or one that
// its short queue keeps from being full.
func (c *Cause) allows(p PathPoint, bps float64, n verdict.Name) bool {
	full := bps >= 0.85*p.RateBps
	return full && n == verdict.Bottleneck || !full && c.Limiter == verdict.Bottleneck && n == verdict.Congestion
}

func (c *Cause) point(t *testing.T) PathPoint {
	for _, p := range causePoints {
		if c.Fits == nil || c.Fits(p) {
			return p
		}
	}
	t.Fatal("fits none of the points")
	return PathPoint{}
}

// PathPoint is a rate and an RTT at which causes are tried.
type PathPoint struct {
	RateBps float64
	RTT     time.Duration
}

// BDP returns the bandwidth-delay product in bytes.
func (p PathPoint) BDP() float64 { return p.RateBps / 8 * p.RTT.Seconds() }

func (p PathPoint) String() string {
	return fmt.Sprintf("%.3g Mbit/s × %.3g ms", p.RateBps/1e6, p.RTT.Seconds()*1e3)
}

// UnlimitedTransfer returns a transfer that only its link limits: cubic, automatic buffers with a high maximum,
// and a queue of two BDPs.
func (p PathPoint) UnlimitedTransfer() LabTransfer {
	const grow = "cd /proc/sys/net/ipv4; echo 4096 16384 67108864 >tcp_wmem; echo 4096 131072 67108864 >tcp_rmem"
	return LabTransfer{
		Path: p.LabPath(max(2*p.BDP(), 60e3), ""),
		Near: grow, Far: grow,
		Spec: transfer.Spec{Direction: transfer.Up, Time: min(max(4*time.Second, 60*p.RTT), 12*time.Second)},
	}
}

// LabPath returns the lab's path with a queue in bytes and more options, each with a leading comma.
func (p PathPoint) LabPath(queue float64, more string) string {
	return fmt.Sprintf("rate=%.0f,rtt=%v,queue=%.0fB%s", p.RateBps, p.RTT, queue, more)
}

// DoubleRate returns the point at twice the rate.
func (p PathPoint) DoubleRate() PathPoint { p.RateBps *= 2; return p }

// Cause is one limiter that is added to an unlimited transfer.
type Cause struct {
	Name    string
	Limiter verdict.Name
	subtype string
	Fits    func(p PathPoint) bool // whether it can limit at all here; nil: always
	With    func(p PathPoint, s *LabTransfer)
	// Without takes the cause away again; nil is the free transfer.
	Without func(p PathPoint, s *LabTransfer)
}

// MinBDP returns a condition on the BDP in bytes.
func MinBDP(bytes float64) func(PathPoint) bool {
	return func(p PathPoint) bool { return p.BDP() >= bytes }
}

// socketBuffersAllow returns a condition: a socket may have a buffer of that many BDPs. A lab cannot raise
// net.core.rmem_max and wmem_max.
func socketBuffersAllow(bdps float64) func(PathPoint) bool {
	return func(p PathPoint) bool { return bdps*p.BDP() <= 4<<20 }
}
