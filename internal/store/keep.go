package store

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
)

// Waiting reports that results wait on this host until the server stores them.
type Waiting struct {
	Results int
	Dir     string
	Err     error // reason
}

func (e *Waiting) Error() string {
	return fmt.Sprintf("%v; results that wait in %s: %d", e.Err, e.Dir, e.Results)
}
func (e *Waiting) Unwrap() error { return e.Err }

// Keep stores a record of this host. With a server it first writes the record to the outbox, and removes it after
// the server has stored it; until then the error is a *Waiting. A client's result above the daily quota is not
// stored: the error is ErrClientQuota, or nil when only the server knew.
//
// Flow:
//  1. read validates the document.
//  2. A history in a file stores it with add.
//  3. For a server, leave writes it to the outbox.
//  4. Deliver sends the outbox in order, the owner's results first.
//  5. Results that the server did not store stay in the outbox for the next Keep or Deliver.
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
		return fmt.Errorf("%w; and the outbox failed: %w", err, unwritten)
	}
	return err
}

// Leave writes a record to the outbox, if there is one, for the next Deliver.
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
	err = s.outbox.Put(e.ID, e.client, doc, samples, time.Now(), s.clientResultsADay())
	return err == nil, err
}

// Deliver stores the results of the outbox in order, clients' last. A result whose content the server refuses stays
// there and does not block the others.
func (s *Store) Deliver(ctx context.Context) error {
	if s.outbox == nil {
		return nil
	}
	files, err := s.outbox.List()
	if err != nil {
		return err
	}
	var refused error
	for i, f := range files {
		doc, samples, err := s.outbox.Get(f.Name)
		if errors.Is(err, fs.ErrNotExist) { // another process delivered it
			continue
		}
		var e *entry
		if err == nil {
			e, err = read(doc)
		}
		if err == nil {
			err = s.addWithRetry(ctx, e, doc, samples)
			if err == nil || isFinal(err) {
				s.outbox.Remove(f.Name)
				continue
			}
			if ctx.Err() != nil {
				err = errors.New("timeout before the server stored all results")
			}
			if !isRecordError(err) {
				return &Waiting{len(files) - i, s.outbox.Dir, err}
			}
		}
		refused = err
	}
	if refused == nil {
		return nil
	}
	files, _ = s.outbox.List()
	return &Waiting{len(files), s.outbox.Dir, refused}
}

// isFinal reports whether no retry can ever store the record.
func isFinal(err error) bool { return errors.Is(err, ErrGone) || errors.Is(err, ErrClientQuota) }

// addWithRetry adds a record, and retries once after a lost connection. A record that the server had stored is not
// stored twice.
func (s *Store) addWithRetry(ctx context.Context, e *entry, doc, samples []byte) error {
	_, err := s.add(ctx, e, doc, samples, true)
	var away *Unavailable
	if err != nil && !errors.As(err, &away) && !isFinal(err) && !isRecordError(err) && ctx.Err() == nil {
		_, err = s.add(ctx, e, doc, samples, true)
	}
	return err
}

// isRecordError reports whether the server refused a record for its content: SQLSTATE classes 22 (data), 23
// (constraints) and 54 (program limits).
func isRecordError(err error) bool {
	var said *pgconn.PgError
	return errors.As(err, &said) && slices.Contains([]string{"22", "23", "54"}, said.Code[:min(2, len(said.Code))])
}
