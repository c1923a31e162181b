package store

import (
	"context"
	"database/sql"
	"time"

	"github.com/fullpipe-net/fullpipe/internal/outbox"
)

// class selects the runs that a limit covers, as an SQL condition.
type class string

// The owner's and the clients' results have separate limits.
const (
	owners  class = " AND client = ''"
	clients class = " AND client <> ''"
	all     class = ""
)

// rowBytes estimates the database space of a result without its document: rows and index entries.
const rowBytes = 1 << 10

// trimClients removes old clients' results, then the oldest ones above the clients' share. They leave no daily
// figures, because a client may have any number of addresses and each is a path.
func (s *Store) trimClients(ctx context.Context, tx *sql.Tx, now time.Time, keep Keep) error {
	if err := s.dropClients(ctx, tx, now.Add(-keep.Runs).UnixNano()-1); err != nil {
		return err
	}
	for {
		var number, bytes int64
		err := tx.QueryRowContext(ctx, "SELECT count(*), CAST(coalesce(sum(bytes), 0) AS BIGINT) FROM run "+
			"WHERE client <> ''").Scan(&number, &bytes)
		if err != nil {
			return err
		}
		tooMany := keep.Results > 0 && number > int64(keep.Results/outbox.ClientShare)
		if !tooMany && bytes+number*rowBytes <= keep.Bytes/outbox.ClientShare {
			return nil
		}
		if more, err := s.shrinkClients(ctx, tx); err != nil || !more {
			return err
		}
	}
}

// shrinkClients removes the oldest sixteenth of the clients' results. more is false when there are none.
func (s *Store) shrinkClients(ctx context.Context, tx *sql.Tx) (more bool, err error) {
	var last sql.NullInt64 // newest run to remove
	err = tx.QueryRowContext(ctx, `SELECT max(started_ns) FROM (SELECT started_ns FROM run WHERE client <> ''
		ORDER BY started_ns LIMIT (SELECT count(*) / 16 + 1 FROM run WHERE client <> '')) AS oldest`).Scan(&last)
	if err != nil || !last.Valid {
		return false, err
	}
	return true, s.dropClients(ctx, tx, last.Int64)
}

// dropClients removes clients' results up to a time, and the paths that have nothing left.
func (s *Store) dropClients(ctx context.Context, tx *sql.Tx, last int64) error {
	var gone int64 // the row lock makes concurrent writers that need the path wait
	if err := tx.QueryRowContext(ctx, "SELECT before_ns FROM gone"+s.toChange).Scan(&gone); err != nil {
		return err
	}
	result, err := tx.ExecContext(ctx, "DELETE FROM run WHERE client <> '' AND started_ns <= $1", last)
	if err != nil {
		return err
	}
	if n, err := result.RowsAffected(); err != nil || n == 0 {
		return err
	}
	_, err = tx.ExecContext(ctx, `DELETE FROM path WHERE far LIKE 'browser://%' AND label = ''
		AND NOT EXISTS (SELECT 1 FROM run r WHERE r.path = path.key)
		AND NOT EXISTS (SELECT 1 FROM day d WHERE d.path = path.key)`)
	return err
}
