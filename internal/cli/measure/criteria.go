package measure

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// criteriaFlags say when a measurement's answer is "no".
type criteriaFlags struct {
	below units.Rate
	on    []string
}

func (c *criteriaFlags) add(fl *pflag.FlagSet) {
	fl.Var(&c.below, "fail-below", "exit 3 unless each direction's goodput reaches this rate")
	fl.StringSliceVar(&c.on, "fail-on", nil, "exit 3 where one of these `limiters` limits: LIMITER or LIMITER/SUBTYPE, "+
		"separated by commas")
}

func (c *criteriaFlags) check() error {
	for _, text := range c.on {
		name, subtype, has := strings.Cut(text, "/")
		switch {
		case !slices.Contains(verdict.Names(), verdict.Name(name)):
			return exit.Usage("--fail-on", fmt.Sprintf("%q is no limiter", name), strings.Join(cmdflag.LimiterNames(), ", "))
		case has && !slices.Contains(verdict.Subtypes(verdict.Name(name)), subtype):
			try := name + ", which has no subtypes"
			if all := verdict.Subtypes(verdict.Name(name)); len(all) > 0 {
				try = name + "/" + strings.Join(all, ", "+name+"/")
			}
			return exit.Usage("--fail-on", fmt.Sprintf("%q is no subtype of %s", subtype, name), try)
		}
	}
	return nil
}

// judge checks one direction against the criteria. An unknown goodput is below any.
func (c *criteriaFlags) judge(d transfer.Direction, goodput *float64, v verdict.Verdict) (all []record.Criterion) {
	if c.below > 0 {
		all = append(all, record.Criterion{Direction: d, Criterion: "fail-below", LeastBps: float64(c.below),
			MeasuredBps: goodput,
			Passed:      goodput != nil && *goodput >= float64(c.below)})
	}
	if len(c.on) > 0 {
		found := string(v.Limiter)
		if v.Subtype != "" {
			found += "/" + v.Subtype
		}
		all = append(all, record.Criterion{Direction: d, Criterion: "fail-on", Refused: c.on, Limiter: found,
			Passed: !slices.Contains(c.on, found) && !slices.Contains(c.on, string(v.Limiter))})
	}
	return all
}

// showJudged prints a measurement and returns exit status 3 if a criterion was missed.
func showJudged(cmd *cobra.Command, doc record.Document, criteria []record.Criterion) error {
	if err := present.Document(cmd, doc); err != nil {
		return err
	}
	if slices.ContainsFunc(criteria, func(c record.Criterion) bool { return !c.Passed }) {
		return exit.Status(exit.No)
	}
	return nil
}
