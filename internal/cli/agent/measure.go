package agent

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/cli/farend"
	"github.com/fullpipe-net/fullpipe/internal/fleet/agent"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// connectTime limits the wait for one address of the far end. Many addresses share the time in which it admits.
const connectTime = 3 * time.Second

// measure returns the function that makes both transfers of a run and encodes its document.
func measure(hostID string, losses *farend.Losses) func(context.Context, bus.Order, *agent.Use) ([]byte, error) {
	return func(ctx context.Context, o bus.Order, used *agent.Use) ([]byte, error) {
		began := time.Now()
		ctx = history.WithSession(ctx)
		far, err := connect(ctx, o, used)
		if err != nil {
			return nil, err
		}
		defer far.Close()
		doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: build.Version(),
			StartedAt: began.UTC().Round(time.Millisecond)}, Peer: o.Far}
		err = transfers(ctx, losses.Peer(far), o, doc, used)
		if len(doc.Directions) == 0 {
			return nil, err
		}
		if err != nil {
			doc.Error = &record.Failure{Code: "far-end", Message: err.Error()}
		}
		e := history.NewEnvelope(doc, began, time.Since(began))
		e.ID = o.Run
		e.TestID = o.Run
		e.HostID = hostID
		e.PathKey = o.PathKey
		e.Origin = record.Origin(o.Origin)
		e.Labels = map[string]string{"task": o.Task}
		doc.Envelope = e
		encoded, encodeErr := record.Encode(doc)
		return encoded, errors.Join(err, encodeErr)
	}
}

// connect connects to the first address of the far end that accepts the run's key.
func connect(ctx context.Context, o bus.Order, used *agent.Use) (transfer.Peer, error) {
	key, err := probe.ParseKey(o.Key)
	if err != nil {
		return nil, err
	}
	unreachable := &agent.UnreachableError{}
	end := time.Now().Add(o.Within) // the far end admits nobody later
	for i, at := range o.Peers {
		wait := min(connectTime, time.Until(end)/time.Duration(len(o.Peers)-i))
		connecting, cancel := context.WithTimeout(ctx, wait)
		used.Connections++
		far, err := probe.Far{Address: at.String(), Key: key, TestID: o.Run, Cautious: true,
			OnQueued: func(int) {}}.Connect(connecting)
		cancel()
		if err == nil {
			return far, nil
		}
		unreachable.Attempts = append(unreachable.Attempts, agent.Attempt{To: at, Err: err})
	}
	return nil, unreachable
}

// transfers makes the transfers, one after the other.
func transfers(ctx context.Context, far transfer.Peer, o bus.Order, doc *record.Measure, used *agent.Use) error {
	streams := max(o.Spec.Streams, 1)
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		socket := transfer.Socket{Congestion: o.Spec.Congestion, PacingBps: math.Floor(o.Spec.Bps / float64(streams))}
		spec := transfer.Spec{Direction: direction, Streams: o.Spec.Streams, Time: o.Spec.Time, Bytes: o.Spec.Bytes,
			Near: socket, Far: socket, TestID: o.Run}
		used.Connections += streams
		result, err := transfer.Run(ctx, far, spec, nil)
		if result != nil {
			if result.Near != nil {
				used.Bytes += result.Near.Moved
			}
			doc.Near = report.Host(result.Near)
			doc.Far = report.Host(result.Far)
			doc.Directions = append(doc.Directions, report.Direction(result, live.Judge(result), nil))
		}
		if err != nil {
			return err
		}
	}
	return nil
}
