package watch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// criteria of why: exit status 3 if the direction that limits does not meet them.
type criteria struct {
	limiters []string // as given, then without those of waits
	waits    []string // waits:KIND
}

// waitsFor begins a kind of wait.
const waitsFor = "waits:"

func (c *criteria) add(flags *pflag.FlagSet) {
	flags.StringSliceVar(&c.limiters, "fail-on", nil, "exit 3 where one of these `limiters` limits: LIMITER or "+
		"LIMITER/SUBTYPE, separated by commas; or where the program waits most of the time for one thing: waits:disk")
}

func (c *criteria) check() error {
	var limiters []string
	for _, text := range c.limiters {
		if kind, is := strings.CutPrefix(text, waitsFor); is {
			if !slices.Contains(waits.Kinds(), kind) {
				return exit.Usage("--fail-on", fmt.Sprintf("%q is no kind of wait", kind), strings.Join(waits.Kinds(), ", "))
			}
			c.waits = append(c.waits, text)
			continue
		}
		path, err := cmdflag.RefusedLimiter(text)
		if err != nil {
			return err
		}
		limiters = append(limiters, path)
	}
	c.limiters = limiters
	return nil
}

// judge compares the limiting direction with the criteria. A program fails a kind of wait also if
// too much of its time is unknown, or all of it.
func (c *criteria) judge(d *record.WatchedDirection) (all []record.Criterion) {
	if len(c.limiters) > 0 {
		all = append(all, cmdflag.JudgeLimiter(d.Direction, c.limiters, d.Verdict))
	}
	if len(c.waits) == 0 {
		return all
	}
	shares := map[string]float64{}
	longest := ""
	for i := range d.Waits {
		w := &d.Waits[i]
		shares[w.Kind] += w.Share
		if longest == "" || shares[w.Kind] > shares[longest] {
			longest = w.Kind
		}
	}
	limits := d.Limiter == verdict.Application || d.Limiter == verdict.ReceiverApplication
	passed := !limits || len(d.Waits) > 0
	for _, text := range c.waits {
		kind := strings.TrimPrefix(text, waitsFor)
		share := shares[kind]
		if kind != string(waits.Unknown) {
			share += shares[string(waits.Unknown)]
		}
		passed = passed && share <= 0.5
	}
	return append(all, record.Criterion{Direction: d.Direction, Criterion: "fail-on", Refused: c.waits,
		WaitsFor: longest, Passed: passed})
}

// failed reports whether a document does not meet its criteria.
func failed(doc *record.Watch) bool {
	return slices.ContainsFunc(doc.Criteria, func(c record.Criterion) bool { return !c.Passed })
}
