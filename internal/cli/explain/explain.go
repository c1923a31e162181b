// Package explain is the command that explains a limiter or a parameter.
package explain

import (
	"cmp"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/advice"
	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/didyoumean"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render"
	"github.com/fullpipe-net/fullpipe/internal/render/text"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
	"github.com/fullpipe-net/fullpipe/internal/verdict/rule"
	"github.com/fullpipe-net/fullpipe/internal/verdict/timeline"
)

// limiterSystems are the families whose commands the remedies of limiters name.
var limiterSystems = []string{catalog.Linux, catalog.Windows, catalog.Windows2000, catalog.Windows9x, catalog.MacOS,
	catalog.FreeBSD}

// New returns the command explain.
func New() *cobra.Command {
	var system string
	var rules bool
	cmd := &cobra.Command{
		Use:   "explain [NAME]",
		Short: "explain a limiter or an operating system's parameter",
		Example: `  fullpipe explain receiver-window
  fullpipe explain receiver-window/autotune-ceiling --system windows
  fullpipe explain tcp_rmem
  fullpipe explain AutoTuningLevelLocal
  fullpipe explain --system freebsd
  fullpipe explain --rules`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			kernel := cmp.Or(system, runtime.GOOS)
			if target, err := plan.ParseTarget(system); err == nil && !slices.Contains(catalog.Families(), system) {
				kernel = target.Family + " " + target.Version
				system = target.Family
			}
			if system != "" && !slices.Contains(catalog.Families(), system) {
				return exit.Usage("--system", fmt.Sprintf("%q is not a family of systems", system),
					strings.Join(catalog.Families(), ", ")+", or a system of plan --target")
			}
			if rules {
				return printRules(cmd, len(args) > 0 || system != "")
			}
			if len(args) == 0 {
				return listParameters(cmd, system)
			}
			words := advice.SystemOf(kernel)
			if limiter, ok := text.ExplainLimiter(args[0], words); ok {
				if system != "" && !slices.Contains(limiterSystems, system) {
					return exit.Usage("--system", fmt.Sprintf("no remedy names commands of %s", system),
						strings.Join(limiterSystems, ", "))
				}
				if runtime.GOOS != "linux" {
					limiter.Lab = "" // there are no labs
				}
				return printLimiter(cmd, &limiter)
			}
			found := catalog.Find(system, args[0])
			if len(found) == 0 {
				try := "fullpipe explain (lists all)"
				if near := didyoumean.Nearest(args[0], limiterWords()); near != "" && system == "" {
					try = "fullpipe explain " + near
				} else if near := catalog.Nearest(args[0]); len(near) > 0 {
					try = "fullpipe explain " + strings.Join(near, " or ")
				}
				return exit.Usage("NAME", fmt.Sprintf("no limiter and no parameter is called %q", args[0]), try)
			}
			return printParameters(cmd, found)
		},
	}
	cmd.Flags().StringVar(&system, "system", "", "show only this family of systems: "+
		strings.Join(catalog.Families(), ", ")+
		"; for a limiter, the commands of "+strings.Join(limiterSystems, ", "))
	cmd.Flags().BoolVar(&rules, "rules", false, "print the rules that find the limiter of a "+
		"transfer: inputs, thresholds, results")
	return cmd
}

// limiterWords returns the names of all limiters and of their subtypes.
func limiterWords() []string {
	all := cmdflag.LimiterNames()
	for _, limiter := range verdict.Names() {
		all = append(all, verdict.Subtypes(limiter)...)
	}
	return all
}

type rulesExplanation struct {
	record.Header
	Lists []rule.List `json:"rule_lists"`
}

// allRules returns the rules of transfers, then those of captures.
func allRules() []rule.List { return slices.Concat(live.Rules(), timeline.Rules()) }

// printRules prints all rules of the judges. It fails where something else was asked for as well.
func printRules(cmd *cobra.Command, alsoAsked bool) error {
	if alsoAsked {
		return exit.Usage("--rules", "takes no NAME and no --system", "fullpipe explain --rules")
	}
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), rulesExplanation{present.Header(cmd), allRules()})
	}
	return render.Written(cmd.OutOrStdout(), func(w io.Writer) error {
		text.Rules(w, render.Document(allRules()))
		return nil
	})
}

type limiterExplanation struct {
	record.Header
	*record.ExplainedLimiter
}

func printLimiter(cmd *cobra.Command, d *record.ExplainedLimiter) error {
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), limiterExplanation{present.Header(cmd), d})
	}
	return render.Written(cmd.OutOrStdout(), func(w io.Writer) error {
		text.Limiter(w, render.Document(d))
		return nil
	})
}

type explanation struct {
	record.Header
	Parameters []catalog.Parameter `json:"parameters"`
}

func printParameters(cmd *cobra.Command, found []catalog.Parameter) error {
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), explanation{present.Header(cmd), found})
	}
	return render.Written(cmd.OutOrStdout(), func(w io.Writer) error {
		for i, p := range found {
			if i > 0 {
				fmt.Fprintln(w)
			}
			text.Parameter(w, p)
		}
		return nil
	})
}

func listParameters(cmd *cobra.Command, system string) error {
	var all []catalog.Parameter
	for _, p := range catalog.All() {
		if system == "" || p.System == system {
			all = append(all, p)
		}
	}
	if console.WantsJSON(cmd) {
		return present.JSON(cmd.OutOrStdout(), explanation{present.Header(cmd), all})
	}
	return text.Parameters(cmd.OutOrStdout(), all)
}
