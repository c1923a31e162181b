package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// ipHeaders are what UDP over IPv4 adds to a datagram's payload, bytes.
const ipHeaders = 28

// runCapacity searches the largest rate that UDP gets through, each direction alone.
func (f *measureFlags) runCapacity(cmd *cobra.Command, text string, far transfer.DatagramPeer, specs []transfer.DatagramSpec) error {
	doc := report.Capacity{Header: newHeader(cmd), Peer: peerName(text)}
	for _, spec := range specs {
		direction, err := searchCapacity(cmd.Context(), far, spec, func(bps float64) {
			fmt.Fprintf(cmd.ErrOrStderr(), "%s: trying %s\n", spec.Direction, units.Rate(bps))
		})
		if len(direction.Trials) > 0 {
			doc.Directions = append(doc.Directions, direction)
		}
		if err != nil && len(doc.Directions) == 0 {
			return err
		}
		if err != nil {
			failure, status := describe(cmd.Context(), err)
			doc.Error = &failure
			printCapacity(cmd, &doc)
			if !wantsJSON(cmd) {
				fmt.Fprintln(cmd.ErrOrStderr(), "fullpipe: "+failure.Text())
			}
			return exitStatus(status)
		}
	}
	return printCapacity(cmd, &doc)
}

func searchCapacity(ctx context.Context, far transfer.DatagramPeer, spec transfer.DatagramSpec, trying func(float64)) (report.CapacityDirection, error) {
	out := report.CapacityDirection{Direction: spec.Direction, Protocol: "udp"}
	var capacity search.Capacity
	framed := float64(spec.Size+ipHeaders) / float64(spec.Size)
	for {
		bps, done := capacity.Next()
		if out.CapacityBps, out.AtLeast = capacity.Best(); done {
			return out, nil
		}
		trying(bps)
		spec.Bps, spec.Time = bps/framed, time.Second
		r, err := far.RunDatagrams(ctx, spec, nil)
		if err != nil {
			return out, err
		}
		trial := search.CapacityTrial{Offered: bps, Sent: float64(r.Sent*int64(spec.Size)*8) / spec.Time.Seconds() * framed,
			Received: r.Bps() * framed, LossRatio: r.LossRatio()}
		told := report.CapacityTrial{OfferedBps: bps, ReceivedBps: trial.Received, LossRatio: trial.LossRatio}
		if r.Variation != nil {
			trial.Variation = r.Variation.P95
			p95 := trial.Variation.Seconds()
			told.VariationS = &p95
		}
		out.Trials = append(out.Trials, told)
		capacity.Observe(trial)
	}
}

func printCapacity(cmd *cobra.Command, doc *report.Capacity) error {
	if wantsJSON(cmd) {
		return printJSON(cmd.OutOrStdout(), doc)
	}
	doc.WriteText(cmd.OutOrStdout())
	return nil
}
