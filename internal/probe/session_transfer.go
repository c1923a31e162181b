package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func refusal(err error) accept {
	var u *transfer.Unsupported
	if errors.As(err, &u) {
		return accept{Field: u.Field, Error: u.Reason}
	}
	return accept{Error: err.Error()}
}

// transfer runs the server's part of a transfer over the arriving streams.
func (s *Session) transfer(ctx context.Context, spec transfer.Spec, expected Expected, arriving <-chan *net.TCPConn,
	sending *bulk.Latest,
	send func(kind, any) error) (*transfer.End, error) {
	n := len(expected.Tokens)
	ports := expected.Ports
	var streams []*socket.Stream
	defer func() { closeAll(streams) }()
	late := time.NewTimer(s.timeouts().Answer)
	defer late.Stop()
	for len(streams) < n {
		select {
		case conn := <-arriving:
			if from := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Port(); len(ports) > 0 && !slices.Contains(ports, from) {
				conn.Close()
				return nil, fmt.Errorf("a NAT moved a data connection to port %d, so its window could not be set",
					from)
			}
			st, err := socket.NewStream(conn, expected.Options)
			if err != nil {
				return nil, err
			}
			streams = append(streams, st)
		case <-late.C:
			return nil, fmt.Errorf("%d of %d data connections arrived within %v", len(streams), n, s.timeouts().Answer)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var moved int64
	p := bulk.Endpoint{Send: spec.Direction == transfer.Down, Spec: spec, Streams: streams,
		Every:  200 * time.Millisecond,
		Latest: sending,
		Stall:  s.timeouts().Stall}
	// Progress also serves as keepalive, so it is sent without data too. On a slow path its traffic would disturb
	// the measurement, so it waits for minProgressBytes.
	const minProgressBytes = 32 << 10
	alive := time.NewTicker(s.timeouts().Stall / 4)
	defer alive.Stop()
	var unreported transfer.Interval
	intervals := make(chan transfer.Interval, 64)
	p.Each = func(i transfer.Interval) {
		moved += i.Bytes
		if err := s.Hello.Limits.Excess(moved, i.End); err != nil {
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
	type outcome struct {
		end *transfer.End
		err error
	}
	done := make(chan outcome, 1)
	over := s.Host.Begin(cmp.Or(spec.TestID, s.Remote.Addr().String()))
	go func() {
		end, err := p.Run(ctx)
		if concurrent := over(); end != nil {
			end.ConcurrentTests = concurrent
		}
		done <- outcome{end, err}
	}()
	for {
		select {
		case o := <-done:
			return o.end, o.err
		case i := <-intervals:
			unreported = joined(unreported, i)
			if unreported.Bytes < minProgressBytes {
				continue
			}
			merged := unreported
			send(kindProgress, progressMessage{&merged})
			unreported = transfer.Interval{}
			alive.Reset(s.timeouts().Stall / 4)
		case <-alive.C:
			var m progressMessage
			if merged := unreported; merged.Bytes > 0 {
				m.Interval = &merged
				unreported = transfer.Interval{}
			}
			send(kindProgress, m)
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
	n := int(min(max(bytes/4000, 24), 4000)) / len(end.Streams)
	for i, s := range end.Streams {
		end.Streams[i].Samples = transfer.Downsample(s.Samples, max(n, 2))
	}
}
