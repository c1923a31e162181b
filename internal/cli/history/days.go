package history

import (
	"context"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

func newDays() *cobra.Command {
	var filter store.Filter
	var since time.Duration
	cmd := &cobra.Command{
		Use: "days [PATH]", Short: "each day's mean, range and limiters, also of what is not kept run by run any more",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				if err := heldTo(&filter, args, since); err != nil {
					return err
				}
				days, err := s.Days(ctx, filter)
				if err != nil {
					return err
				}
				doc := &record.Days{Header: present.HeaderOf(cmd, "days"), Days: []record.HistoryDay{}}
				for _, d := range days {
					doc.Days = append(doc.Days, record.HistoryDay{Day: d.Day.Format(time.DateOnly), PathKey: d.Path, Far: d.Far,
						Direction: d.Direction, Runs: d.N, MeanBps: d.MeanBps, LeastBps: d.LeastBps, MostBps: d.MostBps,
						RTTMinS: d.RTTMinS, Limiters: d.Limiters})
				}
				return printHistory(cmd, doc)
			})
		},
	}
	cmd.Flags().Var((*cmdflag.Period)(&since), "since", "only of so long ago, as 720h")
	cmd.Flags().IntVar(&filter.Limit, "limit", 100, "the newest so many; 0 is all")
	return cmd
}

// heldTo holds a filter to the path that args name, and to what was measured no longer ago.
func heldTo(f *store.Filter, args []string, since time.Duration) error {
	if f.Limit < 0 {
		return exit.Usage("--limit", strconv.Itoa(f.Limit)+" is below zero", "--limit 50, or 0 for all")
	}
	f.Path = seriesAsked(args)
	if since > 0 {
		f.Since = time.Now().Add(-since)
	}
	return nil
}
