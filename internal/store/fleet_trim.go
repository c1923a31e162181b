package store

import (
	"context"
	"database/sql"
	"time"
)

// trimStep is how much of the history a transaction of Trim removes at most: other writers wait for it.
const trimStep = 6 * time.Hour

// Trim replaces results that are older than a time by daily figures, and removes their events and jobs. more reports
// that older ones are left: each call removes those of some hours. The age is that of the newest results, so a wrong
// clock removes nothing.
func (f *Fleet) Trim(ctx context.Context, now time.Time, keep time.Duration) (more bool, err error) {
	err = f.change(ctx, func(tx *sql.Tx) error {
		trusted, err := trustedNow(ctx, tx, owners, now)
		if err != nil {
			return err
		}
		before := trusted.Add(-keep)
		var oldest sql.NullInt64
		if err := tx.QueryRowContext(ctx, "SELECT min(started_ns) FROM run").Scan(&oldest); err != nil || !oldest.Valid {
			return err
		}
		if step := time.Unix(0, oldest.Int64).Add(trimStep); step.Before(before) {
			before = step
			more = true
		}
		if err := rollUp(ctx, tx, before.UnixNano()); err != nil {
			return err
		}
		for _, old := range []string{"event WHERE at_ns < $1",
			"job WHERE due_ns < $1 AND state NOT IN ('due', 'granted')"} {
			if _, err := tx.ExecContext(ctx, "DELETE FROM "+old, before.UnixNano()); err != nil {
				return err
			}
		}
		return nil
	})
	return more, err
}
