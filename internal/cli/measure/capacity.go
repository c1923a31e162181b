package measure

import (
	"context"
	"errors"
	"time"

	"github.com/spf13/cobra"

	"github.com/fullpipe-net/fullpipe/internal/cli/console"
	"github.com/fullpipe-net/fullpipe/internal/cli/present"
	"github.com/fullpipe-net/fullpipe/internal/cli/progress"
	"github.com/fullpipe-net/fullpipe/internal/lab"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/search"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/units"
)

// runCapacity searches the largest rate that UDP gets through, each direction alone.
func (f *flags) runCapacity(cmd *cobra.Command, text string, far transfer.Peer,
	specs []transfer.DatagramSpec) error {
	doc := record.Capacity{Header: present.Header(cmd), Peer: lab.PeerName(text)}
	for _, spec := range specs {
		direction, err := f.capacityByFeedback(cmd, far, spec)
		var unsupported *transfer.Unsupported
		if errors.As(err, &unsupported) && unsupported.Field == "Search" {
			console.Note(cmd, "%s: no feedback from there (%s): whole trials instead", spec.Direction, unsupported.Why)
			direction, err = searchCapacity(cmd.Context(), far, spec, func(bps float64) {
				console.Note(cmd, "%s: trying %s", spec.Direction, units.Rate(bps))
			})
		}
		if len(direction.Trials) > 0 {
			doc.Directions = append(doc.Directions, direction)
		}
		if err != nil && len(doc.Directions) == 0 {
			return err
		}
		if err != nil {
			return present.Incomplete(cmd, &doc, &doc.Error, err)
		}
	}
	return present.Document(cmd, &doc)
}

// capacityTime is how long a search by feedback takes, RFC 9097's default.
const capacityTime = 10 * time.Second

// capacityByFeedback lets the sender search while it sends.
func (f *flags) capacityByFeedback(cmd *cobra.Command, far transfer.Peer, spec transfer.DatagramSpec) (
	record.CapacityDirection, error) {
	spec.Search = true
	spec.Bps = 0
	out := console.Progress(cmd)
	lines := progress.NewIntervals(out, f.every(out), transfer.Spec{Direction: spec.Direction, Time: spec.Time})
	lines.Plain = true
	r, err := transfer.RunDatagrams(cmd.Context(), far, spec, func(i transfer.Interval) { lines.Show(spec.Direction, i) })
	lines.Clear()
	if r == nil {
		return record.CapacityDirection{Direction: spec.Direction}, err
	}
	return report.Capacity(r), err
}

// searchCapacity tries whole rates, one after the other.
func searchCapacity(ctx context.Context, far transfer.Peer, spec transfer.DatagramSpec, trying func(float64)) (
	record.CapacityDirection, error) {
	out := record.CapacityDirection{Direction: spec.Direction, Protocol: "udp", Method: record.ByTrials}
	var capacity search.Capacity
	framed := 1 + 28/float64(spec.Size) // until it is known which IP
	for {
		bps, done := capacity.Next()
		out.CapacityBps, out.AtLeast = capacity.Best()
		if done {
			return out, nil
		}
		trying(bps)
		spec.Bps = bps / framed
		spec.Time = time.Second
		r, err := transfer.RunDatagrams(ctx, far, spec, nil)
		if err != nil {
			return out, err
		}
		framed = 1 + float64(r.Headers)/float64(spec.Size)
		trial := search.CapacityTrial{Offered: bps, Sent: float64(r.Sent*int64(spec.Size)*8) / spec.Time.Seconds() * framed,
			Received: r.Bps() * framed, LossRatio: r.LossRatio()}
		told := record.CapacityTrial{OfferedBps: bps, ReceivedBps: trial.Received, LossRatio: trial.LossRatio}
		if r.Variation != nil {
			trial.Variation = r.Variation.P95
			p95 := trial.Variation.Seconds()
			told.VariationS = &p95
		}
		out.Trials = append(out.Trials, told)
		capacity.Observe(trial)
	}
}
