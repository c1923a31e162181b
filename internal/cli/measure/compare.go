package measure

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/cmdflag"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/exit"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/compare"
)

// compareFlags are the flags of a comparison of two ways.
type compareFlags struct {
	on     bool
	rounds int
}

const compareHint = "fullpipe measure --compare ADDRESS1 ADDRESS2; or one lab with a VPN"

// check says whether the arguments name two ways to one far end.
func (c *compareFlags) check(args []string) error {
	switch {
	case len(args) == 1 && strings.HasPrefix(args[0], lab.Prefix):
		return nil
	case len(args) != 2:
		return exit.Usage("--compare", fmt.Sprintf("%d addresses given, two are needed", len(args)), compareHint)
	case args[0] == args[1]:
		return exit.Usage("--compare", "both addresses are "+args[0], compareHint)
	}
	for _, a := range args {
		if strings.HasPrefix(a, lab.Prefix) {
			return exit.Usage("--compare", "two labs are not the same far end", compareHint)
		}
	}
	return nil
}

// compareAlone refuses flags that a comparison does not support.
func (f *flags) compareAlone(cmd *cobra.Command) error {
	if !f.compare.on {
		return cmdflag.Check(cmdflag.If(cmd.Flags().Changed("rounds"), "--rounds", "is for comparisons", "--compare"))
	}
	return cmdflag.Check(
		cmdflag.If(f.compare.rounds < 1 || f.compare.rounds > 100, "--rounds", fmt.Sprintf("%d rounds", f.compare.rounds),
			"1 to 100"),
		cmdflag.If(f.bidir, "--compare", "measures one direction at a time, not --bidir", "--direction both"),
		cmdflag.If(f.picture != "", "--picture", "draws one transfer, not a comparison",
			"fullpipe measure --picture for each address alone"),
		cmdflag.If(f.udp.on, "--compare", "is for TCP, not --udp", "--udp for each address alone"),
	)
}

// runCompare measures both ways in turn, first, second, second, first, each direction
// alone.
func (f *flags) runCompare(cmd *cobra.Command, peers []string, specs []transfer.Spec) error {
	f.Notes = console.Progress(cmd)
	doc := record.Compare{Header: present.Header(cmd), Peers: wayNames(peers), Rounds: f.compare.rounds,
		Directions: []record.ComparedDirection{}}
	line := progress.NewLine(console.Progress(cmd))
	turns := 4 * f.compare.rounds
	for n, spec := range specs {
		var results [2][]*transfer.Result
		var failed error
		for turn := 0; turn < turns && failed == nil; turn++ {
			way := (turn + 1) / 2 % 2
			line.Draw(float64(n*turns+turn)/float64(len(specs)*turns), string(spec.Direction)+"  ", 0, doc.Peers[way])
			var result *transfer.Result
			result, failed = f.oneOf(cmd.Context(), peers[way], spec)
			if failed == nil {
				results[way] = append(results[way], result)
			}
		}
		line.Clear()
		sides := [2]compare.Side{compare.NewSide(results[0]), compare.NewSide(results[1])}
		if failed == nil || len(results[1]) > 0 {
			doc.Directions = append(doc.Directions, report.ComparedDirection(spec.Direction, doc.Peers, sides))
		}
		if failed != nil {
			return f.compareCutShort(cmd, &doc, failed)
		}
	}
	return present.Document(cmd, &doc)
}

// oneOf measures one way once, on a connection of its own: some far ends take one at a
// time.
func (f *flags) oneOf(ctx context.Context, text string, spec transfer.Spec) (*transfer.Result, error) {
	far, err := f.Open(ctx, text)
	if err != nil {
		return nil, err
	}
	defer far.Close()
	result, err := transfer.Run(ctx, far, spec, nil)
	var unsupported *transfer.Unsupported
	switch {
	case errors.As(err, &unsupported):
		return nil, cannotHave(unsupported, "a value that the far end allows, or leave that option out")
	case err != nil:
		return nil, fmt.Errorf("%s: %w", text, err)
	}
	return result, nil
}

// wayNames returns the names of the two ways.
func wayNames(peers []string) [2]string {
	if lab := os.Getenv(lab.PeerVariable); lab != "" {
		return [2]string{lab + " (through the VPN)", lab + " (past it)"}
	}
	return [2]string(peers)
}

// compareCutShort prints the results before an error.
func (f *flags) compareCutShort(cmd *cobra.Command, doc *record.Compare, err error) error {
	if len(doc.Directions) == 0 {
		return err
	}
	doc.Interrupted = true
	return present.Incomplete(cmd, doc, &doc.Error, err)
}
