package hub

import (
	"context"
	"errors"
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
	"github.com/fullpipe-net/fullpipe/internal/fleet/incident"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/store"
	"github.com/fullpipe-net/fullpipe/internal/web"
)

func newIncidents(o *options) *cobra.Command {
	return &cobra.Command{Use: "incidents", Short: "list the open incidents, the gravest first, and the silences",
		Args: cobra.NoArgs, RunE: func(cmd *cobra.Command, _ []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				doc, err := (&web.Fleet{Store: f}).Incidents(ctx, build.Version())
				if err != nil {
					return err
				}
				if console.WantsJSON(cmd) {
					return present.JSON(cmd.OutOrStdout(), doc)
				}
				return printIncidents(cmd, doc)
			})
		}}
}

func printIncidents(cmd *cobra.Command, doc *web.FleetIncidents) error {
	out := cmd.OutOrStdout()
	if len(doc.Open) == 0 {
		fmt.Fprintln(out, "no incident is open")
	}
	table := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	for i := range doc.Open {
		one := &doc.Open[i]
		note := ""
		if one.Silenced {
			note = "  (silenced)"
		}
		fmt.Fprintf(table, "%s\t%s%s\n", one.SinceAt.UTC().Format(time.RFC3339), render.Line(one.Title), note)
	}
	if len(doc.Silences) > 0 {
		fmt.Fprintln(table, "\nSILENCE\tUNTIL\tBY\tID")
	}
	for _, s := range doc.Silences {
		fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\n", s.Kind, render.Line(s.Name), s.Until.UTC().Format(time.RFC3339),
			render.Line(s.By), s.ID)
	}
	return table.Flush()
}

func newSilence(o *options) *cobra.Command {
	var lasts time.Duration
	cmd := &cobra.Command{Use: "silence host|site|link|path NAME...",
		Short: "send no reports of a host, site, link or path for a time",
		Example: `  fullpipe-hub silence host ber-1 --for 8h
  fullpipe-hub silence path ber-1 fra-2
  fullpipe-hub silence end ID`,
		Args: cobra.MinimumNArgs(2), RunE: func(cmd *cobra.Command, args []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				name := strings.Join(args[1:], " ")
				err := (&web.Fleet{Store: f}).Silence(ctx, args[0], name, lasts, userName())
				var refused *web.SilenceError
				if errors.As(err, &refused) {
					return exit.Usage(strings.Join(args, " "), err.Error(), "fullpipe-hub silence host NAME --for 8h")
				}
				if err != nil {
					return err
				}
				return f.Audit(ctx, audit("silence", fmt.Sprintf("%s %s, %v", args[0], name, lasts)))
			})
		}}
	cmd.Flags().DurationVar(&lasts, "for", 8*time.Hour, "how long, at most 2160h")
	cmd.AddCommand(&cobra.Command{Use: "end ID", Short: "end a silence; fullpipe-hub incidents lists their IDs",
		Args: cobra.ExactArgs(1), RunE: func(cmd *cobra.Command, args []string) error {
			return o.use(cmd, func(ctx context.Context, _ string, f *store.Fleet) error {
				all, err := f.Silences(ctx, time.Now())
				if err != nil {
					return err
				}
				if !slices.ContainsFunc(all, func(s incident.Silence) bool { return s.ID == args[0] }) {
					return exit.Usage(args[0], "no silence has this ID", "fullpipe-hub incidents")
				}
				if err := f.RemoveSilence(ctx, args[0]); err != nil {
					return err
				}
				return f.Audit(ctx, audit("silence end", args[0]))
			})
		}})
	return cmd
}
