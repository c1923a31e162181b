package transfer

import "context"

// BothWaysPeer is a Peer that can measure both directions at the same time.
type BothWaysPeer interface {
	// RunBoth carries out two transfers at once, up and down, which begin together; calls
	// of each for the two directions may overlap. With an error each result holds what was measured until then, or is nil.
	RunBoth(ctx context.Context, up, down Spec, each func(Direction, Interval)) (*Result, *Result, error)
}

// Only makes one direction's intervals out of both's; each may be nil.
func Only(d Direction, each func(Direction, Interval)) func(Interval) {
	if each == nil {
		return nil
	}
	return func(i Interval) { each(d, i) }
}
