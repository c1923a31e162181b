package farend

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/link"
)

// CompletePeer offers labs and the kinds of PEER; hosts are the user's to know.
func CompletePeer(_ *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	all := []string{"fullpipe://", "iperf3://", "iperf2://", "ndt7://", "ssh://", "https://"}
	for _, name := range LabNames() {
		all = append(all, lab.Prefix+name)
	}
	return slices.DeleteFunc(all, func(s string) bool { return !strings.HasPrefix(s, begun) }),
		cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveNoSpace
}

// LabNames returns the names of the lab's profiles.
func LabNames() (all []string) {
	for _, p := range link.Profiles() {
		all = append(all, p.Name)
	}
	return all
}
