package measure

import (
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// concurrent is a warning about both directions.
const concurrent = "measured while the other direction ran too"

// oneAtATime returns the usage error of a far end that carries one direction at a time.
func oneAtATime(err error) error {
	var unsupported *transfer.Unsupported
	if errors.As(err, &unsupported) && unsupported.Field == transfer.FieldLegs {
		return exit.Usage("--bidir", "this far end carries one direction at a time", "--direction both, one after the other")
	}
	return nil
}

// runBoth measures both directions at the same time.
func (f *flags) runBoth(cmd *cobra.Command, text string, up, down transfer.Spec) error {
	ctx := cmd.Context()
	f.Notes = console.Progress(cmd)
	far, err := f.Open(ctx, text)
	if err != nil {
		return err
	}
	defer far.Close()
	if refusal := oneAtATime(far.Check(transfer.TCP(up, down))); refusal != nil {
		return refusal
	}
	losses := farend.WatchLosses()
	defer losses.Close()
	intervals := map[transfer.Direction][]transfer.Interval{}
	var mu sync.Mutex // guards intervals
	lines := progress.NewIntervals(console.Progress(cmd), f.every(console.Progress(cmd)), up, down)
	upResult, downResult, err := transfer.RunBoth(ctx, losses.Peer(far), up, down, func(i transfer.Interval) {
		mu.Lock()
		defer mu.Unlock()
		d := i.Direction
		intervals[d] = append(intervals[d], i)
		present.Interval(cmd, d, intervals[d])
		lines.Show(d, i)
	})
	lines.Clear()
	var unsupported *transfer.Unsupported
	if errors.As(err, &unsupported) {
		return cannotHave(unsupported, "leave that option out, or --direction both")
	}
	doc := record.Measure{Header: present.Header(cmd), Peer: lab.PeerName(text)}
	for _, result := range []*transfer.Result{upResult, downResult} {
		if result == nil {
			continue
		}
		result.Warnings = append(result.Warnings, concurrent)
		if doc.Near == nil {
			doc.Near = report.Host(result.Near)
		}
		if doc.Far == nil {
			doc.Far = report.Host(result.Far)
		}
		direction := report.Direction(result, live.Judge(result), intervals[result.Spec.Direction])
		doc.Directions = append(doc.Directions, direction)
		doc.Criteria = append(doc.Criteria, f.criteria.judge(direction.Direction, direction.GoodputBps, direction.Verdict,
			lossesOf(&direction))...)
	}
	if err != nil {
		return f.cutShort(cmd, &doc, err)
	}
	return showJudged(cmd, &doc, doc.Criteria)
}
