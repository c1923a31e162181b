package tune

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/audit"
	"github.com/fullpipe-net/fullpipe/internal/host"
	"github.com/fullpipe-net/fullpipe/internal/plan"
	"github.com/fullpipe-net/fullpipe/internal/transfer"
)

// FarHost is the far end's host. The fullpipe there changes its settings with the rights of Run.
type FarHost struct {
	// Run has the fullpipe there run with arguments and standard input, and returns what it
	// printed on standard output, also when its exit status was not 0.
	Run    func(ctx context.Context, args []string, stdin []byte) (stdout []byte, err error)
	plan   *plan.Plan
	target string
}

// PlanFar looks at the far host and plans what a direction needs there: maxima that fill the
// path. It returns false where the direction needs nothing, or needs a smaller queue.
func (d *Direction) PlanFar(ctx context.Context, f *FarHost, target plan.Target) (bool, error) {
	if d.Delay != nil {
		return false, nil
	}
	now := &audit.Snapshot{}
	if err := f.ask(ctx, now, nil, "audit", "--collect"); err != nil {
		return false, err
	}
	p, err := d.hostPlan(target, d.Direction == transfer.Down, now)
	if err != nil {
		return false, err
	}
	f.plan = p
	f.target = target.Name
	return len(p.Settings) > 0, nil
}

// farPatience is how long one command may take there.
const farPatience = time.Minute

// Changes reads what would change there, and refuses where an earlier fullpipe changed the
// same setting: taking ours back would then take that back too.
func (f *FarHost) Changes(ctx context.Context) ([]host.Did, error) {
	var standing struct{ Settings []host.State }
	if err := f.ask(ctx, &standing, nil, "status", "--json"); err != nil {
		return nil, err
	}
	for _, s := range standing.Settings {
		if slices.ContainsFunc(f.plan.Settings, func(p plan.Setting) bool { return p.Name == s.Name }) {
			return nil, &FarError{fmt.Errorf("%s was changed by an earlier fullpipe", s.Name), "fullpipe undo there first"}
		}
	}
	return f.change(ctx, "--dry-run")
}

func (f *FarHost) apply(ctx context.Context) ([]host.Did, error) { return f.change(ctx, "--yes") }

// change has the plan applied there.
func (f *FarHost) change(ctx context.Context, how string) ([]host.Did, error) {
	text, err := json.Marshal(struct {
		Schema      string         `json:"schema"`
		Target      string         `json:"target"`
		MemoryBytes int64          `json:"memory_bytes"`
		Settings    []plan.Setting `json:"settings"`
	}{"fullpipe/plan/v1", f.target, f.plan.MemoryBytes, f.plan.Settings})
	if err != nil {
		return nil, err
	}
	var answer struct{ Changes []host.Did }
	if err := f.ask(ctx, &answer, text, "apply", "--json", how, "-"); err != nil {
		return nil, err
	}
	return answer.Changes, nil
}

func (f *FarHost) revert(ctx context.Context, applied []host.Did) ([]host.Did, error) {
	args := []string{"undo", "--json"}
	for _, d := range applied {
		// The far host's report is trusted only for the settings that it was asked to change.
		if d.Outcome == host.Changed && slices.ContainsFunc(f.plan.Settings,
			func(s plan.Setting) bool { return s.Name == d.Name }) {
			args = append(args, d.Name)
		}
	}
	if len(args) == 2 {
		return nil, nil
	}
	var answer struct{ Changes []host.Did }
	if err := f.ask(ctx, &answer, nil, args...); err != nil {
		return nil, &FarError{err, "fullpipe undo there"}
	}
	return answer.Changes, nil
}

// ask runs one command there and reads its document.
func (f *FarHost) ask(ctx context.Context, into any, stdin []byte, args ...string) error {
	ctx, cancel := context.WithTimeoutCause(ctx, farPatience, fmt.Errorf("no answer within %v", farPatience))
	defer cancel()
	out, err := f.Run(ctx, args, stdin)
	var failed struct {
		Error *struct{ Message, Try string }
	}
	switch {
	case json.Unmarshal(out, &failed) == nil && failed.Error != nil:
		return &FarError{errors.New(failed.Error.Message), failed.Error.Try}
	case err != nil:
		return &FarError{err, ""}
	}
	if err := json.Unmarshal(out, into); err != nil {
		return &FarError{fmt.Errorf("fullpipe %s answered no document: %w", args[0], err),
			"the same version of fullpipe there"}
	}
	return nil
}

// FarError says that the far host could not be changed, or not be put back.
type FarError struct {
	Err  error
	Hint string
}

func (e *FarError) Error() string { return "the far host: " + e.Err.Error() }
func (e *FarError) Unwrap() error { return e.Err }

// Try names the way out.
func (e *FarError) Try() string { return e.Hint }
