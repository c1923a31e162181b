package text

import (
	"fmt"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// DifferenceSentence explains the decision on the cause of a difference between two ways.
func DifferenceSentence(d *record.ComparedDirection) string {
	switch d.Code {
	case compare.TooLittle:
		return "too little was measured to say"
	case compare.WithinTenPercent:
		return "both are within 10 % of each other"
	case compare.SmallOverhead:
		return "the difference is less than 10 %, and the smaller segments explain it"
	case compare.Scattered:
		return "the transfers scatter more than the two ways differ: more rounds would decide"
	case compare.OpenWhether:
		return "a difference of 10 % or more is open: more rounds would decide"
	case compare.Unexplained:
		return "none of the differences explains it"
	case compare.LimiterNotClear:
		return "the limiter of the slower one is not clear"
	case compare.OneCause:
		return fmt.Sprintf("without it the slower one would give %.2f to %.2f times as much", d.Values["factor_low"],
			d.Values["factor_high"])
	case compare.MoreThanOneCause:
		return "more than one may have a part in it"
	}
	return d.Text
}

// ExplanationSentence compares the figure of both ways that decides on a cause.
func ExplanationSentence(e *compare.Explanation) string {
	f := figures(e.Values)
	switch e.Cause {
	case compare.Overhead:
		return fmt.Sprintf("segments of %.0f bytes instead of %.0f", f["slow_mss_bytes"], f["fast_mss_bytes"])
	case compare.RoundTrip:
		tens := func(key string) string { // of microseconds: no finer are round trips known
			return units.Time(time.Duration(f[key] * float64(time.Second)).Round(10 * time.Microsecond))
		}
		return fmt.Sprintf("a round trip of %s instead of %s", tens("slow_rtt_s"), tens("fast_rtt_s"))
	case compare.Loss:
		return fmt.Sprintf("%.2g %% retransmitted instead of %.2g %%", 100*f["slow_retransmitted_ratio"],
			100*f["fast_retransmitted_ratio"])
	case compare.WindowSize:
		return fmt.Sprintf("a window of %v instead of %v", units.Size(f["slow_window_bytes"]),
			units.Size(f["fast_window_bytes"]))
	case compare.Capacity:
		return fmt.Sprintf("the way is full at %s; the other one carries %s", f.rate("slow_goodput_bps"),
			f.rate("fast_goodput_bps"))
	case compare.HostCPU:
		return hostCPUText(f)
	}
	return e.Text
}

func hostCPUText(f figures) string {
	var busy []string
	for _, end := range []string{"near", "far"} {
		if key := end + "_busy_ratio"; f.has(key) {
			busy = append(busy, fmt.Sprintf("%s %s busy", end, f.share(key)))
		}
	}
	if len(busy) == 0 {
		return "the thread that moves the data has no CPU left"
	}
	return "the hosts have no CPU left: " + strings.Join(busy, ", ")
}
