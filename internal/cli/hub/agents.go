package hub

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/fleet/hub"
	"github.com/fullpipe-net/fullpipe/internal/fleet/mesh"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/units"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

func newAgents(o *options) *cobra.Command {
	cmd := &cobra.Command{Use: "agents", Short: "list the hosts of the fleet", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error { return listAgents(ctx, cmd, f) })
		}}
	change := func(use, short string, args int, do func(context.Context, *store.Fleet, store.Agent, []string) error) {
		cmd.AddCommand(&cobra.Command{Use: use, Short: short, Args: cobra.MinimumNArgs(args),
			RunE: func(cmd *cobra.Command, args []string) error {
				return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
					a, err := agentNamed(ctx, f, args[0])
					if err != nil {
						return err
					}
					if err := do(ctx, f, a, args[1:]); err != nil {
						return err
					}
					return f.Audit(ctx, audit(strings.Fields(use)[0], strings.Join(args, " ")))
				})
			}})
	}
	change("remove NAME", "end a host's membership; its results stay", 1,
		func(ctx context.Context, f *store.Fleet, a store.Agent, _ []string) error {
			return f.RemoveAgent(ctx, a.ID, time.Now())
		})
	change("rename NAME NEW-NAME", "give a host another name", 2,
		func(ctx context.Context, f *store.Fleet, a store.Agent, args []string) error {
			if !hub.AgentName.MatchString(args[0]) {
				return exit.Usage(args[0], "a name has letters, digits, '.', '_' and '-'", "fullpipe-hub agents rename OLD NEW")
			}
			return f.Rename(ctx, a.ID, args[0])
		})
	change("label NAME LABEL=VALUE...", "replace a host's labels", 1,
		func(ctx context.Context, f *store.Fleet, a store.Agent, args []string) error {
			labels := map[string]string{}
			for _, text := range args {
				name, value, ok := strings.Cut(text, "=")
				if !ok {
					return exit.Usage(text, "not LABEL=VALUE", "fullpipe-hub agents label NAME site=berlin")
				}
				labels[name] = value
			}
			return f.SetLabels(ctx, a.ID, labels)
		})
	return cmd
}

func listAgents(ctx context.Context, cmd *cobra.Command, f *store.Fleet) error {
	doc, err := (&web.Fleet{Store: f}).Hosts(ctx, build.Version())
	if err != nil {
		return err
	}
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), doc)
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "NAME\tSEEN\tVERSION\tKERNEL\tLABELS\tADDRESSES")
	for _, h := range doc.Hosts {
		seen := "never"
		if !h.SeenAt.IsZero() {
			seen = units.Time(time.Since(h.SeenAt).Round(time.Second)) + " ago"
		}
		var labels []string
		for name, value := range h.Labels {
			labels = append(labels, name+"="+value)
		}
		slices.Sort(labels)
		for _, cell := range []string{h.Name, seen, h.Version, h.Kernel, strings.Join(labels, ",")} {
			fmt.Fprint(table, render.Line(cell), "\t")
		}
		fmt.Fprintln(table, render.Line(strings.Join(h.Addresses, ",")))
		if h.Limits.Broken != "" {
			fmt.Fprintf(table, "\tits limits file has a fault: %s\n", render.Line(h.Limits.Broken))
		}
	}
	return table.Flush()
}

// agentNamed returns a member by name.
func agentNamed(ctx context.Context, f *store.Fleet, name string) (store.Agent, error) {
	agents, err := f.Agents(ctx)
	if err != nil {
		return store.Agent{}, err
	}
	for _, a := range agents {
		if a.Name == name {
			return a, nil
		}
	}
	return store.Agent{}, exit.Usage(name, "no host of the fleet has this name", "fullpipe-hub agents")
}

func newRuns(o *options) *cobra.Command {
	var state string
	var pair []string
	var limit int
	cmd := &cobra.Command{Use: "runs", Short: "list runs, the newest first, with the reason of those without a result",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				filter := store.JobFilter{State: mesh.State(state), Limit: limit}
				if state != "" && !slices.Contains(mesh.States, filter.State) {
					return exit.Usage("--state", fmt.Sprintf("there is no state %q", state), "--state skipped")
				}
				if len(pair) > 2 {
					return exit.Usage("--pair", fmt.Sprintf("%d hosts", len(pair)), "--pair A,B")
				}
				for i, name := range pair {
					a, err := agentNamed(ctx, f, name)
					if err != nil {
						return err
					}
					if i == 0 {
						filter.A = a.ID
					} else {
						filter.B = a.ID
					}
				}
				return listRuns(ctx, cmd, f, filter)
			})
		}}
	cmd.Flags().StringVar(&state, "state", "", "only runs in this state: due, granted, done, failed, refused, "+
		"skipped, lost")
	cmd.Flags().StringSliceVar(&pair, "pair", nil, "only runs of one host, or of two: A,B")
	cmd.Flags().IntVar(&limit, "limit", 50, "the number of runs")
	return cmd
}

func listRuns(ctx context.Context, cmd *cobra.Command, f *store.Fleet, filter store.JobFilter) error {
	doc, err := (&web.Fleet{Store: f}).Runs(ctx, build.Version(), filter)
	if err != nil {
		return err
	}
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), doc)
	}
	table := tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "DUE\tTASK\tHOSTS\tSTATE\tREASON\tRUN")
	for _, r := range doc.Runs {
		reason := string(r.Reason)
		if store.Doubtful(r.Unconfirmed) {
			reason = "unconfirmed: " + r.Unconfirmed
		}
		if r.Detail != "" {
			reason += " (" + render.Line(r.Detail) + ")"
		}
		fmt.Fprintf(table, "%s\t%s\t%s, %s\t%s\t%s\t%s\n", r.DueAt.Local().Format(time.DateTime), r.Task, r.Hosts[0],
			r.Hosts[1], r.State, reason, r.ID)
	}
	return table.Flush()
}

// requestTime is how long a requested test waits for its hosts.
const requestTime = 10 * time.Minute

func newTest(o *options) *cobra.Command {
	return &cobra.Command{Use: "test HOST HOST", Short: "test a path now, and print its run", Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				a, err := agentNamed(ctx, f, args[0])
				if err != nil {
					return err
				}
				b, err := agentNamed(ctx, f, args[1])
				if err != nil {
					return err
				}
				if a.ID == b.ID {
					return exit.Usage(args[1], "a path has two ends", "two hosts of fullpipe-hub agents")
				}
				job, err := hub.Request(ctx, f, a.ID, b.ID, time.Now(), requestTime)
				if err == nil {
					_, err = fmt.Fprintln(cmd.OutOrStdout(), job.ID)
				}
				return err
			})
		}}
}
