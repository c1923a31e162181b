package tune

import (
	"context"
	"errors"
	"slices"

	"github.com/fullpipe-net/fullpipe/internal/host"
)

// side is a host that can be given its changes and be put back.
type side interface {
	apply(ctx context.Context) ([]host.Did, error)
	revert(ctx context.Context, applied []host.Did) ([]host.Did, error)
}

type thisHost struct{ changes []host.Change }

func (h *thisHost) apply(ctx context.Context) ([]host.Did, error) {
	return host.Apply(ctx, host.Config{}, h.changes)
}

func (h *thisHost) revert(ctx context.Context, applied []host.Did) ([]host.Did, error) {
	return host.Revert(ctx, host.Config{}, applied)
}

// toggle switches the changes of the hosts on and off.
type toggle struct {
	sides   []side
	on      bool
	applied [][]host.Did // of the apply that is in force, by side
	last    [][]host.Did // of the last step, by side
}

// set gives the hosts their changes or takes them back. Where one fails, those before it are put back.
func (t *toggle) set(ctx context.Context, on bool) error {
	switch {
	case t.on == on:
		return nil
	case !on:
		err := t.takeBack(ctx, len(t.sides))
		t.on = err != nil
		return err
	}
	t.applied = make([][]host.Did, len(t.sides))
	for i, s := range t.sides {
		var err error
		if t.applied[i], err = s.apply(ctx); err != nil {
			return errors.Join(err, t.takeBack(context.WithoutCancel(ctx), i))
		}
	}
	t.last = slices.Clone(t.applied)
	t.on = true
	return nil
}

// takeBack puts the first sides back, the last of them first; all of them are tried.
func (t *toggle) takeBack(ctx context.Context, sides int) (failed error) {
	t.last = make([][]host.Did, len(t.sides))
	for i := sides - 1; i >= 0; i-- {
		dids, err := t.sides[i].revert(ctx, t.applied[i])
		if err == nil && slices.ContainsFunc(dids, func(d host.Did) bool { return d.Outcome == host.Conflict }) {
			err = errors.New("somebody else changed the same setting in between: look at fullpipe status")
		}
		t.last[i] = dids
		failed = errors.Join(failed, err)
	}
	return failed
}
