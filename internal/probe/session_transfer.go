package probe

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/engine"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

func refusal(err error) accept {
	var u *transfer.Unsupported
	if errors.As(err, &u) {
		return accept{Field: u.Field, Error: u.Why}
	}
	return accept{Error: err.Error()}
}

// transfer carries out the server's part over the streams that arrive.
func (s *Session) transfer(ctx context.Context, spec transfer.Spec, expected Expected, arriving <-chan *net.TCPConn,
	sending *engine.Latest,
	send func(kind, any) error) (*transfer.End, error) {
	n := len(expected.Tokens)
	ports := expected.Ports
	var streams []*socket.Stream
	defer func() { closeAll(streams) }()
	late := time.NewTimer(s.times().Answer)
	defer late.Stop()
	for len(streams) < n {
		select {
		case conn := <-arriving:
			if from := conn.RemoteAddr().(*net.TCPAddr).AddrPort().Port(); len(ports) > 0 && !slices.Contains(ports, from) {
				conn.Close()
				return nil, fmt.Errorf("an address translator moved a data connection to port %d, so its window could not be set",
					from)
			}
			st, err := socket.NewStream(conn, expected.Options)
			if err != nil {
				return nil, err
			}
			streams = append(streams, st)
		case <-late.C:
			return nil, fmt.Errorf("%d of %d data connections arrived within %v", len(streams), n, s.times().Answer)
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	var moved int64
	p := engine.Endpoint{Send: spec.Direction == transfer.Down, Spec: spec, Streams: streams,
		Every:  200 * time.Millisecond,
		Latest: sending,
		Stall:  s.times().Stall}
	// Progress also says that this end lives, so silence is reported too. On a slow path
	// its acknowledgements would show in what is measured: it waits for some bytes.
	const worthTelling = 32 << 10
	alive := time.NewTicker(s.times().Stall / 4)
	defer alive.Stop()
	var untold transfer.Interval
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
		default: // a client that does not listen misses intervals, never the result
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
		if beside := over(); end != nil {
			end.Beside = beside
		}
		done <- outcome{end, err}
	}()
	for {
		select {
		case o := <-done:
			return o.end, o.err
		case i := <-intervals:
			if untold.Bytes == 0 {
				untold.Start = i.Start
			}
			untold.End = i.End
			untold.Bytes = untold.Bytes + i.Bytes
			if untold.Bytes < worthTelling {
				continue
			}
			told := untold
			send(kindProgress, progressMessage{&told})
			untold = transfer.Interval{}
			alive.Reset(s.times().Stall / 4)
		case <-alive.C:
			var m progressMessage
			if told := untold; told.Bytes > 0 {
				m.Interval = &told
				untold = transfer.Interval{}
			}
			send(kindProgress, m)
		}
	}
}

// thin bounds what the samples of a result weigh by what the transfer itself moved, so
// that a slow path does not spend its time on them: one sample for each 4 kB, at least 24.
func thin(end *transfer.End) {
	var bytes int64
	for _, s := range end.Streams {
		bytes += s.Bytes
	}
	n := int(min(max(bytes/4000, 24), 4000)) / len(end.Streams)
	for i, s := range end.Streams {
		end.Streams[i].Samples = transfer.Thin(s.Samples, max(n, 2))
	}
}
