package main

import (
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/catalog"
	"github.com/fullpipe-net/fullpipe/internal/link"
	"github.com/fullpipe-net/fullpipe/internal/model"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/tune"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
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
			cmd.ValidArgsFunction = completePeer
		}
	}
	for name, list := range map[string]func() []string{"explain": explainable, "lab": labNames} {
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
	stacks := stackNames()
	formats := append([]string{"text", "json"}, plan.Formats()...)
	criteria := limiterNames()
	for _, name := range verdict.Names() {
		for _, subtype := range verdict.Subtypes(name) {
			criteria = append(criteria, string(name)+"/"+subtype)
		}
	}
	flags := map[string][]string{
		"direction": {"up", "down", "both"}, "congestion": socket.CongestionControls(), "target": plan.Targets(),
		"far-target": plan.Targets(),
		"format":     formats, "role": {"sender", "receiver", "both"}, "system": catalog.Families(), "stack": stacks,
		"fail-on":   criteria,
		"collector": {"sh", "powershell"}, "app": catalog.ProgramNames(), "end": {"near", "far"},
		"goal": {string(tune.Throughput), string(tune.Latency), string(tune.Fair)}, "vpn": model.TunnelNames(),
		"dscp": slices.Sorted(maps.Keys(classes)),
	}
	if command == "iperf3" {
		flags["format"] = []string{"k", "m", "g", "t", "K", "M", "G", "T"}
	}
	if command == "predict" {
		flags["near"] = stacks
		flags["far"] = stacks
		flags["direction"] = []string{"up", "down"}
		flags["path"] = labNames()
	}
	return flags
}

// completePeer offers labs and the kinds of PEER; hosts are the user's to know.
func completePeer(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all := []string{"fullpipe://", "iperf3://", "iperf2://", "ndt7://", "ssh://", "https://"}
	for _, name := range labNames() {
		all = append(all, labPrefix+name)
	}
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, begun) }),
		cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// explainable are the limiters and the parameters.
func explainable() []string { return append(limiterNames(), parameterNames()...) }

func parameterNames() (all []string) {
	for _, p := range catalog.All() {
		all = append(all, p.Name)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func labNames() (all []string) {
	for _, p := range link.Profiles() {
		all = append(all, p.Name)
	}
	return all
}
