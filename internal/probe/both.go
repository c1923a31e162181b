package probe

import (
	"context"
	"errors"
	"sync"

	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// runBoth runs two legs at once. The down leg has a second session and begins once idle latency is measured, if
// the up leg measures it.
func (c *Client) runBoth(ctx context.Context, up, down transfer.Spec,
	each func(transfer.Interval)) ([]transfer.Outcome, error) {
	second, err := c.Far.Connect(ctx)
	if err != nil {
		return nil, err
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
		results[0], errs[0] = c.run(ctx, up, each, begin)
		begin()
		if errs[0] != nil {
			cancel(errs[0])
		}
	})
	running.Go(func() {
		<-begun
		down.Latency = false
		results[1], errs[1] = second.run(ctx, down, each, nil)
		if errs[1] != nil {
			cancel(errs[1])
		}
	})
	running.Wait()
	if results[0] != nil && results[1] != nil {
		results[1].Latency = results[0].Latency // the concurrent tests of both legs
	}
	return []transfer.Outcome{{TCP: results[0]}, {TCP: results[1]}}, errors.Join(errs[:]...)
}
