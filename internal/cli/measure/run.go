package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/path"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/render/svg"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

func (f *flags) run(cmd *cobra.Command, text string, specs []transfer.Spec) error {
	ctx := cmd.Context()
	f.Notes = console.Progress(cmd)
	defer f.discard()
	if err := f.begin(cmd); err != nil {
		return err
	}
	far, err := f.Open(ctx, text)
	if err != nil {
		return err
	}
	defer far.Close()
	losses := farend.WatchLosses()
	defer losses.Close()
	watched := losses.Peer(far)
	doc := record.Measure{Header: present.Header(cmd), Peer: lab.PeerName(text)}
	for _, spec := range specs {
		direction, err := f.measureOne(cmd, watched, spec, &doc)
		if direction != nil {
			doc.Directions = append(doc.Directions, *direction)
			doc.Criteria = append(doc.Criteria, f.criteria.judge(spec.Direction, direction.GoodputBps, direction.Verdict,
				lossesOf(direction))...)
		}
		if err != nil {
			return f.cutShort(cmd, &doc, err)
		}
	}
	return showJudged(cmd, &doc, doc.Criteria)
}

// measureOne runs one transfer. With an error the direction has what was
// measured until then, or is nil.
func (f *flags) measureOne(cmd *cobra.Command, far transfer.Peer, spec transfer.Spec,
	doc *record.Measure) (*record.Direction, error) {
	var intervals []transfer.Interval
	ctx := cmd.Context()
	lines := progress.NewIntervals(console.Progress(cmd), f.every(console.Progress(cmd)), spec)
	result, err := transfer.Run(ctx, far, spec, func(i transfer.Interval) {
		intervals = append(intervals, i)
		present.Interval(cmd, spec.Direction, intervals)
		lines.Show(spec.Direction, i)
	})
	lines.Clear()
	var unsupported *transfer.Unsupported
	if errors.As(err, &unsupported) {
		return nil, cannotHave(unsupported, "a value that the far end allows, or leave that option out")
	}
	if result == nil {
		return nil, err
	}
	doc.Near = report.Host(result.Near)
	doc.Far = report.Host(result.Far)
	verdict := live.Judge(result)
	result.Warnings = append(result.Warnings, f.pathNotes(ctx, result, verdict)...)
	direction := report.Direction(result, verdict, intervals)
	drawn := present.WriteFile("--picture", f.pictures[spec.Direction], func(w io.Writer) error {
		return svg.Picture(w, &direction)
	})
	return &direction, errors.Join(err, drawn)
}

// begin begins the pictures that were asked for, one for each direction; with both the
// file's name says which.
func (f *flags) begin(cmd *cobra.Command) (err error) {
	directions, err := f.Directions()
	if err != nil || f.picture == "" {
		return err
	}
	f.pictures = map[transfer.Direction]*atomicfile.File{}
	for _, d := range directions {
		name := f.picture
		if len(directions) > 1 {
			ext := filepath.Ext(name)
			name = fmt.Sprintf("%s-%s%s", strings.TrimSuffix(name, ext), d, ext)
		}
		if f.pictures[d], err = present.CreateFile(cmd, "--picture", name); err != nil {
			return err
		}
	}
	return nil
}

// discard takes away the pictures that were not drawn.
func (f *flags) discard() {
	for _, file := range f.pictures {
		file.Discard()
	}
}

// pathNotes returns notes about the path from the two ends' views of the handshake. After a black hole it probes the
// path MTU, which it also keeps in the result.
func (f *flags) pathNotes(ctx context.Context, r *transfer.Result, v verdict.Verdict) []string {
	var notes []string
	if r.Near == nil || len(r.Near.Streams) == 0 {
		return nil
	}
	near := r.Near.Streams[0]
	if r.Far != nil && len(r.Far.Streams) > 0 {
		if differ := path.Disagreements(near.Handshake, r.Far.Streams[0].Handshake); len(differ) > 0 {
			notes = append(notes, "the two ends disagree on "+strings.Join(differ, " and ")+
				": something on the path changes the handshake")
		}
	}
	received, known := r.Received()
	nothing := known && near.Handshake != nil && received.Bytes < 2*int64(near.Handshake.MSS)
	if (nothing || v.Limiter == verdict.MTUBlackHole) && ctx.Err() == nil {
		ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
		defer cancel()
		route, _ := f.Route()
		if m, err := path.FindMTU(ctx, near.Remote.Addr(), path.Config{Route: route}); err == nil && m.Bytes < m.Largest {
			r.ProbedMTU = m.Bytes
			notes = append(notes, fmt.Sprintf("packets of up to %d bytes pass, larger ones vanish although %d could leave: a "+
				"router drops them without a word",
				m.Bytes, m.Largest))
		}
	}
	return notes
}

// cutShort prints the results before an error.
func (f *flags) cutShort(cmd *cobra.Command, doc *record.Measure, err error) error {
	if len(doc.Directions) == 0 {
		return err
	}
	return present.Incomplete(cmd, doc, &doc.Error, err)
}

// minInterval is the shortest interval at which far ends report arrivals.
const minInterval = 100 * time.Millisecond

// every is how often lines are printed there, 0 for never.
func (f *flags) every(out io.Writer) time.Duration {
	if !f.everywhere && !console.IsTerminal(out) {
		return 0
	}
	return time.Duration(f.interval)
}
