package probe

import (
	"context"
	"net"
	"net/netip"
	"strconv"

	"github.com/fullpipe-net/fullpipe/internal/requests"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// opening returns what begins a data connection: its token, and with requests its number.
func (r *run) opening(a accept, stream int) []byte {
	b := []byte(a.Tokens[stream])
	if r.spec.Requests.On() && !r.spec.Requests.NewConnections {
		b = requests.AppendNumber(b, stream, 0)
	}
	return b
}

// dataAddress returns the address of the data connections.
func (r *run) dataAddress(a accept) string {
	if a.Port == 0 {
		return r.ctl.remote
	}
	host, _, _ := net.SplitHostPort(r.ctl.remote)
	return net.JoinHostPort(host, strconv.Itoa(a.Port))
}

// sendRequests runs a load of requests over the opened streams and closes them.
func (r *run) sendRequests(ctx context.Context, streams []*socket.Stream, a accept) error {
	to, err := netip.ParseAddrPort(r.dataAddress(a))
	if err != nil {
		return err
	}
	moving, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	far := make(chan farOutcome, 1)
	go func() {
		f := r.ctl.readUntilResult(r.spec, nil, nil)
		if f.err != nil {
			cancel(f.err)
		}
		cancel(errFarEnded)
		far <- f
	}()
	c := requests.Client{Spec: r.spec, Streams: streams, To: to, Each: r.onInterval}
	for i := range streams {
		c.Prefaces = append(c.Prefaces, []byte(a.Tokens[i]))
	}
	taken, nearErr := c.Run(moving)
	r.result.Near = &transfer.End{Kernel: socket.Kernel()}
	for _, s := range streams {
		r.result.Near.Streams = append(r.result.Near.Streams, s.Describe())
	}
	closeAll(streams)
	r.ctl.send(kindStop, struct{}{})
	err = r.awaitResult(ctx, nearErr, far, true)
	var responses *transfer.Responses
	if r.result.Far != nil {
		responses = r.result.Far.Responses
	}
	r.result.Load = taken.With(responses, r.spec.Requests)
	return err
}
