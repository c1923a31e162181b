package web

import (
	"context"
	"time"
)

// GridChange is a server-sent event: the grid has a new revision.
type GridChange struct {
	Revision string `json:"revision"`
}

// gridPeriod is the time between two looks for changes of the grid, one for all followers.
const gridPeriod = 2 * time.Second

// watchGrid returns a watch of the grid's revision, nil without a fleet. It shows the first and each new one.
func (f *Fleet) watchGrid() func(ctx context.Context, show func(document any)) error {
	if f == nil {
		return nil
	}
	return func(ctx context.Context, show func(document any)) error {
		tick := time.NewTicker(gridPeriod)
		defer tick.Stop()
		last := ""
		for {
			revision, err := f.Store.GridRevision(ctx)
			if err != nil {
				return err
			}
			if revision != last {
				last = revision
				show(GridChange{revision})
			}
			select {
			case <-ctx.Done():
				return ctx.Err()
			case <-tick.C:
			}
		}
	}
}
