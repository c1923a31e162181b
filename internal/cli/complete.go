package cli

import (
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/turns"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/waits"
)

// completions offers the values of every flag and argument that has a closed list.
func completions(root *cobra.Command) {
	for _, cmd := range root.Commands() {
		for flag, values := range completedFlags(cmd.Name()) {
			if cmd.Flags().Lookup(flag) != nil && len(values) > 0 {
				list := values
				err := cmd.RegisterFlagCompletionFunc(flag, func(*cobra.Command, []string, string) ([]string,
					cobra.ShellCompDirective) {
					return list, cobra.ShellCompDirectiveNoFileComp
				})
				if err != nil {
					panic(err) // a flag that is not there, or twice: a fault of this program
				}
			}
		}
		if cmd.Flags().Lookup("key-file") != nil && cmd.ValidArgsFunction == nil {
			cmd.ValidArgsFunction = farend.CompletePeer
		}
	}
	for name, list := range map[string]func() []string{"explain": explainable, "lab": farend.LabNames} {
		if cmd, _, err := root.Find([]string{name}); err == nil {
			cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
				if len(args) > 0 {
					return nil, cobra.ShellCompDirectiveDefault
				}
				return list(), cobra.ShellCompDirectiveNoFileComp
			}
		}
	}
}

// completedFlags are the flags with closed lists; predict's near and far are stacks.
func completedFlags(command string) map[string][]string {
	stacks := append(cmdflag.StackNames(), link.Systems()...)
	formats := append([]string{"text", "json"}, plan.Formats()...)
	criteria := cmdflag.LimiterNames()
	for _, name := range verdict.Names() {
		for _, subtype := range verdict.Subtypes(name) {
			criteria = append(criteria, verdict.LimiterPath(name, subtype))
		}
	}
	for _, place := range cmdflag.LossPlaces() {
		criteria = append(criteria, "lost-at:"+place)
	}
	flags := map[string][]string{
		"direction": {"up", "down", "both"}, "congestion": socket.CongestionControls(), "target": plan.Targets(),
		"far-target": plan.Targets(),
		"format":     formats, "role": {"sender", "receiver", "both"}, "system": catalog.Families(), "stack": stacks,
		"fail-on":   criteria,
		"collector": {"sh", "powershell", "batch"}, "app": catalog.ProgramNames(), "end": {"near", "far"},
		"goal": {string(tune.Throughput), string(tune.Latency), string(tune.Fair)}, "vpn": model.TunnelNames(),
		"dscp": slices.Sorted(maps.Keys(cmdflag.DSCPNames)),
	}
	if command == "why" {
		flags["fail-on"] = cmdflag.LimiterNames()
		for _, kind := range waits.Kinds() {
			flags["fail-on"] = append(flags["fail-on"], "waits:"+kind)
		}
	}
	if command == "diagnose" {
		flags["fail-on"] = append([]string{"p99>"}, turns.StallNames()...)
	}
	if command == "iperf3" {
		flags["format"] = []string{"k", "m", "g", "t", "K", "M", "G", "T"}
	}
	if command == "predict" {
		flags["near"] = stacks
		flags["far"] = stacks
		flags["direction"] = []string{"up", "down"}
		flags["path"] = farend.LabNames()
	}
	return flags
}

// explainable are the limiters and the parameters.
func explainable() []string { return append(cmdflag.LimiterNames(), parameterNames()...) }

func parameterNames() (all []string) {
	for _, p := range catalog.All() {
		all = append(all, p.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}
