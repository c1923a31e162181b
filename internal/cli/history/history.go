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
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/spell"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// New returns the command history.
func New() *cobra.Command {
	var filter store.Filter
	var since time.Duration
	cmd := &cobra.Command{
		Use:   "history [PATH]",
		Short: "what was measured from here, and what changed",
		Long: `history lists what measure, tune, sweep, rfc6349 and recheck measured from this host, the
newest last, of all paths or of PATH: the far end as it was named, or a path's key.
Results stand in $XDG_STATE_HOME/fullpipe/history.db, for their owner alone; what is
measured in a lab is kept only with --record, and nothing with --no-history. Samples,
which curves are drawn from, are kept until ten results are 30 days younger, and results
730; where all takes more than 512 MiB, the oldest samples go first, then the oldest
results, of which there are a million at most. Of what goes, history days still tells.
Results of clients of serve --web take at most a quarter of both bounds, go
before all others and leave no days.
The table [history] of the configuration has other bounds.

With --store postgres://USER@HOST/DATABASE, FULLPIPE_STORE or the key store of [history]
the history is in PostgreSQL, in the schema fullpipe, for all hosts that say so; ages
and numbers bound it there, no bytes. TLS is as sslmode in the URL says (verify-full checks
the server's name; without it prefer, which checks nothing). What the server does not store
at once waits in the state directory, up to 10,000 results or 256 MiB, and goes there in
its order with the next command that reaches it.`,
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
	cmd.Flags().Var((*cmdflag.Period)(&since), "since", "only of so long ago, as 720h")
	cmd.Flags().IntVar(&filter.Limit, "limit", 50, "the newest so many; 0 is all")
	history.AddStoreFlag(cmd.PersistentFlags())
	cmd.AddCommand(newShow(), newCompare(), newChanges(), newDays(),
		newExport(), newImport(), newForget(), newLabel())
	return cmd
}

// seriesAsked is the PATH of a command that may have one; "" is all.
func seriesAsked(args []string) string {
	if len(args) == 0 {
		return ""
	}
	return args[0]
}

// runsAsked are all runs, or those of the PATH that is given: one that was never measured is a misspelt one.
func runsAsked(ctx context.Context, s *store.Store, args []string) ([]store.Run, error) {
	runs, err := s.List(ctx, store.Filter{Path: seriesAsked(args)})
	if err == nil && len(runs) == 0 && len(args) > 0 {
		err = exit.Usage("PATH", args[0]+": nothing is kept of it", "a PEER that fullpipe history lists, or a path's key")
	}
	return runs, err
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
		case "history", "changes", "days", "export":
			takesPath = true
			takesID = false
		case "compare": // one path with --before, or two results
			takesPath = len(args) == 0
			takesID = !cmd.Flags().Changed("before")
		}
		if takesPath && !seen[r.Far] && spell.IsWord(r.Far) {
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
		Use: "show ID", Short: "render a kept result again, as show does", Args: cobra.ExactArgs(1),
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
		Short: "when a path's goodput, RTT or limiter changed",
		Args:  cobra.MaximumNArgs(1),
		Long: `changes looks back over the kept results of each path and direction: 8 results whose
median differs by 15 % or more from that of the 48 before them, by the Mann-Whitney test
with p < 0.0001; with fewer results 5 against 12 or more, said to be of low confidence.
The same goes for the shortest round trip, from 0.5 ms on: the packets go another way.
Re-tests of a suspicion and what failed do not count.`,
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

func newLabel() *cobra.Command {
	return &cobra.Command{
		Use: "label ID NAME [VALUE]", Short: "name a property of a result; without VALUE it is taken away",
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
