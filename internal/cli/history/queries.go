package history

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

func newDays() *cobra.Command {
	var filter store.Filter
	var since time.Duration
	cmd := &cobra.Command{
		Use: "days [PATH]", Short: "each day's mean, range and limiters",
		Args:              cobra.MaximumNArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				if err := narrow(&filter, args, since); err != nil {
					return err
				}
				days, err := s.Days(ctx, filter)
				if err != nil {
					return err
				}
				return printHistory(cmd, &record.Days{Header: present.HeaderOf(cmd, "days"), Days: days})
			})
		},
	}
	cmd.Flags().Var((*cmdflag.Period)(&since), "since", "only results of this time until now, "+
		"for example 720h")
	cmd.Flags().IntVar(&filter.Limit, "limit", 100, "maximum number of days, the newest; 0 is all")
	return cmd
}

// narrow limits a filter to the path that args name and to results of the last since.
func narrow(f *store.Filter, args []string, since time.Duration) error {
	if f.Limit < 0 {
		return exit.Usage("--limit", strconv.Itoa(f.Limit)+" is below zero", "--limit 50, or 0 for all")
	}
	f.Path = seriesAsked(args)
	if since > 0 {
		f.Since = time.Now().Add(-since)
	}
	return nil
}

func newCompare() *cobra.Command {
	var before string
	cmd := &cobra.Command{
		Use:   "compare A B | compare PATH --before DATE",
		Short: "compare two results: figures, limiters, and settings that differ",
		Long: `compare shows two stored results side by side. With --before it compares a
path's newest result with the last one of the same series before that time. It then also
shows, for the results before and since that time, the median with its 95 % confidence
interval and how often each limiter was found. For two sweeps (for example with default and
with tuned buffers, or through a network and through a VPN) it also compares their cells.`,
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
		both[i], err = s.Document(ctx, id)
		if err != nil {
			return err
		}
	}
	doc := report.Difference(present.HeaderOf(cmd, "difference"), both[0], both[1])
	doc.Levels = levels
	return printHistory(cmd, doc)
}

// exportTable writes a line for each direction, the oldest run first.
func exportTable(out io.Writer, runs []store.Run, anonymize bool) error {
	w := text.NewCSVWriter(out)
	w.Write([]string{"started_at", "id", "path_key", "peer", "kind", "origin", "outcome", "direction", "goodput_bps",
		"rtt_min_s", "limiter"})
	number := func(v *float64) string {
		if v == nil {
			return ""
		}
		return strconv.FormatFloat(*v, 'g', 9, 64)
	}
	for i := len(runs) - 1; i >= 0; i-- {
		r := &runs[i]
		id := r.ID
		path := r.PathKey
		far := r.Far
		if anonymize {
			id = ""
			path = ""
			far = ""
		}
		for _, f := range r.Directions {
			w.Write([]string{r.StartedAt.Format(time.RFC3339Nano), id, path, far, r.Kind, string(r.Origin), string(r.Outcome),
				f.Direction,
				number(f.GoodputBps), number(f.RTTMinS), f.Limiter})
		}
	}
	w.Flush()
	return w.Error()
}
