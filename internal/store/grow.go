package store

import (
	"context"
	"database/sql"

	"github.com/fullpipe-net/fullpipe/internal/record"
)

// grow replaces a stored record by a later state of it. It does not commit.
func (s *Store) grow(ctx context.Context, tx *sql.Tx, e *entry, doc []byte, seal string) (grew bool, err error) {
	now, ok := e.doc.(*record.WatchKept)
	if !ok {
		return false, nil
	}
	var packed []byte
	if err := tx.QueryRowContext(ctx, "SELECT doc FROM run WHERE id = $1"+s.toChange, e.ID).Scan(&packed); err != nil {
		return false, err
	}
	kept, err := unpack(packed)
	if err != nil {
		return false, err
	}
	before, err := record.Decode(kept, nil)
	if err != nil {
		return false, err
	}
	if !now.Outgrows(before) {
		return false, nil
	}
	if _, err := tx.ExecContext(ctx, "UPDATE run SET outcome = $1, doc = $2, seal = $3 WHERE id = $4", plain(e.Outcome),
		pack(doc), seal, e.ID); err != nil {
		return false, err
	}
	if _, err := tx.ExecContext(ctx, "DELETE FROM direction WHERE run = $1", e.ID); err != nil {
		return false, err
	}
	if err := addFigures(ctx, tx, e); err != nil {
		return false, err
	}
	return true, nil
}
