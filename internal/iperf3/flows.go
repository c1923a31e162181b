package iperf3

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/datagram"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// flows is one direction's UDP streams at this end.
type flows struct {
	*datagram.Flows
	spec transfer.DatagramSpec // as a client was asked; a server has none
	ran  time.Duration         // how long run took
}

func (f *flows) sends() bool { return f.Send }

func (f *flows) run(ctx context.Context, each func(transfer.Interval)) error {
	started := time.Now()
	err := f.Run(ctx, each)
	f.ran = time.Since(started)
	return err
}

// end has nothing to do: datagrams have no end.
func (f *flows) end() {}

func (f *flows) close() { f.Close() }

// settle is how long the last datagrams may be on their way before the test is ended.
const settle = 250 * time.Millisecond

// carry moves one direction's datagrams for its time: a receiver ends by its own clock,
// and what was sent last gets the time to arrive.
func (f *flows) carry(ctx context.Context, each func(transfer.Interval)) error {
	if !f.Send {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, f.Time, errOver)
		defer cancel()
	}
	err := f.run(ctx, each)
	if f.Send && err == nil {
		select {
		case <-time.After(settle):
		case <-ctx.Done():
		}
	}
	if errors.Is(err, errOver) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// newFlows takes over one direction's streams.
func newFlows(spec transfer.DatagramSpec, all []*datagram.Flow) *flows {
	return &flows{&datagram.Flows{Send: spec.Direction == transfer.Up, Wide: true, Size: datagramSize(spec.Size),
		Bps: spec.Bps / float64(len(all)), Time: spec.Time, Search: spec.Search, All: all}, spec, 0}
}

// results are the flows in iperf3's words, numbered from the nth stream on.
func (f *flows) results(n int) (all []StreamResult) {
	for i, one := range f.All {
		r := StreamResult{ID: StreamID(n + i), Retransmits: -1, End: max(one.Last-f.Omit, 0).Seconds()}
		var errors, packets int64
		if f.Send {
			r.End = max(lasted(one.Last, f.ran, f.Time, f.Bytes)-f.Omit, 0).Seconds()
			r.Packets = int64(one.Sent)
			packets = int64(one.OmittedSent)
			r.Bytes = int64(one.Sent-one.OmittedSent) * int64(f.Size)
		} else {
			a := one.Arrivals
			before := datagram.Arrivals{}
			if one.Omitted != nil {
				before = *one.Omitted
			}
			errors = before.Lost
			packets = int64(before.Highest)
			r.Bytes = a.Bytes - before.Bytes
			r.Packets = int64(a.Highest)
			r.Errors = a.Lost
			r.Jitter = a.Jitter.Seconds()
			if f.Omit == 0 {
				r.Start = one.First.Seconds()
			}
			r.More = &More{Received: a.Datagrams, Reordered: a.Reordered, Duplicates: a.Duplicates,
				Variation: f.Variation()}
		}
		r.OmittedErrors = &errors
		r.OmittedPackets = &packets
		all = append(all, r)
	}
	return all
}

// outcome is what the client saw of one direction.
func (f *flows) outcome(started time.Time) transfer.Outcome {
	r := f.Result(started, false)
	r.Spec = f.spec
	return transfer.Outcome{Datagrams: r}
}
