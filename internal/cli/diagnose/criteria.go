package diagnose

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/turns"
)

// criteriaFlags are the criteria of requests: exit status 3 if one is not met.
type criteriaFlags struct {
	on     []string
	limits []limit
}

// limit is a parsed criterion.
type limit struct {
	text       string
	percentile string // p50, p90, p99 or max; "": stalls of the kind text
	seconds    float64
}

var percentiles = []string{"p50", "p90", "p99", "max"}

func (c *criteriaFlags) add(fl *pflag.FlagSet) {
	fl.StringSliceVar(&c.on, "fail-on", nil, "exit 3 if requests take longer (`p99>50ms`; also p50, "+
		"p90, max) or stall: "+strings.Join(turns.StallNames(), ", "))
}

func (c *criteriaFlags) check() error {
	for _, text := range c.on {
		one := limit{text: text}
		name, above, isLimit := strings.Cut(text, ">")
		if isLimit {
			d, err := time.ParseDuration(above)
			if !slices.Contains(percentiles, name) || err != nil || d < 0 {
				return exit.Usage("--fail-on", fmt.Sprintf("%q is no percentile of requests", text), "p99>50ms")
			}
			one.percentile = name
			one.seconds = d.Seconds()
		} else if !slices.Contains(turns.StallNames(), text) {
			return exit.Usage("--fail-on", fmt.Sprintf("%q is no kind of stall", text),
				"p99>50ms, "+strings.Join(turns.StallNames(), ", "))
		}
		c.limits = append(c.limits, one)
	}
	return nil
}

// judge compares the requests of a capture with the criteria. Each is judged by the worst server; a
// percentile that no server has enough requests for does not pass.
func (c *criteriaFlags) judge(r *record.Diagnose) (all []record.RequestsCriterion) {
	for _, limit := range c.limits {
		worst := record.RequestsCriterion{Criterion: limit.text}
		for server, requests := range r.AllRequests() {
			v := limit.of(requests)
			if v != nil && (worst.MeasuredS == nil || *v > *worst.MeasuredS) {
				worst.MeasuredS = v
				worst.Server = server
			}
		}
		worst.Passed = worst.MeasuredS != nil && *worst.MeasuredS <= limit.seconds
		all = append(all, worst)
	}
	return all
}

// of returns the percentile, or the time of the stalls; nil: not known.
func (l *limit) of(r *record.Requests) *float64 {
	t := r.Turns
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

// failed reports whether a criterion was not met.
func failed(all []record.RequestsCriterion) bool {
	return slices.ContainsFunc(all, func(c record.RequestsCriterion) bool { return !c.Passed })
}
