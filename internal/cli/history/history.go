// Package history lists the results of this host and their changes.
package history

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// New returns the command history.
func New() *cobra.Command {
	var filter store.Filter
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "history [PATH]",
		Short: "results measured from this host, and their changes",
		Long: `history lists the results of measure, tune, sweep, rfc6349 and recheck on
this host, the newest last. PATH selects one path: the name of its far end or its key.

Results are in $XDG_STATE_HOME/fullpipe/history.db, readable only by their owner. Results
from a lab are stored only with --record; --no-history stores none. The samples (the data of
the curves) of a result are removed when ten later results of the path are 30 days newer,
the result itself when ten are 730 days newer. If the history is larger than 512 MiB, the
oldest samples are removed first, then the oldest results. The maximum is a million results.
history days keeps daily figures of removed results. Results of clients of serve --web use
at most a quarter of both limits; they are removed first, without daily figures. The section
[history] of the configuration changes the limits.

With --store postgres://USER@HOST/DATABASE, FULLPIPE_STORE or the key store in [history],
the history is in PostgreSQL, in the schema fullpipe, and several hosts can share it. There
the limits of age and number apply, but not the limit of size. sslmode in the URL selects
TLS: verify-full checks the server's name; the default, prefer, checks nothing. Results that
the server does not accept at once wait in the state directory, up to 10,000 results or 256
MiB. The next command that reaches the server delivers them in order.`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				if err := narrow(&filter, args, since); err != nil {
					return err
				}
				runs, err := s.List(ctx, filter)
				if err != nil {
					return err
				}
				return listRuns(cmd, runs)
			})
		},
		ValidArgsFunction: completeRuns,
	}
	cmd.Flags().Var((*cmdflag.Period)(&since), "since", "only results of this time until now, "+
		"for example 720h")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "maximum number of results, the newest; 0 is all")
	history.AddStoreFlag(cmd.PersistentFlags())
	cmd.AddCommand(newShow(), newCompare(), newChanges(), newDays(),
		newExport(), newImport(), newForget(), newLabel(), newAccept())
	return cmd
}

// seriesAsked returns the optional argument PATH; "" means all paths.
func seriesAsked(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// runsAsked returns the runs of the argument PATH, or all runs without one. A PATH without runs is an error.
func runsAsked(ctx context.Context, s *store.Store, args []string) ([]store.Run, error) {
	runs, err := s.List(ctx, store.Filter{Path: seriesAsked(args)})
	if err == nil && len(runs) == 0 && len(args) > 0 {
		err = noResults(args[0])
	}
	return runs, err
}

func noResults(path string) error {
	return exit.Usage("PATH", path+": the history has no results of it",
		"a PEER that fullpipe history lists, or a path's key")
}

// completeRuns completes the paths and the ids of the history.
func completeRuns(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	var offered []string
	ctx, cancel := context.WithTimeout(cmd.Context(), time.Second) // completion does not wait for a server
	defer cancel()
	s, err := history.Open(ctx, cmd)
	if err != nil { // without a history there is nothing to offer
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	defer s.Close()
	runs, _ := s.List(ctx, store.Filter{Limit: 200})
	seen := map[string]bool{}
	for _, r := range runs {
		takesPath := false
		takesID := true
		switch cmd.Name() {
		case "history", "changes", "days", "export", "accept":
			takesPath = true
			takesID = false
		case "compare": // one path with --before, or two results
			takesPath = len(args) == 0
			takesID = !cmd.Flags().Changed("before")
		}
		if takesPath && !seen[r.Far] && didyoumean.IsWord(r.Far) {
			seen[r.Far] = true
			offered = append(offered, r.Far)
		}
		if takesID {
			offered = append(offered, r.ID)
		}
	}
	return offered, cobra.ShellCompDirectiveNoFileComp
}

func listRuns(cmd *cobra.Command, runs []store.Run) error {
	return printHistory(cmd, &record.History{Header: present.HeaderOf(cmd, "history"), Runs: history.ShortRuns(runs)})
}

func printHistory(cmd *cobra.Command, doc record.Document) error {
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), doc)
	}
	return text.Write(cmd.OutOrStdout(), doc)
}

func newShow() *cobra.Command {
	var f present.StoredFlags
	cmd := &cobra.Command{
		Use: "show ID", Short: "print a stored result again, as show does",
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				doc, samples, err := s.Get(ctx, args[0])
				if err != nil {
					return err
				}
				return f.Print(cmd, args[0], doc, samples)
			})
		},
	}
	f.Add(cmd)
	return cmd
}

func newChanges() *cobra.Command {
	return &cobra.Command{
		Use:   "changes [PATH]",
		Short: "changes of each path's goodput, RTT and limiter",
		Args:  cobra.MaximumNArgs(1),
		Long: `changes searches the stored results of each path and direction for changes:
the median of 8 results differs by at least 15 % from the median of the 48 before, with p <
0.0001 by the Mann-Whitney test. With fewer results it compares 5 with 12 or more, and the
change has low confidence. It applies the same test to the minimum RTT, for differences of
0.5 ms or more: such a change means another route. Re-tests and failed tests do not count.`,
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				runs, err := runsAsked(ctx, s, args)
				if err != nil {
					return err
				}
				return printHistory(cmd, report.Changes(present.HeaderOf(cmd, "changes"), history.ShortRuns(runs)))
			})
		},
	}
}

func newForget() *cobra.Command {
	return &cobra.Command{
		Use: "forget ID...", Short: "remove results for good", Args: cobra.MinimumNArgs(1), ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				for _, id := range args {
					if err := s.Forget(ctx, id); err != nil {
						return err
					}
				}
				return nil
			})
		},
	}
}

func newAccept() *cobra.Command {
	return &cobra.Command{
		Use:   "accept PATH",
		Short: "accept what limits a path now: no trouble in ui until it changes",
		Args:  cobra.ExactArgs(1),

		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				run, err := s.Accept(ctx, args[0], "yes")
				switch {
				case errors.Is(err, store.ErrNotFound):
					return noResults(args[0])
				case err == nil:
					console.Note(cmd, "accepted as result %s is; fullpipe history label %s %s takes that back", run.ID, run.ID,
						record.AcceptedLabel)
				}
				return err
			})
		},
	}
}

func newLabel() *cobra.Command {
	return &cobra.Command{
		Use: "label ID NAME [VALUE]", Short: "set a property of a result; without VALUE it is " +
			"removed",
		Args:              cobra.RangeArgs(2, 3),
		ValidArgsFunction: completeRuns,
		RunE: func(cmd *cobra.Command, args []string) error {
			return history.Use(cmd, func(ctx context.Context, s *store.Store) error {
				id := args[0]
				name := args[1]
				value := ""
				if len(args) == 3 {
					value = args[2]
				}
				if name == "" {
					return exit.Usage("NAME", "it is empty", "fullpipe history label "+id+" site Bern")
				}
				err := s.Label(ctx, id, name, value)
				if errors.Is(err, store.ErrNoLabel) {
					before, after, _ := strings.Cut(name, "=")
					return exit.Usage("NAME", exit.Plain(err),
						fmt.Sprintf("fullpipe history label %s %s %s", id, before, cmp.Or(after, "VALUE")))
				}
				return err
			})
		},
	}
}
