package iperf3

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/datagram"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// udpFlows are the UDP streams of one direction at this end.
type udpFlows struct {
	*datagram.Flows
	spec    transfer.DatagramSpec // as a client requested it; zero at a server
	runTime time.Duration         // duration of run
}

func (f *udpFlows) sends() bool { return f.Send }

func (f *udpFlows) run(ctx context.Context, onInterval func(transfer.Interval)) error {
	started := time.Now()
	err := f.Run(ctx, onInterval)
	f.runTime = time.Since(started)
	return err
}

// end does nothing: datagrams have no end.
func (f *udpFlows) end() {}

func (f *udpFlows) close() { f.Close() }

// udpDrainTime is how long a sender waits for its last datagrams to arrive before it ends the test.
const udpDrainTime = 250 * time.Millisecond

// runTimed moves one direction's datagrams. A receiver stops by its own clock. A sender waits udpDrainTime at the
// end.
func (f *udpFlows) runTimed(ctx context.Context, onInterval func(transfer.Interval)) error {
	if !f.Send {
		var cancel func()
		ctx, cancel = context.WithTimeoutCause(ctx, f.Time, errTestOver)
		defer cancel()
	}
	err := f.run(ctx, onInterval)
	if f.Send && err == nil {
		select {
		case <-time.After(udpDrainTime):
		case <-ctx.Done():
		}
	}
	if errors.Is(err, errTestOver) || errors.Is(err, os.ErrDeadlineExceeded) {
		return nil
	}
	return err
}

// newUDPFlows returns the client's side of one direction.
func newUDPFlows(spec transfer.DatagramSpec, all []*datagram.Flow) *udpFlows {
	return &udpFlows{&datagram.Flows{Send: spec.Direction == transfer.Up, Wide: true, Size: datagramSize(spec.Size),
		Bps: spec.Bps / float64(len(all)), Time: spec.Time, Search: spec.Search, All: all}, spec, 0}
}

// results returns the flows as iperf3's results, numbered from n.
func (f *udpFlows) results(n int) (all []StreamResult) {
	for i, one := range f.All {
		r := StreamResult{ID: StreamID(n + i), Retransmits: -1, End: max(one.Last-f.Omit, 0).Seconds()}
		var errors, packets int64
		if f.Send {
			r.End = max(streamDuration(one.Last, f.runTime, f.Time, f.Bytes)-f.Omit, 0).Seconds()
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
			r.Extended = &ExtendedCounts{Received: a.Datagrams, Reordered: a.Reordered, Duplicates: a.Duplicates,
				Variation: f.Variation(), SocketDrops: one.SocketDrops}
		}
		r.OmittedErrors = &errors
		r.OmittedPackets = &packets
		all = append(all, r)
	}
	return all
}

// outcome returns the client's measurement of one direction.
func (f *udpFlows) outcome(started time.Time) transfer.Outcome {
	r := f.Result(started, false)
	r.Spec = f.spec
	return transfer.Outcome{Datagrams: r}
}
