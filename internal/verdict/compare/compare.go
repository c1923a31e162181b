// Package compare explains the difference between two paths to one far end: inside and outside a tunnel, or two links.
// It judges by the verdicts and figures of transfers on both.
package compare

import (
	"math"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/stats"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/threshold"
)

// Cause is the reason why one of two paths to the same far end is slower than the other. As with limiters: X causes
// the difference if the slower path would be 10 % or more faster without X.
type Cause string

const (
	NoDifference Cause = "none"       // less than 10 %
	Overhead     Cause = "overhead"   // smaller segments, with more around them
	RoundTrip    Cause = "round-trip" // a longer path
	Loss         Cause = "loss"
	WindowSize   Cause = "window"   // a smaller window, as without scaling
	Capacity     Cause = "capacity" // the capacity of the path: its gateways, its link, its policer
	HostCPU      Cause = "host-cpu" // a host at either end has no more
	MixedCause   Cause = "mixed"
	UnknownCause Cause = "unknown"
)

// Explanation is one cause and the bounds of the factor by which the slower path would be faster without it. Values
// compare both paths, each figure as slow_… and fast_….
type Explanation struct {
	Cause  Cause          `json:"cause"`
	Low    float64        `json:"factor_low"`
	High   float64        `json:"factor_high"`
	Text   string         `json:"text"` // package report fills it in
	Values verdict.Values `json:"values,omitempty"`
}

// Difference is the difference between two paths to the same far end, with its causes.
type Difference struct {
	Factor     stats.Interval     `json:"-"`                // the second path's goodput over the first's, 95 %
	Slower     string             `json:"slower,omitempty"` // first or second; "": no difference is shown
	Cause      Cause              `json:"cause"`
	Confidence verdict.Confidence `json:"confidence"`
	// Candidates are the causes that remain possible when Cause is mixed or unknown.
	Candidates   []Cause        `json:"candidates,omitempty"`
	Code         verdict.Code   `json:"code,omitempty"` // how Cause was decided
	Text         string         `json:"text"`           // package report fills it in
	Values       verdict.Values `json:"values,omitempty"`
	Explanations []Explanation  `json:"explanations"` // all that apply, also those that are less than 10 %
}

// How a Cause was decided.
const (
	TooLittle        verdict.Code = "compare-too-little"
	WithinTenPercent verdict.Code = "compare-within-ten-percent"
	// SmallOverhead: the difference is less than 10 %, and smaller segments explain it. factor_low, factor_high.
	SmallOverhead    verdict.Code = "compare-small-overhead"
	Scattered        verdict.Code = "compare-scattered"
	OpenWhether      verdict.Code = "compare-open-whether-ten-percent"
	Unexplained      verdict.Code = "compare-unexplained"
	LimiterNotClear  verdict.Code = "compare-limiter-not-clear"
	OneCause         verdict.Code = "compare-one-cause" // factor_low, factor_high
	MoreThanOneCause verdict.Code = "compare-more-than-one-cause"
)

// Sides returns the difference between two paths. Their transfers were measured in turn, so that the n-th of each are
// next to each other in time.
func Sides(first, second Side) Difference {
	factor := stats.Gain(first.Goodputs, second.Goodputs, 0.95)
	d := Difference{Factor: factor, Cause: UnknownCause, Confidence: verdict.Low,
		Explanations: []Explanation{}}
	slow := &first
	fast := &second
	f := factor
	slower := "first"
	if factor.Mid < 1 {
		slow = &second
		fast = &first
		slower = "second"
		f = stats.Interval{Low: 1 / factor.High, Mid: 1 / factor.Mid, High: 1 / factor.Low}
	}
	switch {
	case math.IsNaN(factor.Mid):
		d.Code = TooLittle
		return d
	case f.High < threshold.CauseFactor.Value && f.Low > 1/threshold.CauseFactor.Value:
		d.Cause = NoDifference
		d.Confidence = verdict.High
		d.Code = WithinTenPercent
		if e, ok := smallOverhead(slow, fast, f); ok {
			d.Slower = slower
			d.Cause = Overhead
			d.Code = SmallOverhead
			d.Values = verdict.Values{"factor_low": e.Low, "factor_high": e.High}
			d.Explanations = append(d.Explanations, e)
		}
		return d
	case f.Low <= 1:
		d.Code = Scattered
		return d
	}
	d.Slower = slower
	d.attribute(slow, fast, f)
	return d
}

// attribute finds which causes account for the factor f by which fast is faster.
func (d *Difference) attribute(slow, fast *Side, f stats.Interval) {
	limits := slow.limiters()
	for _, name := range limits {
		for _, e := range explain(name, slow, fast, f) {
			d.add(e, len(limits) > 1)
		}
	}
	var shown []Explanation
	restLow := f.Low
	for _, e := range d.Explanations {
		restLow /= e.High
		if e.Low >= threshold.CauseFactor.Value {
			shown = append(shown, e)
		}
		if e.High >= threshold.CauseFactor.Value {
			d.Candidates = append(d.Candidates, e.Cause)
		}
	}
	switch {
	case f.Low < threshold.CauseFactor.Value:
		d.Code = OpenWhether
		return
	case len(d.Candidates) == 0:
		d.Code = Unexplained
		if len(limits) > 1 || len(limits) == 1 && (limits[0] == verdict.Mixed || limits[0] == verdict.Unknown) {
			d.Code = LimiterNotClear
		}
		return
	case len(shown) == 1 && len(d.Candidates) == 1 && restLow < threshold.CauseFactor.Value:
		d.Cause = shown[0].Cause
		d.Candidates = nil
		d.Code = OneCause
		d.Values = verdict.Values{"factor_low": shown[0].Low, "factor_high": shown[0].High}
	default:
		d.Cause = MixedCause
		if restLow >= threshold.CauseFactor.Value {
			d.Candidates = append(d.Candidates, UnknownCause)
		}
		d.Code = MoreThanOneCause
	}
	d.Confidence = verdict.Medium
	if d.Cause != MixedCause && slow.agree(limits[0]) {
		d.Confidence = verdict.High
	}
}

// add takes an explanation in; where it hangs on a limiter that is not sure, it may
// explain nothing.
func (d *Difference) add(e Explanation, unsure bool) {
	if unsure {
		e.Low = 1
	}
	i := slices.IndexFunc(d.Explanations, func(o Explanation) bool { return o.Cause == e.Cause })
	if i < 0 {
		d.Explanations = append(d.Explanations, e)
		return
	}
	o := &d.Explanations[i]
	o.Low = min(o.Low, e.Low)
	o.High = max(o.High, e.High)
}

// agree says that every transfer was limited by name, with high confidence.
func (s *Side) agree(name verdict.Name) bool {
	return !slices.ContainsFunc(s.Verdicts, func(v verdict.Verdict) bool {
		return v.Confidence != verdict.High || v.Limiter != name
	})
}

// explain returns the possible causes of a slower transfer that is limited by name.
func explain(name verdict.Name, slow, fast *Side, f stats.Interval) (all []Explanation) {
	add := func(e Explanation, ok bool) {
		if ok && e.High > 1 {
			e.Low = max(e.Low, 1)
			all = append(all, e)
		}
	}
	switch name {
	case verdict.Bottleneck, verdict.LocalQueue:
		size, ok := overhead(slow, fast)
		add(size, ok)
		rest := stats.Interval{Low: f.Low, Mid: f.Mid, High: f.High}
		if ok {
			rest.Low = f.Low / size.High
			rest.High = f.High / size.Low
		}
		all = append(all, capacity(slow, fast, rest)...)
	case verdict.Congestion: // goodput grows with the segment, and falls with round trip and loss
		size, ok := overhead(slow, fast)
		size.Low = 1
		add(size, ok)
		trip, ok := roundTrip(slow, fast)
		trip.Low = math.Pow(max(trip.Low, 1), 0.25) // CUBIC's W_cubic region (RFC 9438, section 5.1)
		add(trip, ok)
		add(lossOf(slow, fast, f))
	case verdict.ReceiverWindow:
		add(roundTrip(slow, fast))
		add(window(slow.Window, fast.Window, f))
	case verdict.SendBuffer:
		add(roundTrip(slow, fast))
		add(window(slow.InFlight, fast.InFlight, f))
	case verdict.NagleDelayedAck, verdict.SlowStart:
		add(roundTrip(slow, fast))
	case verdict.CPU:
		add(Explanation{Cause: HostCPU, Low: f.Low, High: f.High}, true)
	}
	return all
}

// overhead compares how much of a full packet is payload. A path that adds headers of its
// own hides them, but its packets are at least as large as the slow side's path MTU and
// at most as the fast side's.
func overhead(slow, fast *Side) (Explanation, bool) {
	if slow.MSS <= 0 || fast.MSS <= 0 || slow.PathMTU <= 0 || fast.PathMTU <= 0 {
		return Explanation{}, false
	}
	efficiency := float64(fast.MSS) / float64(fast.PathMTU)
	low := efficiency / (float64(slow.MSS) / float64(slow.PathMTU))
	high := efficiency / (float64(slow.MSS) / float64(max(slow.PathMTU, fast.PathMTU)))
	return Explanation{Cause: Overhead, Low: max(low, 1), High: high,
		Values: pair("mss_bytes", float64(slow.MSS), float64(fast.MSS))}, true
}

// smallOverhead returns the explanation of a difference of less than 10 % by smaller segments on a full link.
func smallOverhead(slow, fast *Side, f stats.Interval) (Explanation, bool) {
	e, ok := overhead(slow, fast)
	full := !slices.ContainsFunc(slow.limiters(), func(name verdict.Name) bool {
		return name != verdict.Bottleneck && name != verdict.LocalQueue
	})
	return e, ok && full && f.Low > 1 && e.High > 1 && e.Low <= f.High && e.High >= f.Low
}

func roundTrip(slow, fast *Side) (Explanation, bool) {
	if slow.RTTMin <= 0 || fast.RTTMin <= 0 {
		return Explanation{}, false
	}
	least := float64(slow.RTTMin) / float64(fast.RTTMin)
	low := least
	high := least
	if slow.RTTMean > 0 && fast.RTTMean > 0 {
		mean := float64(slow.RTTMean) / float64(fast.RTTMean)
		low = min(low, mean)
		high = max(high, mean)
	}
	return Explanation{Cause: RoundTrip, Low: low, High: high,
		Values: pair("rtt_s", slow.RTTMin.Seconds(), fast.RTTMin.Seconds())}, true
}

// lossOf returns bounds of the cost of loss: goodput falls with its square root (Mathis et al. 1997) or, under CUBIC,
// up to its 3/4th power (RFC 9438, section 5.1). A fast path without loss counts as one lost segment in all.
func lossOf(slow, fast *Side, f stats.Interval) (Explanation, bool) {
	here, ok := slow.LossRatio()
	there, also := fast.LossRatio()
	if !ok || !also || here == 0 {
		return Explanation{}, false
	}
	ratio := here / max(there, float64(max(fast.MSS, 1))/float64(fast.Sent))
	if ratio <= 1 {
		return Explanation{}, false
	}
	return Explanation{Cause: Loss, Low: min(math.Sqrt(ratio), f.High), High: min(math.Pow(ratio, 0.75), f.High),
		Values: pair("retransmitted_ratio", here, there)}, true
}

func window(slow, fast int, f stats.Interval) (Explanation, bool) {
	if slow <= 0 || fast <= 0 {
		return Explanation{}, false
	}
	ratio := float64(fast) / float64(slow)
	return Explanation{Cause: WindowSize, Low: min(ratio, f.High), High: min(ratio, f.High),
		Values: pair("window_bytes", float64(slow), float64(fast))}, true
}

// capacity returns the explanations that remain if a queue is in front of a full path: the path has less capacity, or
// a host that encrypts has no CPU left. It returns both if the faster path also uses a whole CPU.
func capacity(slow, fast *Side, rest stats.Interval) []Explanation {
	carries := Explanation{Cause: Capacity, Low: max(rest.Low, 1), High: rest.High,
		Values: pair("goodput_bps", stats.Median(slow.Goodputs), stats.Median(fast.Goodputs))}
	cpu := Explanation{Cause: HostCPU, Low: max(rest.Low, 1), High: rest.High, Values: busyHosts(slow)}
	switch {
	case rest.High <= 1:
		return nil
	case !slow.saturated():
		return []Explanation{carries}
	case !fast.saturated():
		return []Explanation{cpu}
	}
	carries.Low = 1
	cpu.Low = 1
	return []Explanation{carries, cpu}
}

// busyHosts are the shares of both hosts' processors that were busy.
func busyHosts(s *Side) verdict.Values {
	v := verdict.Values{}
	if s.NearCPU != nil {
		v["near_busy_ratio"] = *s.NearCPU
	}
	if s.FarCPU != nil {
		v["far_busy_ratio"] = *s.FarCPU
	}
	return v
}

func pair(name string, slow, fast float64) verdict.Values {
	return verdict.Values{"slow_" + name: slow, "fast_" + name: fast}
}
