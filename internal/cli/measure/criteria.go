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
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
)

// criteriaFlags are the criteria of a measurement: exit status 3 if one is not met.
type criteriaFlags struct {
	below  units.Rate
	on     []string
	places []string // of on: lost-at:PLACE
}

// lostAt begins a place of loss.
const lostAt = "lost-at:"

func (c *criteriaFlags) add(fl *pflag.FlagSet) {
	fl.Var(&c.below, "fail-below", "exit 3 unless each direction's goodput reaches this rate")
	fl.StringSliceVar(&c.on, "fail-on", nil, "exit 3 where one of these `limiters` limits: LIMITER or LIMITER/SUBTYPE, "+
		"separated by commas; or where packets were lost at a place: lost-at:firewall, "+
		"lost-at:receiver-host; with --rr or --crr: if requests take longer (p99>50ms; also p50, p90, max) or "+
		"stall: "+strings.Join(turns.ExchangeStalls(), ", "))
}

func (c *criteriaFlags) check() error {
	for i, text := range c.on {
		if place, is := strings.CutPrefix(text, lostAt); is {
			if !slices.Contains(cmdflag.LossPlaces(), place) {
				return exit.Usage("--fail-on", fmt.Sprintf("%q is no place of loss", place),
					strings.Join(cmdflag.LossPlaces(), ", "))
			}
			c.places = append(c.places, text)
			continue
		}
		path, err := cmdflag.RefusedLimiter(text)
		if err != nil {
			return err
		}
		c.on[i] = path
	}
	c.on = slices.DeleteFunc(c.on, func(text string) bool { return strings.HasPrefix(text, lostAt) })
	return nil
}

// losses are the places of loss of one direction.
type losses struct {
	places []record.LostAt
	none   bool // the sender retransmitted nothing, or all datagrams arrived
}

func lossesOf(d *record.Direction) losses {
	return losses{d.LostAt, d.RetransmittedSegment != nil && *d.RetransmittedSegment == 0}
}

// minAccounted is the share of the losses whose places must be known to rule out another place.
// Shares are quotients of integers: their sum may differ from 1 by rounding.
const minAccounted = 1 - 1e-9

// at returns the places, and whether none of them is one of those asked. It is false where that is
// not known: too few of the losses are accounted for.
func (l losses) at(asked []string) (found []string, passed bool) {
	passed = true
	for _, text := range asked {
		place := strings.TrimPrefix(text, lostAt)
		accounted := 0.0
		for i := range l.places {
			p := &l.places[i]
			passed = passed && place != p.Place && place != p.Side
			ruledOut := p.Place != record.Elsewhere || place == p.Watched && !p.NamespaceOnly && !p.AddressesChange
			if p.Share != nil && ruledOut {
				accounted += *p.Share
			}
		}
		passed = passed && (l.none || accounted >= minAccounted)
	}
	for i := range l.places {
		found = append(found, l.places[i].Name())
	}
	return found, passed
}

// judge compares one direction with the criteria. An unknown goodput is below any rate.
func (c *criteriaFlags) judge(d transfer.Direction, goodput *float64, v verdict.Verdict,
	l losses) (all []record.Criterion) {
	if c.below > 0 {
		all = append(all, record.Criterion{Direction: d, Criterion: "fail-below", LeastBps: float64(c.below),
			MeasuredBps: goodput,
			Passed:      goodput != nil && *goodput >= float64(c.below)})
	}
	if len(c.on) > 0 {
		all = append(all, cmdflag.JudgeLimiter(d, c.on, v))
	}
	if len(c.places) > 0 {
		found, passed := l.at(c.places)
		all = append(all, record.Criterion{Direction: d, Criterion: "fail-on", Refused: c.places, LostAt: found,
			Passed: passed})
	}
	return all
}

// showJudged prints a measurement and returns exit status 3 if a criterion was not met.
func showJudged(cmd *cobra.Command, doc record.Document, criteria []record.Criterion) error {
	if err := present.Document(cmd, doc); err != nil {
		return err
	}
	if slices.ContainsFunc(criteria, func(c record.Criterion) bool { return !c.Passed }) {
		return exit.Status(exit.No)
	}
	return nil
}
