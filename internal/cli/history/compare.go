package history

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

func newCompare() *cobra.Command {
	var before string
	cmd := &cobra.Command{
		Use:   "compare A B | compare PATH --before DATE",
		Short: "two kept results beside each other: figures, limiters, settings that differ",
		Long: `compare puts two kept results beside each other. With --before it is a path's newest
result and the last of the same series before that time, with the median of all results
before and since, its 95 % interval, and how often each limiter was named.`,
		Example: `  fullpipe history compare 1939f1b2dfda last
  fullpipe history compare server.example.net --before 2026-11-20`,
		Args: func(cmd *cobra.Command, args []string) error {
			if before != "" {
				return cobra.ExactArgs(1)(cmd, args)
			}
			return cobra.ExactArgs(2)(cmd, args)
		},
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				if before == "" {
					return compareRuns(ctx, cmd, s, args[0], args[1], nil)
				}
				at, err := parseDate(before)
				if err != nil {
					return err
				}
				return compareBefore(ctx, cmd, s, args[0], at)
			})
		},
	}
	cmd.Flags().StringVar(&before, "before", "", "a `date` (2026-11-20, in this host's time zone) or time "+
		"(2026-11-20T14:00:00Z)")
	return cmd
}

// parseDate reads a day's beginning here, or a time.
func parseDate(text string) (time.Time, error) {
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02 15:04"} {
		if at, err := time.ParseInLocation(layout, text, time.Local); err == nil {
			return at, nil
		}
	}
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return at, exit.Usage("--before", fmt.Sprintf("%q is neither a date nor a time", text),
			"2026-11-20 or 2026-11-20T14:00:00Z")
	}
	return at, nil
}

// compareBefore compares a path's newest result with the last of its series before a time.
func compareBefore(ctx context.Context, cmd *cobra.Command, s *store.Store, path string, at time.Time) error {
	runs, err := s.List(ctx, store.Filter{Path: path})
	if err != nil {
		return err
	}
	runs = slices.DeleteFunc(runs, func(r store.Run) bool {
		return r.Outcome != record.Done || r.Origin == record.Retest || len(r.Directions) == 0
	})
	if len(runs) == 0 {
		return exit.Usage("PATH", path+": nothing that was measured there to its end is kept",
			"a PEER that fullpipe history lists, or a path's key")
	}
	newest := runs[0]
	runs = slices.DeleteFunc(runs, func(r store.Run) bool { return r.PathKey != newest.PathKey })
	i := slices.IndexFunc(runs, func(r store.Run) bool { return r.StartedAt.Before(at) })
	switch {
	case i < 0:
		return exit.Usage("--before", fmt.Sprintf("the path's oldest result in this series is of %s",
			runs[len(runs)-1].StartedAt.Format(time.RFC3339)), "a later time")
	case i == 0:
		return exit.Usage("--before", fmt.Sprintf("nothing was measured on the path since; its newest result is of %s",
			newest.StartedAt.Format(time.RFC3339)), "an earlier time")
	}
	return compareRuns(ctx, cmd, s, runs[i].ID, newest.ID, report.Levels(history.ShortRuns(runs), at))
}

func compareRuns(ctx context.Context, cmd *cobra.Command, s *store.Store, a, b string,
	levels []record.DifferenceLevels) error {
	var both [2]record.Document
	for i, id := range []string{a, b} {
		var err error
		if both[i], err = s.Document(ctx, id); err != nil {
			return err
		}
	}
	doc := report.Difference(present.HeaderOf(cmd, "difference"), both[0], both[1])
	doc.Levels = levels
	return printHistory(cmd, doc)
}
