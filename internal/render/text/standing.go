package text

import (
	"fmt"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/changepoint"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// Standing compares a result with its path's earlier results.
func Standing(p *record.KeptPoint) string {
	share := ""
	factor := 1.0
	if p.GoodputBps != nil && p.UsualBps != nil && *p.UsualBps > 0 {
		factor = *p.GoodputBps / *p.UsualBps
		share = fmt.Sprintf("%+.0f %%", 100*(factor-1))
	}
	switch p.Against {
	case record.AsUsual:
		if math.Abs(factor-1) >= changepoint.Least { // earlier results scatter as widely
			return "within its spread (" + share + ")"
		}
		return "as usual (" + share + ")"
	case record.Lower:
		return "lower, " + share
	case record.Higher:
		return "higher, " + share
	case record.TooFew:
		return "too few to compare"
	}
	if p.Outcome == record.Done {
		return "no rate"
	}
	return string(p.Outcome)
}

// PointText returns a result's entry in a list.
func PointText(p *record.KeptPoint) string {
	text := p.StartedAt.UTC().Format("2006-01-02 15:04") + ": "
	if p.GoodputBps == nil {
		return text + Standing(p)
	}
	text += units.Rate(*p.GoodputBps).String() + ", " + Standing(p)
	if p.Limiter != "" {
		text += ", limited by " + p.Limiter
	}
	return text
}

// limiterLetters abbreviates limiters to one character; a test checks that each name has its own.
var limiterLetters = map[verdict.Name]string{
	verdict.Application: "A", verdict.SendBuffer: "S", verdict.ReceiverWindow: "W", verdict.ReceiverApplication: "R",
	verdict.Congestion: "C", verdict.Bottleneck: "B", verdict.LocalQueue: "Q", verdict.AckPath: "K",
	verdict.SlowStart: "O", verdict.NagleDelayedAck: "N", verdict.MTUBlackHole: "H", verdict.Pacing: "P",
	verdict.CPU: "U", verdict.Sender: "E", verdict.Mixed: "M", verdict.Unknown: "?",
}

// Letter returns one character for a limiter; "·" if this version does not know it.
func Letter(name string) string {
	if letter := limiterLetters[verdict.Name(name)]; letter != "" {
		return letter
	}
	return "·"
}

// Age returns the time since a result in its largest unit, as "3 h ago"; "" for a time in the future.
func Age(d time.Duration) string {
	switch {
	case d < 0:
		return ""
	case d < time.Minute:
		return "now"
	case d < time.Hour:
		return fmt.Sprintf("%d min ago", d/time.Minute)
	case d < 48*time.Hour:
		return fmt.Sprintf("%d h ago", d/time.Hour)
	}
	return fmt.Sprintf("%d days ago", d/(24*time.Hour))
}
