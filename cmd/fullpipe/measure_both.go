package main

import (
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/limiter"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// besideTheOther is what has to be known of both directions' figures.
const besideTheOther = "measured while the other direction ran too"

// runBoth measures both directions at the same time.
func (f *measureFlags) runBoth(cmd *cobra.Command, text string, up, down transfer.Spec) error {
	ctx := cmd.Context()
	f.notes = cmd.ErrOrStderr()
	far, err := f.open(ctx, text)
	if err != nil {
		return err
	}
	defer far.Close()
	carrier, ok := far.(transfer.BothWaysPeer)
	if !ok {
		return &usageError{"--bidir", "this far end carries one direction at a time", "--direction both, one after the other"}
	}
	intervals := map[transfer.Direction][]transfer.Interval{}
	var mu sync.Mutex // guards intervals
	lines := newLive(cmd.ErrOrStderr(), f.every(cmd.ErrOrStderr()), up, down)
	upResult, downResult, err := carrier.RunBoth(ctx, up, down, func(d transfer.Direction, i transfer.Interval) {
		mu.Lock()
		defer mu.Unlock()
		intervals[d] = append(intervals[d], i)
		lines.show(d, i)
	})
	lines.clear()
	var unsupported *transfer.Unsupported
	if errors.As(err, &unsupported) {
		return &usageError{"measure --bidir", err.Error(), "leave that option out, or --direction both"}
	}
	doc := report.Measure{Header: newHeader(cmd), Peer: peerName(text)}
	for _, result := range []*transfer.Result{upResult, downResult} {
		if result == nil {
			continue
		}
		result.Warnings = append(result.Warnings, besideTheOther)
		if doc.Near == nil {
			doc.Near = report.NewHost(result.Near)
		}
		if doc.Far == nil {
			doc.Far = report.NewHost(result.Far)
		}
		doc.Directions = append(doc.Directions, report.NewDirection(result, limiter.Judge(result), intervals[result.Spec.Direction]))
	}
	if err != nil {
		return f.cutShort(cmd, &doc, err)
	}
	return show(cmd, &doc)
}
