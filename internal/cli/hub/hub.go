// Package hub is the program fullpipe-hub: the center of a fleet.
package hub

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/help"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/secret"
	"github.com/fullpipe-net/fullpipe/internal/store"
)

// Run carries out a command line and returns the exit status. The first word of args is the program's name.
func Run(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	harmless, _ := console.NewSinks(ctx, console.NewStreams(stdin, stdout, stderr))
	root := NewRoot(harmless)
	root.SetArgs(args[1:])
	called, err := root.ExecuteContextC(ctx)
	var own exit.Status
	switch {
	case err == nil:
		return exit.Done
	case errors.As(err, &own):
		return int(own)
	}
	failure, status := exit.Describe(ctx, err)
	if console.WantsJSON(called) {
		header := record.Header{Schema: "fullpipe/hub/v1", Version: build.Version(), StartedAt: present.Started}
		_ = present.Object(called, harmless.Out, &record.CommandFailed{Header: header, Error: &failure})
		return status
	}
	fmt.Fprintln(harmless.Err, "fullpipe-hub: "+console.FailureText(failure))
	return status
}

// options are the flags of all commands.
type options struct {
	dir   string
	store string
}

// NewRoot returns the program's commands.
func NewRoot(std console.Streams) *cobra.Command {
	o := &options{}
	root := &cobra.Command{
		Use:   "fullpipe-hub",
		Short: "run a fleet: hosts that measure the paths between them",
		Long: `fullpipe-hub orders tests between hosts that run fullpipe agent, stores the results and
shows the limiter of each path.

  fullpipe-hub serve                    # prints the page's address and the command for agents
  FULLPIPE_JOIN=TOKEN fullpipe agent    # on each host`,
		Version:       build.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetFlagErrorFunc(cmdflag.Error)
	root.SetHelpFunc(func(cmd *cobra.Command, args []string) {
		_, _ = io.WriteString(cmd.OutOrStdout(), helpText(cmd, args)) // the sink keeps the error
	})
	flags := root.PersistentFlags()
	flags.BoolP("json", "J", false, "print JSON")
	flags.BoolP("quiet", "q", false, "print no notes")
	flags.StringVar(&o.dir, "dir", "", "the state `DIR`; default: the directory hub in $FULLPIPE_STATE or "+
		"~/.local/state/fullpipe")
	flags.StringVar(&o.store, "store", "", "`URL` of a PostgreSQL database; default: $FULLPIPE_HUB_STORE, or a "+
		"file in the state directory")
	root.AddCommand(newServe(o), newToken(o), newMesh(o), newAgents(o), newGrid(o), newRuns(o), newTest(o),
		newIncidents(o), newSilence(o), newUsers(o), newLog(o), newBackup(o))
	return root
}

// helpText returns short help for -h, and all help for --help and without arguments.
func helpText(cmd *cobra.Command, args []string) string {
	columns := help.Columns(cmd.OutOrStdout())
	text := help.Short(cmd, columns, help.Flags(cmd))
	if help.WantsLong(args) || len(args) == 0 {
		text = help.Long(cmd, columns, flagGroups(cmd))
	}
	if !cmd.HasParent() {
		text += "\n" + help.Commands(cmd, columns)
	}
	return text
}

// flagGroups returns a command's own flags and those of all commands.
func flagGroups(cmd *cobra.Command) []help.Group {
	own := help.Group{Name: "Flags"}
	all := help.Group{Name: "Flags of all commands"}
	for _, f := range help.Flags(cmd) {
		group := &own
		if cmd.Root().PersistentFlags().Lookup(f.Name) != nil {
			group = &all
		}
		group.Flags = append(group.Flags, f)
	}
	return []help.Group{own, all}
}

// database returns the URL of the PostgreSQL database, "" for a file. The variable is not the flag's default, because
// --help prints defaults.
func (o *options) database() string { return cmp.Or(o.store, os.Getenv(secret.HubStore)) }

// open returns the state directory and the fleet's database.
func (o *options) open(ctx context.Context) (dir string, f *store.Fleet, err error) {
	if o.dir == "" {
		base, err := store.Dir()
		if err != nil {
			return "", nil, err
		}
		o.dir = filepath.Join(base, "hub")
	}
	if err := os.MkdirAll(o.dir, 0o700); err != nil {
		return "", nil, err
	}
	o.dir, err = filepath.Abs(o.dir)
	if err != nil {
		return "", nil, err
	}
	f, err = store.OpenFleet(ctx, o.dir, o.database())
	return o.dir, f, err
}

// use opens the database for the time of a function.
func (o *options) use(cmd *cobra.Command, do func(ctx context.Context, dir string, f *store.Fleet) error) error {
	ctx := cmd.Context()
	dir, f, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer f.Close()
	return do(ctx, dir, f)
}
