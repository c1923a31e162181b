package probe

import (
	"cmp"
	"context"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/requests"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// awaitStreams returns the data connections when all have arrived, with an error those until then.
func (t *offered) awaitStreams(ctx context.Context) (streams []*socket.Stream, err error) {
	n := len(t.expected.Tokens)
	if t.expected.Repeated { // they come one after the other
		n = 0
	}
	ports := t.expected.Ports
	late := time.NewTimer(t.timeouts().Answer)
	defer late.Stop()
	for len(streams) < n {
		select {
		case conn := <-t.arriving:
			if from := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Port(); len(ports) > 0 && !slices.Contains(ports, from) {
				conn.Close()
				return streams, fmt.Errorf("a NAT moved a data connection to port %d, so its window could not be set", from)
			}
			st, err := socket.NewStream(conn, t.expected.Options)
			if err != nil {
				return streams, err
			}
			streams = append(streams, st)
		case <-late.C:
			return streams, fmt.Errorf("%d of %d data connections arrived within %v", len(streams), n, t.timeouts().Answer)
		case <-ctx.Done():
			return streams, context.Cause(ctx)
		}
	}
	return streams, nil
}

// arrived returns the data connections that wait for their transfer.
func (t *offered) arrived() (streams []*socket.Stream) {
	for {
		select {
		case conn := <-t.arriving:
			if st, err := socket.NewStream(conn, t.expected.Options); err == nil {
				streams = append(streams, st)
			}
		default:
			return streams
		}
	}
}

// unreadBytes returns the payload that waits in the kernel.
func unreadBytes(streams []*socket.Stream) (bytes int64) {
	for _, s := range streams {
		var sample transfer.Sample
		if s.Sample(&sample, false) == nil && sample.Have&transfer.HaveQueue != 0 {
			bytes += sample.Queued
		}
	}
	return bytes
}

// move moves the payload within the allowance, and sends progress.
func (t *offered) move(ctx context.Context, streams []*socket.Stream) error {
	spec := t.spec
	if limit := t.allowance.Bytes; limit > 0 && (spec.Bytes == 0 || limit < spec.Bytes) {
		spec.Bytes = limit
	}
	if t.allowance.Time > 0 {
		var end context.CancelFunc
		ctx, end = context.WithTimeoutCause(ctx, t.allowance.Time, errTime)
		defer end()
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var moved int64
	p := bulk.Endpoint{Send: spec.Direction == transfer.Down, Spec: spec, Streams: streams,
		Every: 200 * time.Millisecond, Latest: &t.sending, Stall: t.timeouts().Stall}
	// Progress also serves as keepalive, so it is sent without data too. On a slow path its traffic would disturb
	// the measurement, so it waits for minProgressBytes.
	const minProgressBytes = 32 << 10
	alive := time.NewTicker(t.timeouts().Stall / 4)
	defer alive.Stop()
	var unreported transfer.Interval
	intervals := make(chan transfer.Interval, 64)
	each := func(i transfer.Interval) {
		moved += i.Bytes
		if err := t.Hello.Limits.Excess(moved, i.End); err != nil {
			stop(err)
		}
		if p.Send {
			return
		}
		select {
		case intervals <- i:
		default: // a client that does not read misses intervals, never the result
		}
	}
	p.Each = each
	move := p.Run
	if spec.Requests.On() {
		move = requests.Server{Spec: spec, Options: t.expected.Options, Arriving: t.arriving, Bytes: spec.Bytes,
			Each: each}.Run
	}
	type outcome struct {
		end *transfer.End
		err error
	}
	done := make(chan outcome, 1)
	losses := func(*transfer.End, bool) {}
	if t.Losses != nil {
		losses = t.Losses()
	}
	over := t.Host.Begin(cmp.Or(spec.TestID, t.Remote.Addr().String()))
	go func() {
		end, err := move(ctx)
		if concurrent := over(); end != nil {
			end.ConcurrentTests = concurrent
		}
		losses(end, p.Send)
		done <- outcome{end, err}
	}()
	for {
		select {
		case o := <-done:
			t.end = o.end
			return o.err
		case i := <-intervals:
			unreported = joined(unreported, i)
			if unreported.Bytes < minProgressBytes {
				continue
			}
			merged := unreported
			t.send(kindProgress, progressMessage{&merged})
			unreported = transfer.Interval{}
			alive.Reset(t.timeouts().Stall / 4)
		case <-alive.C:
			var m progressMessage
			if merged := unreported; merged.Bytes > 0 {
				m.Interval = &merged
				unreported = transfer.Interval{}
			}
			t.send(kindProgress, m)
		}
	}
}

// joined returns one interval for two successive ones. The first may be zero: there is none. An interval without bytes
// counts as any other, so that the intervals of a transfer have no gaps.
func joined(a, b transfer.Interval) transfer.Interval {
	start := a.Start
	if a.End == 0 {
		start = b.Start
	}
	return transfer.Interval{Start: start, End: b.End, Bytes: a.Bytes + b.Bytes}
}

// downsample limits the samples of a result by the bytes moved: one per 4 kB, at least 24. A slow path must not
// spend its time on them.
func downsample(end *transfer.End) {
	var bytes int64
	for _, s := range end.Streams {
		bytes += s.Bytes
	}
	n := int(min(max(bytes/4000, 24), 4000)) / max(len(end.Streams), 1)
	for i, s := range end.Streams {
		end.Streams[i].Samples = transfer.Downsample(s.Samples, max(n, 2))
	}
}
