package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/atomicfile"
)

func (c Config) complete() Config {
	if c.StateDir == "" {
		c.StateDir = cmp.Or(os.Getenv("FULLPIPE_STATE"), stateDir())
	}
	if c.Wait == 0 {
		c.Wait = 10 * time.Second
	}
	if c.stores == nil {
		c.stores = stores()
	}
	if c.step == nil {
		c.step = func(step) error { return nil }
	}
	return c
}

func (c Config) store(kind Kind) (store, error) {
	s, ok := c.stores[kind]
	if !ok {
		return nil, notSupported(fmt.Sprintf("changing a %s", kind))
	}
	return s, nil
}

func equal(a, b *string) bool { return a == b || a != nil && b != nil && *a == *b }

func (c Config) apply(ctx context.Context, changes []Change) ([]Did, error) {
	if err := c.step(stepLocked); err != nil {
		return nil, err
	}
	dids, err := c.preview(changes)
	if err == nil && c.Check != nil {
		err = c.Check(dids)
	}
	if err != nil {
		return nil, err
	}
	j, err := c.readJournal()
	if err != nil {
		return nil, err
	}
	if !slices.ContainsFunc(dids, func(d Did) bool { return d.Outcome != Unchanged }) {
		return dids, c.finishInterrupted(j, dids)
	}
	before := slices.Clone(j.Records)
	c.announce(j, dids)
	if err := c.step(stepJournal); err != nil {
		return nil, err
	}
	if err := j.save(); err != nil {
		return nil, fmt.Errorf("nothing was changed: %w", err)
	}
	err = c.write(ctx, dids)
	if err == nil {
		for _, d := range dids {
			if d.Outcome == Changed {
				markMade(j, d)
			}
		}
		if err = c.step(stepDone); err == nil {
			err = j.save()
		}
	}
	if err == nil {
		return dids, nil
	}
	return dids, c.rollBack(j, before, dids, err)
}

// announce adds the pending changes to the journal. The first Old of a name stays, unless another program changed the
// value since: then undo restores that value.
func (c Config) announce(j *journal, dids []Did) {
	for _, d := range dids {
		if d.Outcome == Unchanged {
			continue
		}
		record := Record{Kind: d.Kind, Name: d.Name, Old: d.Old, Was: d.Old, New: d.New, At: now(), Boot: bootID()}
		if r := j.find(d.Kind, d.Name); r != nil {
			if equal(d.Old, r.New) || !r.Made && equal(d.Old, r.Was) {
				record.Old = r.Old
			}
			*r = record
			continue
		}
		j.Records = append(j.Records, record)
	}
}

// finishInterrupted marks the records of a run that was interrupted after its last write as made.
func (c Config) finishInterrupted(j *journal, dids []Did) error {
	found := false
	for _, d := range dids {
		if r := j.find(d.Kind, d.Name); r != nil && !r.Made && equal(r.New, d.New) {
			found = true
			markMade(j, d)
		}
	}
	if !found {
		return nil
	}
	return j.save()
}

// markMade marks a change as made. It drops one that returned to the value before our first change.
func markMade(j *journal, d Did) {
	if r := j.find(d.Kind, d.Name); r != nil {
		r.Made = true
		if equal(r.Old, r.New) {
			j.drop(d.Kind, d.Name)
		}
	}
}

// write makes the changes one by one and reads each back. It stops at the first that differs.
func (c Config) write(ctx context.Context, dids []Did) error {
	for i := range dids {
		d := &dids[i]
		if d.Outcome == Unchanged {
			continue
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := c.put(d, d.New); err != nil {
			return err
		}
		if !equal(d.Took, d.New) {
			d.Found = d.Took
			d.Outcome = Clipped
			return fmt.Errorf("%w: %s is %s, not %s", ErrRefused, d.Name, Text(d.Took), Text(d.New))
		}
		d.Outcome = Changed
	}
	return nil
}

// put writes one value and reads it back into Took.
func (c Config) put(d *Did, value *string) error {
	s, err := c.store(d.Kind)
	if err != nil {
		return err
	}
	if err := c.step(stepWrite); err != nil {
		return err
	}
	if err := s.write(d.Name, value); err != nil {
		d.Reason = err.Error()
		d.Outcome = Refused
		return fmt.Errorf("%w: write %s: %w", ErrRefused, d.Name, err)
	}
	if err := c.step(stepReadBack); err != nil {
		d.Outcome = Clipped // written, but not read back
		return err
	}
	if d.Took, err = s.read(d.Name); err != nil {
		d.Reason = err.Error()
		d.Outcome = Clipped
		return fmt.Errorf("%w: read %s back: %w", ErrRefused, d.Name, err)
	}
	return nil
}

// rollBack restores the written values, last first, and the previous journal. Records of values that it cannot restore
// stay in the journal as ours.
func (c Config) rollBack(j *journal, before []Record, dids []Did, cause error) error {
	var stuck []Record
	for i := len(dids) - 1; i >= 0; i-- {
		d := &dids[i]
		written := d.Outcome == Changed || d.Outcome == Clipped
		if !written {
			continue
		}
		present := d.New
		if d.Outcome == Clipped && d.Took != nil {
			present = d.Took
		}
		err := c.step(stepRollBack)
		if err == nil {
			err = c.restore(d)
		}
		switch {
		case err != nil:
			if r := j.find(d.Kind, d.Name); r != nil {
				r.Made = true
				r.New = present
				stuck = append(stuck, *r)
			}
			d.Reason = err.Error()
			d.Outcome = Stuck
			cause = errors.Join(cause, fmt.Errorf("%s could not be rolled back: %w", d.Name, err))
		case d.Outcome == Changed:
			d.Outcome = RolledBack
		}
	}
	j.Records = before
	for _, r := range stuck {
		j.drop(r.Kind, r.Name)
		j.Records = append(j.Records, r)
	}
	if err := j.save(); err != nil {
		// The journal on the disk still announces the changes, each with its old value: status finds them not made.
		cause = errors.Join(cause, err)
	}
	return cause
}

// restore writes the value from before this run.
func (c Config) restore(d *Did) error {
	s, err := c.store(d.Kind)
	if err != nil {
		return err
	}
	if err := s.write(d.Name, d.Old); err != nil {
		return err
	}
	back, err := s.read(d.Name)
	if err != nil {
		return err
	}
	d.Took = back
	if !equal(back, d.Old) {
		return fmt.Errorf("it is %s after writing %s", Text(back), Text(d.Old))
	}
	return nil
}

// Text returns a value as text for a person.
func Text(value *string) string {
	switch {
	case value == nil:
		return "not set"
	case *value == "":
		return `""`
	}
	return *value
}

func now() time.Time { return time.Now().UTC().Round(time.Second) }

// lock prevents other fullpipes from changing this host until the file is closed.
func (c Config) lock(ctx context.Context) (*os.File, error) {
	if err := os.MkdirAll(c.StateDir, 0o755); err != nil {
		return nil, &StateError{err}
	}
	if err := trusted(c.StateDir); err != nil {
		return nil, err
	}
	file, err := os.OpenFile(c.lockPath(), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, &StateError{err}
	}
	limit := time.NewTimer(c.Wait)
	defer limit.Stop()
	poll := time.NewTicker(20 * time.Millisecond)
	defer poll.Stop()
	for {
		err := atomicfile.Lock(file)
		if err == nil {
			c.sweep()
			return file, nil
		}
		if !errors.Is(err, atomicfile.ErrLocked) {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", file.Name(), err)
		}
		select {
		case <-ctx.Done():
			file.Close()
			return nil, ctx.Err()
		case <-limit.C:
			file.Close()
			return nil, fmt.Errorf("%w, for more than %v", ErrBusy, c.Wait)
		case <-poll.C:
		}
	}
}

// sweep removes unneeded files: journals that a crash left incomplete, and those of network namespaces of an earlier
// boot. The caller has the lock.
func (c Config) sweep() {
	files, err := os.ReadDir(c.StateDir)
	if err != nil {
		return
	}
	for _, f := range files {
		ended := strings.HasPrefix(f.Name(), "journal-netns-") && !strings.HasPrefix(f.Name(), "journal-"+namespaces())
		if strings.HasPrefix(f.Name(), ".journal-") || ended {
			os.Remove(filepath.Join(c.StateDir, f.Name()))
		}
	}
}

// StateError reports that this process may not change the host or write the journal.
type StateError struct{ Err error }

func (e *StateError) Error() string { return fmt.Sprintf("change this host: %v", e.Err) }
func (e *StateError) Unwrap() error { return e.Err }

// Try returns the remedy.
func (e *StateError) Try() string {
	return "run it as root (FULLPIPE_STATE names another directory for the journal)"
}
