package agent

import (
	"context"
	"errors"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/build"
	"github.com/fullpipe-net/fullpipe/internal/fleet/agent"
	"github.com/fullpipe-net/fullpipe/internal/fleet/bus"
	"github.com/fullpipe-net/fullpipe/internal/history"
	"github.com/fullpipe-net/fullpipe/internal/peer"
	"github.com/fullpipe-net/fullpipe/internal/probe"
	"github.com/fullpipe-net/fullpipe/internal/record"
	"github.com/fullpipe-net/fullpipe/internal/report"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
	"github.com/fullpipe-net/fullpipe/internal/verdict/live"
)

// connectTime limits the wait for one address of the far end. Many addresses share the time in which it admits.
const connectTime = 3 * time.Second

// measure returns the function that makes both transfers of a run and encodes its document.
func measure(hostID string) func(context.Context, bus.Order, func(int64)) ([]byte, error) {
	return func(ctx context.Context, o bus.Order, moved func(int64)) ([]byte, error) {
		began := time.Now()
		ctx = history.WithSession(ctx)
		far, err := connect(ctx, o)
		if err != nil {
			return nil, &agent.UnreachableError{Err: err}
		}
		defer far.Close()
		doc := &record.Measure{Header: record.Header{Schema: "fullpipe/measure/v1", Version: build.Version(),
			StartedAt: began.UTC().Round(time.Millisecond)}, Peer: o.Far}
		err = transfers(ctx, far, o, doc, moved)
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
func connect(ctx context.Context, o bus.Order) (transfer.Peer, error) {
	key, err := probe.ParseKey(o.Key)
	if err != nil {
		return nil, err
	}
	var failed []error
	end := time.Now().Add(o.Within) // the far end admits nobody later
	for i, at := range o.Peers {
		wait := min(connectTime, time.Until(end)/time.Duration(len(o.Peers)-i))
		connecting, cancel := context.WithTimeout(ctx, wait)
		far, err := peer.Open(connecting, "fullpipe://"+at.String(), peer.Options{Key: &key, TestID: o.Run})
		cancel()
		if err == nil {
			return far, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

// transfers makes the transfers, one after the other.
func transfers(ctx context.Context, far transfer.Peer, o bus.Order, doc *record.Measure, moved func(int64)) error {
	var total int64
	for _, direction := range []transfer.Direction{transfer.Up, transfer.Down} {
		socket := transfer.Socket{Congestion: o.Spec.Congestion, PacingBps: o.Spec.Bps}
		spec := transfer.Spec{Direction: direction, Streams: o.Spec.Streams, Time: o.Spec.Time, Bytes: o.Spec.Bytes,
			Near: socket, Far: socket, TestID: o.Run}
		result, err := transfer.Run(ctx, far, spec, func(i transfer.Interval) {
			total += i.Bytes
			moved(total)
		})
		if result != nil {
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
