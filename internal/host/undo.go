package host

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

func (c Config) lockPath() string { return filepath.Join(c.StateDir, "lock") }

func (c Config) undo(ctx context.Context, names []string) ([]Did, error) {
	j, err := c.readJournal()
	if err != nil {
		return nil, err
	}
	if err := c.step(stepLocked); err != nil {
		return nil, err
	}
	if names, err = resolveNames(j, names); err != nil {
		return nil, err
	}
	var goals []goal
	for _, r := range slices.Backward(j.Records) {
		if len(names) == 0 || slices.Contains(names, r.Name) {
			goals = append(goals, goal{r, r.Old})
		}
	}
	if file := j.find(File, PersistFile); file != nil && len(names) > 0 && !slices.Contains(names, PersistFile) {
		goals = append(goals, goal{*file, withoutNames(file, names)})
	}
	return c.restoreAll(ctx, j, goals)
}

// withoutNames returns the file of Persist without some names. It returns the original file if no line of ours is left.
func withoutNames(file *Record, names []string) *string {
	if file.New == nil {
		return file.Old
	}
	ours := false
	var kept []string
	for _, line := range strings.Split(*file.New, "\n") {
		name := sysctlOf(line)
		if name != "" && slices.Contains(names, name) {
			continue
		}
		before := file.Old != nil && slices.Contains(strings.Split(*file.Old, "\n"), line)
		ours = ours || name != "" && !before
		kept = append(kept, line)
	}
	if !ours {
		return file.Old
	}
	text := strings.Join(kept, "\n")
	return &text
}

func (c Config) revert(ctx context.Context, applied []Did) ([]Did, error) {
	j, err := c.readJournal()
	if err != nil {
		return nil, err
	}
	var goals []goal
	for _, d := range slices.Backward(applied) {
		if d.Outcome != Changed {
			continue
		}
		if r := j.find(d.Kind, d.Name); r != nil && equal(r.New, d.New) {
			goals = append(goals, goal{*r, d.Old})
		} else {
			goals = append(goals, goal{Record{Kind: d.Kind, Name: d.Name, Old: d.Old, Was: d.Old, New: d.New, Made: true,
				Boot: bootID()}, d.Old})
		}
	}
	return c.restoreAll(ctx, j, goals)
}

// goal is a record and the value to restore.
type goal struct {
	Record
	to *string
}

// restoreAll restores each value that is still ours. The journal keeps a record until its value is restored, so that
// the next undo continues after a crash.
func (c Config) restoreAll(ctx context.Context, j *journal, goals []goal) ([]Did, error) {
	var dids []Did
	var failed error
	for _, g := range goals {
		if err := ctx.Err(); err != nil {
			failed = errors.Join(failed, err)
			break
		}
		d := Did{Kind: g.Kind, Name: g.Name, New: g.to}
		if err := c.restoreOne(&d, g); err != nil {
			failed = errors.Join(failed, fmt.Errorf("%s: %w", g.Name, err))
		}
		dids = append(dids, d)
		switch d.Outcome {
		case Restored, Unchanged, Gone:
			if r := j.find(g.Kind, g.Name); r != nil && !equal(g.to, r.Old) {
				r.New = g.to
				r.Was = g.to
				r.Made = true
			} else {
				j.drop(g.Kind, g.Name)
			}
		}
	}
	if err := c.step(stepDone); err != nil {
		return dids, errors.Join(failed, err)
	}
	if len(goals) > 0 {
		if err := j.save(); err != nil {
			// The remaining records name values that are already restored: the next undo finds them unchanged and writes
			// the journal again.
			failed = errors.Join(failed, err)
		}
	}
	return dids, failed
}

func (c Config) restoreOne(d *Did, g goal) error {
	d.Outcome = Refused
	s, err := c.store(g.Kind)
	if err != nil {
		d.Reason = err.Error()
		return err
	}
	current, err := s.read(g.Name)
	if err != nil {
		d.Reason = err.Error()
		return err
	}
	d.Old = current
	d.Took = current
	switch c.stateOf(g.Record, current) {
	case "not-made":
		d.Outcome = Unchanged
		return nil
	case "gone":
		d.Outcome = Gone
		return nil
	case "changed":
		if equal(current, g.to) {
			d.Outcome = Unchanged
			return nil
		}
		d.Found = current
		d.Outcome = Conflict
		return nil
	}
	if equal(current, g.to) {
		d.Outcome = Unchanged
		return nil
	}
	if err := c.put(d, g.to); err != nil {
		return err
	}
	if !equal(d.Took, g.to) {
		d.Found = d.Took
		d.Outcome = Clipped
		return fmt.Errorf("%w: it is %s, not %s", ErrRefused, Text(d.Took), Text(g.to))
	}
	d.Outcome = Restored
	return nil
}

// stateOf compares a present value with a record. It returns a word of State.Is.
func (c Config) stateOf(r Record, current *string) string {
	switch {
	case equal(current, r.New) && r.Made:
		return "ours"
	case equal(current, r.New):
		return "interrupted"
	case !r.Made && equal(current, r.Was) && equal(r.Was, r.Old):
		return "not-made"
	case !r.Made && equal(current, r.Was):
		return "ours" // an earlier change of ours, before one that was never made
	case r.Boot != bootID() && (r.Kind == Sysctl || r.Kind == Route || r.Kind == Qdisc):
		return "gone"
	}
	return "changed"
}

func (c Config) status() ([]State, error) {
	j, err := c.readJournal()
	if err != nil {
		return nil, err
	}
	states := make([]State, 0, len(j.Records))
	for _, r := range j.Records {
		state := State{JournalEntry: r, Is: "unreadable"}
		if s, err := c.store(r.Kind); err == nil {
			if value, err := s.read(r.Name); err == nil {
				state.Is = c.stateOf(r, value)
				state.Now = value
			}
		}
		states = append(states, state)
	}
	return states, nil
}

func (c Config) forget(names []string) error {
	j, err := c.readJournal()
	if err != nil {
		return err
	}
	if names, err = resolveNames(j, names); err != nil {
		return err
	}
	j.Records = slices.DeleteFunc(j.Records, func(r Record) bool { return slices.Contains(names, r.Name) })
	return j.save()
}

// unknownNameError is a name that fullpipe did not change.
type unknownNameError struct{ name string }

func (e *unknownNameError) Error() string { return e.name + " was not changed by fullpipe" }

// Try returns the command that lists the names.
func (e *unknownNameError) Try() string { return "fullpipe status lists the changed settings" }

// resolveNames returns the journal's names for complete names or their last parts, after a dot or a backslash. Unknown
// and ambiguous names are errors.
func resolveNames(j *journal, names []string) (full []string, err error) {
	for _, name := range names {
		var found []string
		for _, r := range j.Records {
			if r.Name == name {
				found = []string{name}
				break
			}
			if strings.HasSuffix(r.Name, "."+name) || strings.HasSuffix(r.Name, `\`+name) {
				found = append(found, r.Name)
			}
		}
		slices.Sort(found)
		found = slices.Compact(found)
		switch len(found) {
		case 0:
			return nil, &unknownNameError{name}
		case 1:
			full = append(full, found[0])
		default:
			return nil, fmt.Errorf("%s could be %s", name, strings.Join(found, " or "))
		}
	}
	return full, nil
}
