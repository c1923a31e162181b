package probe

import (
	"context"

	"github.com/fullpipe-net/fullpipe/internal/bulk"
	"github.com/fullpipe-net/fullpipe/internal/requests"
	"github.com/fullpipe-net/fullpipe/internal/socket"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// sendRequests runs a load of requests.
func (r *run) sendRequests(ctx context.Context, a accept) error {
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
	options := bulk.Options(r.spec.Direction == transfer.Up, r.spec.Near)
	options.Route = r.route
	c := requests.Client{Spec: r.spec, Each: r.onInterval,
		Dial: requests.Native(r.dataAddress(a), options, r.spec.Requests, a.Tokens)}
	taken, nearErr := c.Run(moving)
	r.result.Near = &transfer.End{Kernel: socket.Kernel(), Streams: taken.Streams}
	r.ctl.send(kindStop, struct{}{})
	err := r.awaitResult(ctx, nearErr, far, true)
	var responses *transfer.Responses
	if r.result.Far != nil {
		responses = r.result.Far.Responses
	}
	r.result.Load = taken.With(responses, r.spec.Requests)
	return err
}
