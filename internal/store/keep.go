package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Waiting says that results wait on this host until the server stores them.
type Waiting struct {
	Results int
	Dir     string
	Err     error // why
}

func (e *Waiting) Error() string {
	return fmt.Sprintf("%v; results that wait in %s: %d", e.Err, e.Dir, e.Results)
}
func (e *Waiting) Unwrap() error { return e.Err }

// Keep adds a record that was measured here. Where a server keeps the history the record is
// first written to the outbox, and stays there until the server has stored it: then the
// error is a *Waiting. A client's result beyond its daily quota is not kept: the error is
// ErrClientQuota, or nil where only the server knew.
func (s *Store) Keep(ctx context.Context, doc, samples []byte) error {
	e, err := read(doc)
	if err != nil {
		return err
	}
	left, unwritten := s.leave(e, doc, samples)
	if left {
		return s.Deliver(ctx)
	}
	if errors.Is(unwritten, ErrClientQuota) {
		return unwritten
	}
	_, err = s.add(ctx, e, doc, samples, true)
	if err != nil && unwritten != nil {
		return fmt.Errorf("%w; nor can it wait here: %w", err, unwritten)
	}
	return err
}

// Leave puts a record into the outbox, if there is one, for the next Deliver.
func (s *Store) Leave(doc, samples []byte) (left bool, err error) {
	e, err := read(doc)
	if err != nil {
		return false, err
	}
	return s.leave(e, doc, samples)
}

func (s *Store) leave(e *entry, doc, samples []byte) (left bool, err error) {
	if s.outbox == nil {
		return false, nil
	}
	err = s.outbox.put(e, doc, samples, time.Now(), s.clientResultsADay())
	return err == nil, err
}

// Deliver stores what waits in the outbox, in its order, clients' results last. What the server does not take for
// what is in it stays, and holds nothing else up.
func (s *Store) Deliver(ctx context.Context) error {
	if s.outbox == nil {
		return nil
	}
	files, err := s.outbox.list()
	if err != nil {
		return err
	}
	var refused error
	for i, f := range files {
		doc, samples, err := s.outbox.get(f.name)
		if errors.Is(err, fs.ErrNotExist) { // another process was faster
			continue
		}
		var e *entry
		if err == nil {
			e, err = read(doc)
		}
		if err == nil {
			err = s.addAgain(ctx, e, doc, samples)
			if err == nil || isFinal(err) {
				os.Remove(filepath.Join(s.outbox.dir, f.name))
				continue
			}
			if ctx.Err() != nil {
				err = errors.New("the server has not stored all of it in the time there was")
			}
			if !ofTheRecord(err) {
				return &Waiting{len(files) - i, s.outbox.dir, err}
			}
		}
		refused = err
	}
	if refused == nil {
		return nil
	}
	files, _ = s.outbox.list()
	return &Waiting{len(files), s.outbox.dir, refused}
}

// isFinal reports whether a record is never stored, however often that is tried.
func isFinal(err error) bool { return errors.Is(err, ErrGone) || errors.Is(err, ErrClientQuota) }

// addAgain adds a record, and once more where the connection was lost meanwhile: the server
// may have been restarted, and what it had stored is not stored twice.
func (s *Store) addAgain(ctx context.Context, e *entry, doc, samples []byte) error {
	_, err := s.add(ctx, e, doc, samples, true)
	var away *Unavailable
	if err != nil && !errors.As(err, &away) && !isFinal(err) && !ofTheRecord(err) && ctx.Err() == nil {
		_, err = s.add(ctx, e, doc, samples, true)
	}
	return err
}

// ofTheRecord says whether a record was refused for what is in it, and not for what the
// server can do at the moment: SQLSTATE classes 22 (data), 23 (constraints) and 54 (what fits
// nowhere).
func ofTheRecord(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && slices.Contains([]string{"22", "23", "54"}, said.Code[:min(2, len(said.Code))])
}
