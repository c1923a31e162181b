package probe

import (
	"context"
	"errors"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// RunBoth implements transfer.BothWaysPeer with a second session for the way down, which
// begins when latency on the idle path is known, if it was asked for up.
func (c *Client) RunBoth(ctx context.Context, up, down transfer.Spec, each func(transfer.Direction, transfer.Interval)) (*transfer.Result, *transfer.Result, error) {
	second, err := c.Far.Connect(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer second.Close()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	begun := make(chan struct{})
	var once sync.Once
	begin := func() { once.Do(func() { close(begun) }) }
	var results [2]*transfer.Result
	var errs [2]error
	var running sync.WaitGroup
	running.Go(func() {
		results[0], errs[0] = c.run(ctx, up, transfer.Only(transfer.Up, each), begin)
		begin()
		if errs[0] != nil {
			cancel(errs[0])
		}
	})
	running.Go(func() {
		<-begun
		down.Latency = false
		if results[1], errs[1] = second.run(ctx, down, transfer.Only(transfer.Down, each), nil); errs[1] != nil {
			cancel(errs[1])
		}
	})
	running.Wait()
	if results[0] != nil && results[1] != nil {
		results[1].Latency = results[0].Latency // beside both
	}
	return results[0], results[1], errors.Join(errs[:]...)
}
