package cli

import (
	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/agent"
	"github.com/fullpipe-net/fullpipe/internal/cli/apply"
	"github.com/fullpipe-net/fullpipe/internal/cli/audit"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/diagnose"
	"github.com/fullpipe-net/fullpipe/internal/cli/exec"
	"github.com/fullpipe-net/fullpipe/internal/cli/explain"
	"github.com/fullpipe-net/fullpipe/internal/cli/history"
	"github.com/fullpipe-net/fullpipe/internal/cli/iperf3"
	"github.com/fullpipe-net/fullpipe/internal/cli/key"
	"github.com/fullpipe-net/fullpipe/internal/cli/lab"
	"github.com/fullpipe-net/fullpipe/internal/cli/mcp"
	"github.com/fullpipe-net/fullpipe/internal/cli/measure"
	"github.com/fullpipe-net/fullpipe/internal/cli/plan"
	"github.com/fullpipe-net/fullpipe/internal/cli/predict"
	"github.com/fullpipe-net/fullpipe/internal/cli/recheck"
	"github.com/fullpipe-net/fullpipe/internal/cli/rfc6349"
	"github.com/fullpipe-net/fullpipe/internal/cli/serve"
	"github.com/fullpipe-net/fullpipe/internal/cli/show"
	"github.com/fullpipe-net/fullpipe/internal/cli/sweep"
	"github.com/fullpipe-net/fullpipe/internal/cli/tune"
	"github.com/fullpipe-net/fullpipe/internal/cli/ui"
	"github.com/fullpipe-net/fullpipe/internal/cli/undo"
	"github.com/fullpipe-net/fullpipe/internal/cli/version"
	"github.com/fullpipe-net/fullpipe/internal/cli/watch"
)

// NewRoot returns the command line with all commands.
func NewRoot(std console.Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "fullpipe",
		Short: "find out why a TCP transfer is slow, fix it and prove it",
		Long: `fullpipe measures a path, names what limits a TCP transfer on it with evidence,
computes the right windows and buffers, tries them and proves the gain.

PEER is one of
  HOST[:PORT]             a fullpipe server (its key in --key, --key-file or FULLPIPE_KEY)
  fullpipe://HOST[:PORT]  the same, and nothing else
  iperf3://HOST[:PORT]    an iperf3 server; HOST alone finds one too when there is no key
  iperf2://HOST[:PORT]    an iperf 2 server, which only receives
  ndt7://HOST[:PORT]      an ndt7 server, as M-Lab's or fullpipe serve --web; measure, recheck
  ssh://[USER@]HOST       a host with an SSH account; ssh starts the far end there
  https://... http://...  a large object on a web server, downloaded
  lab:PROFILE             two hosts and a link on this machine (see: fullpipe lab list)
  lab:rate=100mbit,rtt=40ms,...`,
		Version:       build.Version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.PersistentPreRunE = oneForm
	root.SetIn(std.In)
	root.SetOut(std.Out)
	root.SetErr(std.Err)
	root.SetFlagErrorFunc(cmdflag.Error)
	root.PersistentFlags().BoolP("json", "J", false, "print only one JSON object on standard output")
	root.AddCommand(tune.New(), measure.New(), sweep.New(), rfc6349.New(), serve.New(), plan.New(), predict.New(),
		audit.New(),
		apply.New(), undo.New(), undo.NewStatus(), explain.New(), exec.New(), lab.New(), diagnose.New(), show.New(),
		version.New(),
		watch.New(), watch.NewWhy(), history.New(),
		ui.New(ui.Retest{Command: "recheck", Series: recheck.Series}, ui.Retest{Command: "measure", Series: measure.Series}),
		recheck.New())
	root.PersistentFlags().BoolP("quiet", "q", false, "no notes and no progress on standard error, only errors")
	console.AddColour(root)
	root.AddCommand(iperf3.New(), key.New(), agent.New(), mcp.New())
	refuseStrays(root)
	setHelp(root)
	completions(root)
	configured(root)
	plainDefaults(root)
	return root
}
