package cmdflag

import (
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/record"
)

// RequestLimits are the criteria of requests: the values of --fail-on.
type RequestLimits []requestLimit

// requestLimit is a parsed criterion.
type requestLimit struct {
	text       string
	percentile string // of shares; "": stalls of the kind text
	seconds    float64
}

// shares are the percentiles, as the share of the requests that take no longer.
var shares = map[string]float64{"p50": 0.5, "p90": 0.9, "p99": 0.99, "max": 1}

// ParseRequestLimits reads the values of --fail-on. kinds are the kinds of stalls that the command separates.
func ParseRequestLimits(values, kinds []string) (all RequestLimits, err error) {
	for _, text := range values {
		one := requestLimit{text: text}
		name, above, isLimit := strings.Cut(text, ">")
		switch {
		case isLimit:
			d, err := time.ParseDuration(above)
			if shares[name] == 0 || err != nil || d < 0 {
				return nil, exit.Usage("--fail-on", fmt.Sprintf("%q is no percentile of requests", text),
					"p99>50ms; also p50, p90 and max")
			}
			one.percentile = name
			one.seconds = d.Seconds()
		case !slices.Contains(kinds, text):
			return nil, exit.Usage("--fail-on", fmt.Sprintf("%q is no kind of stall that this command separates", text),
				strings.Join(append([]string{"p99>50ms"}, kinds...), ", "))
		}
		all = append(all, one)
	}
	return all, nil
}

// Judge compares requests with the criteria. Each is judged by the worst server; a percentile that no server has
// enough requests for does not pass.
func (l RequestLimits) Judge(servers iter.Seq2[string, *record.Requests]) (all []record.RequestsCriterion) {
	for _, limit := range l {
		worst := record.RequestsCriterion{Criterion: limit.text, Unknown: record.TooFewRequests}
		for server, requests := range servers {
			v := limit.of(requests)
			if v != nil && (worst.MeasuredS == nil || *v > *worst.MeasuredS) {
				worst.MeasuredS = v
				worst.Server = server
				worst.Unknown = ""
			}
		}
		worst.Passed = worst.MeasuredS != nil && *worst.MeasuredS <= limit.seconds
		all = append(all, worst)
	}
	return all
}

// JudgeLoad compares a load of requests with the criteria. missing requests had no response: a percentile that
// includes one of them does not pass. Without stallsKnown, no stall is no proof that there was none.
func (l RequestLimits) JudgeLoad(r *record.Requests, missing int64, stallsKnown bool) []record.RequestsCriterion {
	all := l.Judge(func(yield func(string, *record.Requests) bool) { yield("", r) })
	for i := range all {
		c := &all[i]
		percentile := l[i].percentile
		switch {
		case c.MeasuredS == nil && missing == 0:
		case percentile == "" && (r.Turns == nil || c.Passed && !stallsKnown):
			c.Unknown = record.UnknownCauses
		case percentile != "" && missing > 0 &&
			float64(missing) > (1-shares[percentile])*float64(missing+answered(r)):
			c.Unknown = record.NoResponse
		}
		if c.Unknown != "" {
			c.MeasuredS = nil
			c.Passed = false
		}
	}
	return all
}

func answered(r *record.Requests) int64 {
	if r.Turns == nil {
		return 0
	}
	return r.Turns.Count
}

// of returns the percentile, or the time of the stalls; nil: not known.
func (l *requestLimit) of(r *record.Requests) *float64 {
	t := r.Turns
	if t == nil {
		return nil
	}
	switch l.percentile {
	case "p50":
		return &t.P50S
	case "p90":
		return t.P90S
	case "p99":
		return t.P99S
	case "max":
		return &t.MaxS
	}
	var sum float64
	for _, s := range r.Stalls {
		if s.Cause == l.text {
			sum += s.TimeS
		}
	}
	return &sum
}

// RequestsFailed reports whether a criterion was not met.
func RequestsFailed(all []record.RequestsCriterion) bool {
	return slices.ContainsFunc(all, func(c record.RequestsCriterion) bool { return !c.Passed })
}
